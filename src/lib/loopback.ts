import { BlockList, isIP } from 'node:net'

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
