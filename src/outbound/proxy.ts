import { BlockList, isIP } from 'node:net'
import { ToolwayError } from '../core/errors.ts'
import { basicAuthOf, urlSecrets } from '../lib/basic-auth.ts'

/** A proxy that stands between us and the servers out there. */
export interface WebProxy {
  /** Its address without the credential: this may be told. */
  readonly origin: string
  /** The value of `Proxy-Authorization`, where its address has a user in it. */
  readonly authorization: string | undefined
  /** The variable that names it. */
  readonly variable: string
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy that the environment names for an address, read as curl reads it; undefined where there is none or the
 * address is of this machine. Throws SERVER_UNAVAILABLE where one is named that cannot be used: going without it would
 * go around whoever set it.
 */
export function proxyFor({ protocol, hostname, port }: URL, env: Environment): WebProxy | undefined {
  const host = plainHost(hostname)
  if (isOurs(host)) return undefined
  const scheme = protocol === 'https:' ? 'https' : 'http'
  const variable = variablesOf(scheme).find((name) => env[name]?.trim())
  if (variable === undefined) return undefined
  const exceptions = env.no_proxy?.trim() || env.NO_PROXY
  if (isExcepted(host, port || (scheme === 'https' ? '443' : '80'), exceptions ?? '')) return undefined
  const url = read(env[variable] ?? '')
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    const found = url ? `a proxy that is asked by ${url.protocol.slice(0, -1)}` : 'no address'
    const sentence = `${variable} names ${found}. Write it as http://HOST:PORT, or put ${host} into NO_PROXY.`
    throw new ToolwayError('SERVER_UNAVAILABLE', sentence, { unsent: true })
  }
  return { origin: url.origin, authorization: basicAuthOf(url), variable }
}

/** What must never be told of the proxies in an environment. */
export function proxySecrets(env: Environment): string[] {
  const named = [...variablesOf('https'), ...variablesOf('http')].map((name) => read(env[name] ?? ''))
  return named.flatMap((url) => (url?.password ? urlSecrets(url) : []))
}

const variablesOf = (scheme: 'http' | 'https'): readonly string[] =>
  [scheme, 'all'].flatMap((name) => [`${name}_proxy`, `${name}_PROXY`.toUpperCase()])

/** Many leave the scheme out. */
function read(text: string): URL | undefined {
  const trimmed = text.trim()
  const whole = trimmed.includes('://') ? trimmed : `http://${trimmed}`
  return URL.canParse(whole) ? new URL(whole) : undefined
}

/** Without the brackets of IPv6 and the dot that may stand at the end of a name. */
const plainHost = (host: string): string => host.toLowerCase().replace(/^\[|\]$|\.$/g, '')

const thisMachine = new BlockList()
thisMachine.addSubnet('127.0.0.0', 8)
thisMachine.addAddress('0.0.0.0')
thisMachine.addAddress('::1', 'ipv6')
thisMachine.addAddress('::', 'ipv6')

const isOurs = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || (isIP(host) !== 0 && thisMachine.check(host, family(host)))

const family = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Whether a list of hosts, `.suffixes`, `host:port`, addresses and networks, or `*`, names this one. */
function isExcepted(host: string, port: string, list: string): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false
    if (entry === '*') return true
    const [, network, bits] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? []
    if (network !== undefined) return isWithin(host, plainHost(network), Number(bits))
    const [, before = '', only] = isIP(entry) ? [entry, entry] : (/^(.*?)(?::(\d+))?$/.exec(entry) ?? [])
    if (only !== undefined && only !== port) return false
    const name = plainHost(before).replace(/^\*?\./, '')
    if (isIP(host)) return isIP(name) !== 0 && isWithin(host, name, isIP(name) === 6 ? 128 : 32)
    return name !== '' && (host === name || host.endsWith(`.${name}`))
  })
}

function isWithin(host: string, network: string, bits: number): boolean {
  if (!isIP(host) || !isIP(network) || bits > (isIP(network) === 6 ? 128 : 32)) return false
  const addresses = new BlockList()
  addresses.addSubnet(network, bits, family(network))
  return addresses.check(host, family(host))
}
