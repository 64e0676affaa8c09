import { type Dispatcher, Pool, ProxyAgent } from 'undici'
import { proxyFor, type WebProxy } from './proxy.ts'
import { proxyRefused, proxyUnreachable } from './proxy-failure.ts'

/** The way to an address that the operator has named. */
export interface WayOut extends AsyncDisposable {
  request(asked: Omit<Dispatcher.RequestOptions, 'origin'>): Promise<Dispatcher.ResponseData>
}

/**
 * Straight, or through the proxy that the environment names for the address: then failures tell which of the two it was.
 * Throws where a proxy is named that cannot be used.
 */
export function openWay(url: URL, options: Pool.Options, env = process.env): WayOut {
  const proxy = proxyFor(url, env)
  const dispatcher = proxy ? through(proxy, options) : new Pool(url.origin, options)
  // To a proxy that is handed each request, these are not passed on with the options.
  const { headersTimeout, bodyTimeout } = options
  const patience = {
    ...(headersTimeout !== undefined && { headersTimeout }),
    ...(bodyTimeout !== undefined && { bodyTimeout }),
  }
  return {
    async request(asked) {
      try {
        return await dispatcher.request({ ...asked, ...patience, origin: url.origin })
      } catch (thrown) {
        throw proxy && thrown instanceof Error ? ofProxy(thrown, proxy, url) : thrown
      }
    },
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  }
}

const through = ({ origin, authorization }: WebProxy, options: Pool.Options): ProxyAgent =>
  new ProxyAgent({ ...options, uri: origin, ...(authorization !== undefined && { token: authorization }) })

/** Whom a failure on the way is of: later ones may be the server's, seen through a tunnel. */
function ofProxy(error: Error, proxy: WebProxy, to: URL): Error {
  const status = /^Proxy .*\((\d{3})\)/.exec(error.message)?.[1]
  if (status !== undefined) return proxyRefused(proxy, to, Number(status))
  const { code = '' } = error as NodeJS.ErrnoException
  return onTheWay.has(code) ? proxyUnreachable(proxy, to, error) : error
}

const onTheWay: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_PRX_TLS', 'UND_ERR_PRX_CONN'],
])
