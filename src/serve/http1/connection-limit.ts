import type { Socket } from 'node:net'
import { networkOf } from '../authenticate/address-limit.ts'

/** What a connection beyond the limit is told before it is closed. */
const refusal = 'HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n'

/** Bounds the connections of one address (IPv6: of a /64). False for one too many, which is refused and closed. */
export function createConnectionLimit(max: number): (socket: Socket) => boolean {
  const open = new Map<string, number>()
  return (socket) => {
    const network = networkOf(socket.remoteAddress ?? '')
    const count = open.get(network) ?? 0
    if (count >= max) {
      socket.on('error', () => {})
      socket.end(refusal)
      socket.destroySoon()
      return false
    }
    open.set(network, count + 1)
    socket.once('close', () => {
      const left = (open.get(network) ?? 1) - 1
      if (left > 0) open.set(network, left)
      else open.delete(network)
    })
    return true
  }
}
