import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { rangeOf } from '../../egress/addresses.ts'
import { ProxyError, proxyFor } from '../../egress/proxy.ts'
import { parseJson } from '../../json/parse-json.ts'
import { failureReason } from '../../lib/message-text.ts'
import { NoResponse } from '../transports/http-channel.ts'
import { OAuthError, parseProtectedUrl, quoted } from './oauth-error.ts'

/** A response; the body is undefined if it is not JSON. */
export interface OAuthHttpResponse {
  readonly status: number
  readonly body: unknown
}

/** Fetches metadata and tokens. The URLs come from servers, so hosts, redirects, size and time are all limited. */
export interface OAuthHttp {
  get(url: URL, reach: Reach): Promise<OAuthHttpResponse>
  post(url: URL, reach: Reach, request: PostRequest): Promise<OAuthHttpResponse>
}

export interface PostRequest {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** Which addresses may be used: a public server must not make Toolway access private addresses. */
export type Reach = 'public' | 'private'

export interface WebOptions {
  /** The environment variables that name the proxy. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

const timeoutMs = 10_000
/** The maximum size of a response, about 100 times what servers publish. */
const maxBytes = 256 * 1024
const maxRedirects = 3

export function createOAuthHttp({ env = process.env, clock }: WebOptions): OAuthHttp {
  return {
    async get(url, reach) {
      let at = url
      for (let redirects = 0; ; redirects++) {
        const answer = await ask(at, reach, { method: 'GET', headers: { accept: 'application/json' } })
        if (answer.location === undefined) return answer
        const next = URL.canParse(answer.location, at.href) ? new URL(answer.location, at.href) : undefined
        // Refuse a redirect to another origin, because that origin could then impersonate this one.
        if (next?.origin !== url.origin)
          throw new OAuthError(`${url.origin} redirects to another origin, and such redirects are not followed`)
        if (redirects === maxRedirects) throw new OAuthError(`${url.origin} redirects too many times`)
        at = next
      }
    },
    async post(url, reach, { body, headers }) {
      const sent = { accept: 'application/json', ...headers }
      const answer = await ask(url, reach, { method: 'POST', headers: sent, body })
      if (answer.location === undefined) return answer
      throw new OAuthError(`${url.origin} responded with a redirect, and redirects are not followed`)
    },
  }

  async function ask(
    url: URL,
    reach: Reach,
    request: OAuthRequest,
  ): Promise<OAuthHttpResponse & { location?: string }> {
    parseProtectedUrl(url.href, 'an authorization server URL')
    const slow = `${url.origin} did not answer within ${timeoutMs / 1000} s (a fixed limit)`
    using limit = deadline(clock, timeoutMs, () => new OAuthError(slow, { unreachable: true }))
    const tooLarge = () => new OAuthError(`${url.origin} responded with more than ${maxBytes / 1024} KiB`)
    const accepts = (status: number) => status < 300 || status >= 400
    try {
      const { createHttpClient, pinnedLookup } = await import('../../egress/http-client.ts')
      const checked = await vet(url, reach, proxyFor(url, env) !== undefined)
      // Connect only to the checked addresses, because the name may resolve differently the next time.
      await using client = createHttpClient(url, { connections: 1, connect: { lookup: pinnedLookup(checked) } }, env)
      const path = url.pathname + url.search
      const response = await client.fetchText(
        { ...request, path, signal: limit.signal },
        { maxBytes, tooLarge, accepts },
      )
      const { status, headers, text } = response
      if (text === undefined) return { status, body: undefined, location: String(headers.location ?? '') }
      return { status, body: parseJson(text) }
    } catch (thrown) {
      throw thrown instanceof OAuthError ? thrown : unreachable(url, thrown)
    }
  }

  /**
   * Resolves a host and checks its addresses. A proxy may be able to resolve hosts that Toolway cannot; but if Toolway
   * can resolve a host, its addresses must always be allowed.
   */
  async function vet({ hostname }: URL, reach: Reach, byProxy: boolean): Promise<readonly LookupAddress[]> {
    const found = await addresses(hostname, byProxy)
    const bad = found.find(({ address }) => {
      const place = rangeOf(address)
      return place === 'reserved' || (place === 'private' && reach === 'public')
    })
    if (!bad) return found
    const sentence = `${quoted(hostname)} resolves to a private or reserved address, but a public server referred to it`
    throw new OAuthError(sentence)
  }
}

interface OAuthRequest {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

async function addresses(hostname: string, mayBeUnknown: boolean): Promise<LookupAddress[]> {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host)) return [{ address: host, family: isIP(host) }]
  try {
    // Use a fixed order, because the IPv4 and IPv6 addresses of localhost may belong to different programs.
    return await lookup(host, { all: true, order: 'ipv4first' })
  } catch (cause) {
    if (mayBeUnknown) return []
    throw new OAuthError(`${quoted(host)} cannot be resolved`, { unreachable: true, cause })
  }
}

/** Which addresses a server may refer to: a private server may name private addresses, a public one may not. */
export async function reachOf(server: URL, range = rangeOf): Promise<Reach> {
  const found = await addresses(server.hostname, true)
  // A server with at least one public address counts as public.
  const inside = found.length > 0 && found.every(({ address }) => range(address) === 'private')
  return inside ? 'private' : 'public'
}

/** The error for a host, or a proxy on the way to it, that cannot be reached. */
export function unreachable({ origin }: URL, thrown: unknown): OAuthError {
  const cause = thrown instanceof NoResponse ? thrown.cause : thrown
  const explained = cause instanceof ProxyError || cause instanceof ToolwayError
  const why = explained ? `: ${cause.message.replace(/\.$/, '')}` : ` (${failureReason(cause)})`
  return new OAuthError(`${origin} cannot be reached${why}`, { unreachable: true, cause: thrown })
}
