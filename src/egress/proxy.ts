import { BlockList, isIP } from 'node:net'
import { basicAuthOf, isLoopback, urlSecrets } from '../lib/url.ts'

export interface WebProxy {
  /** The proxy's URL without credentials, for messages. */
  readonly origin: string
  /** The value of `Proxy-Authorization`, if the proxy's URL has credentials. */
  readonly authorization: string | undefined
  readonly variable: string
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy that the environment names for a URL, following curl's rules; undefined if it names none, and for loopback
 * addresses. Throws a ProxyError if the environment names an unusable proxy: connecting without it would bypass the
 * operator's setting.
 */
export function proxyFor({ protocol, hostname, port }: URL, env: Environment): WebProxy | undefined {
  const host = plainHost(hostname)
  if (isThisMachine(host)) return undefined
  const scheme = protocol === 'https:' ? 'https' : 'http'
  const variable = proxyVariables(scheme).find((name) => env[name]?.trim())
  if (variable === undefined) return undefined
  const exceptions = env.no_proxy?.trim() || env.NO_PROXY
  if (isExcepted(host, port || (scheme === 'https' ? '443' : '80'), exceptions ?? '')) return undefined
  const url = parseProxy(env[variable] ?? '')
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const problem = url ? `names a ${url.protocol.slice(0, -1)} proxy, which is not supported` : 'is not a URL'
    throw new ProxyError(`${variable} ${problem}. Write it as http://HOST:PORT, or add ${host} to NO_PROXY.`)
  }
  return { origin: url.origin, authorization: basicAuthOf(url), variable }
}

/** The passwords of the proxies that the environment names, for redaction. */
export function proxySecrets(env: Environment): string[] {
  const named = [...proxyVariables('https'), ...proxyVariables('http')].map((name) => parseProxy(env[name] ?? ''))
  return named.flatMap((url) => (url?.password ? urlSecrets(url) : []))
}

const proxyVariables = (scheme: 'http' | 'https'): readonly string[] =>
  [scheme, 'all'].flatMap((name) => [`${name}_proxy`, `${name}_PROXY`.toUpperCase()])

/** Parses a proxy URL. The scheme is often omitted and defaults to http. */
function parseProxy(text: string): URL | undefined {
  const trimmed = text.trim()
  const whole = trimmed.includes('://') ? trimmed : `http://${trimmed}`
  return URL.canParse(whole) ? new URL(whole) : undefined
}

/** A host name in lower case, without the brackets of IPv6 addresses and without a trailing dot. */
const plainHost = (host: string): string => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')

const isThisMachine = (host: string): boolean =>
  isLoopback(host) || host.endsWith('.localhost') || host === '0.0.0.0' || host === '::'

const family = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Whether NO_PROXY includes this host. Entries are hosts, `.suffixes`, `host:port`, addresses, networks or `*`. */
function isExcepted(host: string, port: string, list: string): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false
    if (entry === '*') return true
    const [, network, bits] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? []
    if (network !== undefined) return isInNetwork(host, plainHost(network), Number(bits))
    const [, before = '', only] = isIP(entry) ? [entry, entry] : (/^(.*?)(?::(\d+))?$/.exec(entry) ?? [])
    if (only !== undefined && only !== port) return false
    const name = plainHost(before).replace(/^\*?\./, '')
    if (isIP(host)) return isIP(name) !== 0 && isInNetwork(host, name, isIP(name) === 6 ? 128 : 32)
    return name !== '' && (host === name || host.endsWith(`.${name}`))
  })
}

function isInNetwork(host: string, network: string, bits: number): boolean {
  if (!isIP(host) || !isIP(network) || bits > (isIP(network) === 6 ? 128 : 32)) return false
  const addresses = new BlockList()
  addresses.addSubnet(network, bits, family(network))
  return addresses.check(host, family(host))
}

/** Thrown if a request failed at the proxy; the message says why and what to do. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError'
  readonly code = 'PROXY'
}

export function proxyUnreachable({ origin, variable }: WebProxy, to: URL, cause: Error): Error {
  const { code: reason } = cause as NodeJS.ErrnoException
  // An error without a code does not come from the proxy: we closed the connection ourselves.
  if (cause instanceof ProxyError || reason === undefined) return cause
  const advice = `Check ${variable}, or add ${to.hostname} to NO_PROXY.`
  return new ProxyError(`the proxy ${origin} cannot be reached or does not answer (${reason}). ${advice}`, { cause })
}

export function proxyRefused({ origin, variable, authorization }: WebProxy, to: URL, status: number): ProxyError {
  if (status === 407) {
    const [does, advice] = authorization
      ? ['rejects the user name and password', `Correct them in ${variable}`]
      : ['requires a user name and password', `Put them before the host in ${variable}: USER:PASSWORD@HOST`]
    return new ProxyError(`the proxy ${origin} ${does} (HTTP 407). ${advice}.`)
  }
  const [does, advice] =
    status >= 500
      ? ['cannot reach', 'Check that it is running and that its address is correct']
      : ['does not allow', "Ask the proxy's operator to allow it"]
  return new ProxyError(
    `the proxy ${origin} ${does} ${to.host} (HTTP ${status}). ${advice}, or add ${to.hostname} to NO_PROXY.`,
  )
}
