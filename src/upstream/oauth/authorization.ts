import { ToolwayError } from '../../core/errors.ts'
import type { HttpChannel } from '../transports/http-channel.ts'

/** The challenge from a server that rejected a request's credential. */
export interface Challenge {
  readonly status: number
  /** The URL of the server's metadata (RFC 9728). */
  readonly resourceMetadata?: string
  readonly scopes?: readonly string[]
  /** The error code, such as `invalid_token` or `insufficient_scope`. */
  readonly error?: string
}

const maxChallengeLength = 8 * 1024

const headerToken = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const schemeOrParameter = new RegExp(
  `\\s*(?:(${headerToken})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${headerToken}))|(${headerToken})(?=\\s|,|$))\\s*,?`,
  'gy',
)

export function readChallenge(status: number, headers: readonly string[]): Challenge {
  for (const header of headers) {
    const parameters = header.length > maxChallengeLength ? undefined : bearerParameters(header)
    if (!parameters) continue
    const scopes = scopesIn(parameters.get('scope'))
    return {
      status,
      resourceMetadata: parameters.get('resource_metadata'),
      scopes: scopes.length > 0 ? scopes : undefined,
      error: parameters.get('error'),
    }
  }
  return { status }
}

export const scopesIn = (text: string | undefined): readonly string[] => [
  ...new Set((text ?? '').split(/\s+/).filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(scope))),
]

/** The parameters of the Bearer scheme in a WWW-Authenticate header, which may contain several schemes. */
function bearerParameters(header: string): ReadonlyMap<string, string> | undefined {
  let found: Map<string, string> | undefined
  for (const [, name, inQuotes, bare, scheme] of header.matchAll(schemeOrParameter)) {
    if (scheme !== undefined) {
      if (found) break
      if (scheme.toLowerCase() === 'bearer') found = new Map()
    } else if (found && name !== undefined && !found.has(name.toLowerCase())) {
      // Use the first value: a repeated parameter is an attack or a mistake.
      found.set(name.toLowerCase(), inQuotes?.replaceAll(/\\(.)/g, '$1') ?? bare ?? '')
    }
  }
  return found
}

/** Provides and renews a connection's credential, for servers that use OAuth. */
export interface RequestAuthorizer {
  /**
   * The Authorization header. Returned without a promise if Toolway already has a token; undefined if the server has
   * not asked for one yet. Rejects with AUTH_REQUIRED if somebody has to sign in.
   */
  header(): string | undefined | Promise<string | undefined>
  /**
   * Called when the server rejected a request with 401 or 403. Resolves with true if there is another credential now:
   * the request was not executed, so it can be sent again. Resolves with false if the rejection is not about our
   * credential. Rejects with AUTH_REQUIRED if somebody has to sign in.
   */
  refused(challenge: Challenge, sent: string | undefined): Promise<boolean>
}

/** Adds the credential to requests. After a 401 or 403, renews the credential and sends the request once more. */
export const authorizedChannel = (channel: HttpChannel, authorize: RequestAuthorizer): HttpChannel => ({
  async request(request, receive) {
    for (let again = false; ; again = true) {
      const authorization = await authorize.header()
      const headers = authorization === undefined ? request.headers : { ...request.headers, authorization }
      const head = await channel.request({ ...request, headers }, receive)
      if (head.status !== 401 && head.status !== 403) return head
      const challenge = readChallenge(head.status, head.all('www-authenticate'))
      // Remove `unsent` from the error: the request was sent, even if there is no new token.
      const renewed = await authorize.refused(challenge, authorization).catch((error) => {
        throw ToolwayError.sent(error)
      })
      if (!renewed || again) return head
    }
  },
})
