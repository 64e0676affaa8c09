import { ToolwayError } from '../../core/errors.ts'
import type { HttpChannel } from '../transports/http-channel.ts'

/** What a server says when it wants another credential than it got. */
export interface Challenge {
  readonly status: number
  /** Where its metadata is (RFC 9728). */
  readonly resourceMetadata?: string
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[]
  /** `invalid_token`, `insufficient_scope` … */
  readonly error?: string
}

/** More than any server has to say, and little enough to be read with care. */
const maxLength = 8 * 1024

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const schemeOrParameter = new RegExp(
  `\\s*(?:(${token})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${token}))|(${token})(?=\\s|,|$))\\s*,?`,
  'y',
)

/** Reads the Bearer challenge of a refusal; of several schemes only that one is ours. */
export function readChallenge(status: number, headers: readonly string[]): Challenge {
  for (const header of headers) {
    const parameters = header.length > maxLength ? undefined : bearerParameters(header)
    if (!parameters) continue
    const resourceMetadata = parameters.get('resource_metadata')
    const scopes = scopesIn(parameters.get('scope'))
    const error = parameters.get('error')
    return {
      status,
      ...(resourceMetadata !== undefined && { resourceMetadata }),
      ...(scopes.length > 0 && { scopes }),
      ...(error !== undefined && { error }),
    }
  }
  return { status }
}

/** The words of a `scope` parameter. */
export const scopesIn = (text: string | undefined): readonly string[] => [
  ...new Set((text ?? '').split(/\s+/).filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(scope))),
]

/** One header may hold several schemes, each with parameters; those behind `Bearer` and before the next one. */
function bearerParameters(header: string): ReadonlyMap<string, string> | undefined {
  let found: Map<string, string> | undefined
  let ours = false
  schemeOrParameter.lastIndex = 0
  while (schemeOrParameter.lastIndex < header.length) {
    const [, name, inQuotes, bare, scheme] = schemeOrParameter.exec(header) ?? []
    if (scheme !== undefined) {
      if (found) break
      ours = scheme.toLowerCase() === 'bearer'
      if (ours) found = new Map()
    } else if (name !== undefined) {
      const value = inQuotes?.replaceAll(/\\(.)/g, '$1') ?? bare ?? ''
      // The first one counts: a parameter that comes twice is somebody's trick or mistake.
      if (ours && found && !found.has(name.toLowerCase())) found.set(name.toLowerCase(), value)
    } else break
  }
  return found
}

/** What decides which scopes are asked for. */
interface ScopesKnown {
  /** By the operator; then what servers say counts only where they want more. */
  readonly configured?: readonly string[] | undefined
  /** By the challenge of the server. */
  readonly challenged?: readonly string[] | undefined
  /** Of the resource, as its metadata says. */
  readonly supported?: readonly string[] | undefined
  /** That a request lacked although it had a token, and those of that token. */
  readonly more?: readonly string[] | undefined
  /** Of the authorization server, as its metadata says. */
  readonly offered: readonly string[]
}

/** What a refresh token is asked for by, where an authorization server knows the word. */
const offline = 'offline_access'

/**
 * The scopes to ask for, none where nobody says any. As few as the server named for what was refused; all that it knows
 * only where it named none. Whoever asks again asks for what there was, too, or it would be gone.
 */
export function scopesToAsk({ configured, challenged, supported, more, offered }: ScopesKnown): readonly string[] {
  const base = configured ?? challenged ?? supported ?? []
  const lasting = offered.includes(offline) ? [offline] : []
  return [...new Set([...base, ...(more ?? []), ...lasting])]
}

/** The same for a client that acts for itself: it has no need of a refresh token. */
export const scopesForClientCredentials = (known: ScopesKnown): readonly string[] =>
  scopesToAsk(known).filter((scope) => scope !== offline)

/**
 * The credential of one line to a server, as its transport sees it. Where a server needs none there is no such thing,
 * and nothing is asked.
 */
export interface RequestAuthorizer {
  /**
   * What to send as Authorization; at once where a token is at hand, nothing where the server has not asked for one yet.
   * Rejects with AUTH_REQUIRED where there is none to be had without a person.
   */
  header(): string | undefined | Promise<string | undefined>
  /**
   * The server refused what was sent (nothing, perhaps) with 401 or 403. True where there is another credential now, so
   * that the request, which was not acted on, is worth sending once more. Rejects with AUTH_REQUIRED where a person is
   * needed; false where it is not about a credential of ours.
   */
  refused(challenge: Challenge, sent: string | undefined): Promise<boolean>
}

/**
 * A channel on which every request carries the credential of the moment. One that is refused is replaced, where that
 * can be, and the request is sent once more: whoever was refused by 401 or 403 was not worked for.
 */
export function authorizedChannel(channel: HttpChannel, authorize: RequestAuthorizer): HttpChannel {
  return {
    get connected() {
      return channel.connected
    },
    get gaps() {
      return channel.gaps
    },
    async request(request, receive) {
      for (let again = false; ; again = true) {
        const authorization = await authorize.header()
        const headers = authorization === undefined ? request.headers : { ...request.headers, authorization }
        const head = await channel.request({ ...request, headers }, receive)
        if (head.status !== 401 && head.status !== 403) return head
        const challenge = readChallenge(head.status, head.all('www-authenticate'))
        const renewed = await authorize.refused(challenge, authorization).catch((error) => {
          throw afterSending(error)
        })
        if (!renewed || again) return head
      }
    },
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  }
}

/** That no token can be obtained now does not undo that the request was sent. */
function afterSending(error: unknown): unknown {
  if (!(error instanceof ToolwayError) || !error.details.unsent) return error
  const { unsent: _, ...details } = error.details
  return new ToolwayError(error.code, error.message, details)
}
