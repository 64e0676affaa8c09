import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { ProxyError, proxyFor, type WebProxy } from '../../lib/proxy.ts'
import { NoResponse, readWholeBody } from '../transports/http-channel.ts'
import { createHttpChannel } from '../transports/http1/channel.ts'
import { OAuthError, quoted, safeAddress } from './oauth-error.ts'

/** A response; the body is undefined if it is not JSON. */
export interface OAuthHttpResponse {
  readonly status: number
  readonly body: unknown
}

/** Fetches metadata and tokens. The URLs come from servers, so hosts, redirects, size and time are all checked. */
export interface OAuthHttp {
  get(url: URL, reach: Reach): Promise<OAuthHttpResponse>
  post(url: URL, reach: Reach, request: PostRequest): Promise<OAuthHttpResponse>
}

export interface PostRequest {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** Which addresses may be used: a public server must not make us access private ones. */
export type Reach = 'public' | 'private'

/** Classifies an IP address. */
export type PlaceOf = (address: string) => 'public' | 'private' | 'reserved'

export interface WebOptions {
  readonly placeOf: PlaceOf
  /** Names the proxy. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

const withinMs = 10_000
/** About 100× what servers publish. */
const maxBytes = 256 * 1024
const maxRedirects = 3

export function createOAuthHttp({ placeOf, env = process.env, clock }: WebOptions): OAuthHttp {
  return {
    async get(url, reach) {
      let at = url
      for (let redirects = 0; ; redirects++) {
        const answer = await ask(at, reach, { method: 'GET', headers: { accept: 'application/json' } })
        if (answer.location === undefined) return answer
        const next = URL.canParse(answer.location, at.href) ? new URL(answer.location, at.href) : undefined
        // A redirect to another origin would let it speak for this one.
        if (next?.origin !== url.origin)
          throw new OAuthError(`${url.origin} redirects to another origin, which is not followed`)
        if (redirects === maxRedirects) throw new OAuthError(`${url.origin} redirects too often`)
        at = next
      }
    },
    async post(url, reach, { body, headers }) {
      const sent = { accept: 'application/json', ...headers }
      const answer = await ask(url, reach, { method: 'POST', headers: sent, body })
      if (answer.location === undefined) return answer
      throw new OAuthError(`${url.origin} responded with a redirect, which is not followed`)
    },
  }

  async function ask(
    url: URL,
    reach: Reach,
    request: Asked,
  ): Promise<OAuthHttpResponse & { readonly location?: string }> {
    safeAddress(url.href, 'a URL of the authorization server')
    using limit = deadline(
      clock,
      withinMs,
      () =>
        new OAuthError(`${url.origin} did not answer within ${withinMs / 1000} s (a fixed limit)`, {
          unreachable: true,
        }),
    )
    const asked = { ...request, signal: limit.signal }
    try {
      const proxy = proxyFor(url, env)
      const vetted = await vet(url, reach, proxy !== undefined)
      if (proxy === undefined) return await askDirectly(vetted, url, asked)
      const { status, text, location } = await askThrough(proxy, url, asked, { maxBytes, clock })
      return location === undefined ? { status, body: json(text) } : { status, body: undefined, location }
    } catch (thrown) {
      throw thrown instanceof OAuthError ? thrown : unreachable(url, thrown)
    }
  }

  /**
   * Resolves and checks a host. A proxy may resolve hosts that we cannot; what we can resolve must be allowed in any
   * case.
   */
  async function vet({ hostname }: URL, reach: Reach, byProxy: boolean): Promise<readonly Address[]> {
    const host = hostname.replace(/^\[|\]$/g, '')
    const found = isIP(host) ? [{ address: host, family: isIP(host) }] : await addresses(host, byProxy)
    const bad = found.find(({ address }) => {
      const place = placeOf(address)
      return place === 'reserved' || (place === 'private' && reach === 'public')
    })
    if (bad)
      throw new OAuthError(
        `${quoted(hostname)} resolves to a private or reserved address, but was named by a public server`,
      )
    return found
  }
}

interface Address {
  readonly address: string
  readonly family: number
}

interface Asked {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

async function addresses(host: string, mayBeUnknown: boolean): Promise<Address[]> {
  try {
    // Both families of localhost may belong to different programs: use a fixed order.
    return await lookup(host, { all: true, order: 'ipv4first' })
  } catch (cause) {
    if (mayBeUnknown) return []
    throw new OAuthError(`${quoted(host)} cannot be resolved`, { unreachable: true, cause })
  }
}

/** Connects to the checked addresses: the name may resolve differently the next time. */
async function askDirectly(vetted: readonly Address[], url: URL, asked: Asked & { readonly signal: AbortSignal }) {
  const { createHttpClient } = await import('../../lib/http-client.ts')
  const [first] = vetted as [Address, ...Address[]]
  const pinned: LookupFunction = (_, options, done) =>
    options.all ? done(null, [...vetted]) : done(null, first.address, first.family)
  await using client = createHttpClient(url, { connections: 1, connect: { lookup: pinned } }, {})
  const { method, headers, body, signal } = asked
  const path = url.pathname + url.search
  const accepts = (status: number) => status < 300 || status >= 400
  const tooLarge = () => new OAuthError(`${url.origin} responded with more than ${maxBytes / 1024} KiB`)
  const response = await client.fetchText(
    { path, method, headers, body: body ?? null, signal },
    { maxBytes, tooLarge, accepts },
  )
  const { status, text } = response
  if (text === undefined) return { status, body: undefined, location: String(response.headers.location ?? '') }
  return { status, body: json(text) }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A private server may name private addresses, a public one may not. */
export async function reachOf(server: URL, placeOf: PlaceOf): Promise<Reach> {
  const host = server.hostname.replace(/^\[|\]$/g, '')
  const found = isIP(host) ? [host] : (await lookup(host, { all: true }).catch(() => [])).map(({ address }) => address)
  // A server with one public address counts as public.
  const inside = found.length > 0 && found.every((address) => placeOf(address) === 'private')
  return inside ? 'private' : 'public'
}

interface ProxiedRequest {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
}

interface ProxiedResponse {
  readonly status: number
  readonly text: string
  /** Redirect target. */
  readonly location: string | undefined
}

/** Sends a request through a proxy, which resolves the host. */
async function askThrough(
  proxy: WebProxy,
  url: URL,
  { method, headers, body, signal }: ProxiedRequest,
  { maxBytes, clock }: { readonly maxBytes: number; readonly clock: Clock },
): Promise<ProxiedResponse> {
  await using channel = createHttpChannel(url.origin, clock, { proxy })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  // Not awaited if there is no response head.
  promise.catch(() => {})
  const path = url.pathname + url.search
  const sent = body === undefined ? {} : { body: Buffer.from(body) }
  const head = await channel.request({ method, path, headers, ...sent, signal }, (head) =>
    readWholeBody(head, {
      maxLength: maxBytes,
      done: resolve,
      lost: (error) => reject(signal.aborted ? signal.reason : error),
      tooLong: () => reject(new OAuthError(`${url.origin} responded with more than ${maxBytes / 1024} KiB`)),
    }),
  )
  const { status } = head
  if (status >= 300 && status < 400) return { status, text: '', location: head.header('location') ?? '' }
  return { status, text: (await promise).toString(), location: undefined }
}

/** The error for a host that cannot be reached, or a proxy on the way. */
export function unreachable({ origin }: URL, thrown: unknown): OAuthError {
  const cause = thrown instanceof NoResponse ? thrown.cause : thrown
  const { code, name } = cause as NodeJS.ErrnoException
  const told = cause instanceof ProxyError || cause instanceof ToolwayError
  const why = told ? `: ${cause.message.replace(/\.$/, '')}` : ` (${code ?? name})`
  return new OAuthError(`${origin} cannot be reached${why}`, { unreachable: true, cause: thrown })
}
