import type { LookupFunction } from 'node:net'
import { type Dispatcher, Pool, ProxyAgent } from 'undici'
import { proxyFor, proxyRefused, proxyUnreachable, type WebProxy } from './proxy.ts'
import { readBounded } from './read-bounded.ts'

type HttpClientRequest = Omit<Dispatcher.RequestOptions, 'origin'>

interface TextLimits {
  readonly maxBytes: number
  tooLarge(): Error
  accepts(status: number): boolean
}

/** HTTP requests to one origin, directly or through the proxy that the environment names for it. */
export type HttpClient = ReturnType<typeof createHttpClient>

/** Creates a client for the origin of `url`. Throws a ProxyError if the environment names an unusable proxy. */
export function createHttpClient(
  url: URL,
  options: Pool.Options,
  env: Readonly<Record<string, string | undefined>> = process.env,
) {
  const proxy = proxyFor(url, env)
  const dispatcher = proxy
    ? new ProxyAgent({ ...options, uri: proxy.origin, token: proxy.authorization })
    : new Pool(url.origin, options)
  // Set these timeouts on each request, because a forwarding proxy agent ignores them as options.
  const { headersTimeout, bodyTimeout } = options

  const request = async (asked: HttpClientRequest): Promise<Dispatcher.ResponseData> => {
    try {
      return await dispatcher.request({ headersTimeout, bodyTimeout, ...asked, origin: url.origin })
    } catch (thrown) {
      throw proxy && thrown instanceof Error ? proxyErrorOf(thrown, proxy, url) : thrown
    }
  }

  return {
    request,
    /** Reads the whole body, up to a limit, if the status is accepted. Otherwise discards it; `text` is undefined. */
    async fetchText(asked: HttpClientRequest, { maxBytes, tooLarge, accepts }: TextLimits) {
      const { statusCode: status, headers, body } = await request(asked)
      // Without a listener, an error in a discarded body would crash the process.
      body.on('error', () => {})
      if (accepts(status)) return { status, headers, text: String(await readBounded(body, maxBytes, tooLarge)) }
      body.destroy()
      return { status, headers, text: undefined }
    },
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  }
}

/** A lookup function that returns only these addresses, even if the name resolves differently later. */
export const pinnedLookup =
  (addresses: readonly { readonly address: string; readonly family: number }[]): LookupFunction =>
  (_host, { all }, done) => {
    const [first] = addresses
    if (all) done(null, [...addresses])
    else if (first) done(null, first.address, first.family)
    else done(new Error('no address'), '', 0)
  }

/** Reports connection failures as proxy errors. Later failures may come from the server, through the proxy's tunnel. */
function proxyErrorOf(error: Error, proxy: WebProxy, to: URL): Error {
  const status = /^Proxy .*\((\d{3})\)/.exec(error.message)?.[1]
  if (status !== undefined) return proxyRefused(proxy, to, Number(status))
  const { code = '' } = error as NodeJS.ErrnoException
  return connectionFailures.has(code) ? proxyUnreachable(proxy, to, error) : error
}

const connectionFailures: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_PRX_TLS', 'UND_ERR_PRX_CONN'],
])
