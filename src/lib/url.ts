import { BlockList, isIP } from 'node:net'

/** The value of an Authorization header (RFC 7617). */
export const basicAuth = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** The value of an Authorization header for the credentials in a URL; undefined if the URL has none. */
export function basicAuthOf({ username, password }: URL): string | undefined {
  return username === '' && password === '' ? undefined : basicAuth(decodePercent(username), decodePercent(password))
}

/** Every spelling of a URL's password, for redaction: as written, decoded, and encoded as in the header. */
export function urlSecrets(url: URL): string[] {
  const authorization = basicAuthOf(url)
  return authorization === undefined
    ? []
    : [url.password, decodePercent(url.password), authorization.slice('Basic '.length)].filter(
        (secret) => secret !== '',
      )
}

/** Decodes percent escapes. Returns the text unchanged if a `%` in it does not begin an escape. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')
// The IPv4 subnet also matches IPv4-mapped IPv6 addresses.

/**
 * Whether a host is a loopback address or localhost. Other names do not count: they may resolve to any address. IPv6
 * addresses may have brackets, as in `URL.hostname`.
 */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^\[(.*)\]$/, '$1')
  const family = isIP(plain)
  return family === 0 ? plain.toLowerCase() === 'localhost' : loopback.check(plain, family === 6 ? 'ipv6' : 'ipv4')
}

/** Whether traffic to a URL is protected: it uses TLS or stays on this machine. */
export const isProtected = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
