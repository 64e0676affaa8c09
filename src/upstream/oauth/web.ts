import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { rangeOf } from '../../egress/addresses.ts'
import { ProxyError, proxyFor } from '../../egress/proxy.ts'
import { parseJson } from '../../json/parse-json.ts'
import { failureReason, quoteAscii } from '../../lib/message-text.ts'
import { isProtected } from '../../lib/url.ts'
import { NoResponse } from '../transports/http-channel.ts'

/** Thrown if no token could be obtained. Has a message without secrets, and the authorization server's error code. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: string | undefined
  /** Whether a host could not be reached, which says nothing about the credential. */
  readonly unreachable: boolean

  constructor(message: string, details: { code?: string | undefined; unreachable?: boolean; cause?: unknown } = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = details.code
    this.unreachable = details.unreachable ?? false
  }
}

/** Whether the authorization server does not know the client, or no longer accepts its secret. */
export const isClientRejected = (error: unknown): boolean =>
  error instanceof OAuthError && (error.code === 'invalid_client' || error.code === 'unauthorized_client')

/** Returns text only if it looks like an error code: anything else may be a secret, and codes reach logs and models. */
export const codeIn = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[A-Za-z][A-Za-z_]{0,40}$/.test(text) ? text : undefined

/** Quotes an untrusted URL or host, in which some letters look like those of another site. */
export const quoteAddress = (text: unknown): string => quoteAscii(String(text), 200)

/** Parses a URL that credentials may be sent to: https, or loopback. `what` names the URL in the error. */
export function parseProtectedUrl(text: string, what: string): URL {
  // Check the text itself, because messages show it: the URL parser drops line breaks and encodes non-ASCII characters.
  if (!/^[\x21-\x7e]{1,2048}$/.test(text) || !URL.canParse(text))
    throw new OAuthError(`${what} is not a valid URL: ${quoteAddress(text)}`)
  const url = new URL(text)
  if (!isProtected(url)) throw new OAuthError(`${what} does not use https: ${quoteAddress(url.origin)}`)
  if (url.username !== '' || url.password !== '') throw new OAuthError(`${what} contains credentials`)
  return url
}

/** Whether two URLs have the same origin, or one's host is a subdomain of the other's. Siblings do not count. */
export function isSameSite(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true
  const isWithin = (part: URL, whole: URL) => part.hostname.endsWith(`.${whole.hostname}`)
  return one.protocol === other.protocol && (isWithin(one, other) || isWithin(other, one))
}

/** A response; the body is undefined if it is not JSON. */
export interface OAuthHttpResponse {
  readonly status: number
  readonly body: unknown
}

/** Which addresses may be used: a public server must not make Toolway access private addresses. */
export type Reach = 'public' | 'private'

const respondWithinMs = 10_000
/** The maximum size of a response, about 100 times what servers publish. */
const maxResponseBytes = 256 * 1024
const maxMetadataRedirects = 3

/** Fetches metadata and tokens. The URLs come from servers, so hosts, redirects, size and time are all limited. */
export class OAuthHttp {
  readonly #clock: Clock
  /** The environment variables that name the proxy. */
  readonly #env: Readonly<Record<string, string | undefined>>

  constructor(clock: Clock, env: Readonly<Record<string, string | undefined>> = process.env) {
    this.#clock = clock
    this.#env = env
  }

  async get(url: URL, reach: Reach): Promise<OAuthHttpResponse> {
    let at = url
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#ask(at, reach, { method: 'GET', headers: { accept: 'application/json' } })
      if (answer.location === undefined) return answer
      const next = URL.canParse(answer.location, at.href) ? new URL(answer.location, at.href) : undefined
      // Refuse a redirect to another origin, because that origin could then impersonate this one.
      if (next?.origin !== url.origin)
        throw new OAuthError(`${url.origin} redirects to another origin, and such redirects are not followed`)
      if (redirects === maxMetadataRedirects) throw new OAuthError(`${url.origin} redirects too many times`)
      at = next
    }
  }

  async post(url: URL, reach: Reach, request: Omit<Required<OAuthRequest>, 'method'>): Promise<OAuthHttpResponse> {
    const headers = { accept: 'application/json', ...request.headers }
    const answer = await this.#ask(url, reach, { method: 'POST', headers, body: request.body })
    if (answer.location === undefined) return answer
    throw new OAuthError(`${url.origin} responded with a redirect, and redirects are not followed`)
  }

  async #ask(url: URL, reach: Reach, request: OAuthRequest): Promise<OAuthHttpResponse & { location?: string }> {
    parseProtectedUrl(url.href, 'an authorization server URL')
    const slow = `${url.origin} did not answer within ${respondWithinMs / 1000} s (a fixed limit)`
    using limit = deadline(this.#clock, respondWithinMs, () => new OAuthError(slow, { unreachable: true }))
    const tooLarge = () => new OAuthError(`${url.origin} responded with more than ${maxResponseBytes / 1024} KiB`)
    const accepts = (status: number) => status < 300 || status >= 400
    try {
      const { createHttpClient, pinnedLookup } = await import('../../egress/http-client.ts')
      const checked = await checkHost(url, reach, proxyFor(url, this.#env) !== undefined)
      // Connect only to the checked addresses, because the name may resolve differently the next time.
      const options = { connections: 1, connect: { lookup: pinnedLookup(checked) } }
      await using client = createHttpClient(url, options, this.#env)
      const path = url.pathname + url.search
      const limits = { maxBytes: maxResponseBytes, tooLarge, accepts }
      const { status, headers, text } = await client.fetchText({ ...request, path, signal: limit.signal }, limits)
      if (text === undefined) return { status, body: undefined, location: String(headers.location ?? '') }
      return { status, body: parseJson(text) }
    } catch (thrown) {
      throw thrown instanceof OAuthError ? thrown : unreachableError(url, thrown)
    }
  }
}

/**
 * Resolves a host and checks its addresses. A proxy may be able to resolve hosts that Toolway cannot; but if Toolway
 * can resolve a host, its addresses must always be allowed.
 */
async function checkHost({ hostname }: URL, reach: Reach, byProxy: boolean): Promise<readonly LookupAddress[]> {
  const found = await addresses(hostname, byProxy)
  const bad = found.find(({ address }) => {
    const place = rangeOf(address)
    return place === 'reserved' || (place === 'private' && reach === 'public')
  })
  if (!bad) return found
  const sentence = `${quoteAddress(hostname)} resolves to a private or reserved address, but a public server referred to it`
  throw new OAuthError(sentence)
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
    throw new OAuthError(`${quoteAddress(host)} cannot be resolved`, { unreachable: true, cause })
  }
}

/** Which addresses a server may refer to: a private server may name private addresses, a public one may not. */
export async function reachOf(server: URL, range = rangeOf): Promise<Reach> {
  const found = await addresses(server.hostname, true)
  // A server with at least one public address counts as public.
  const inside = found.length > 0 && found.every(({ address }) => range(address) === 'private')
  return inside ? 'private' : 'public'
}

export function unreachableError({ origin }: URL, thrown: unknown): OAuthError {
  const cause = thrown instanceof NoResponse ? thrown.cause : thrown
  const explained = cause instanceof ProxyError || cause instanceof ToolwayError
  const why = explained ? `: ${cause.message.replace(/\.$/, '')}` : ` (${failureReason(cause)})`
  return new OAuthError(`${origin} cannot be reached${why}`, { unreachable: true, cause: thrown })
}
