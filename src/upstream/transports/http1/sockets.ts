import { connect, type OnReadOpts, type Socket } from 'node:net'
import type { connect as TlsConnect } from 'node:tls'
import type { WebProxy } from '../../../outbound/proxy.ts'
import { proxyRefused } from '../../../outbound/proxy-failure.ts'
import { BadAnswer } from './bad-answer.ts'
import { headLength, maxHead, readHead, refuseBareLf } from './head.ts'

export interface SocketOptions {
  /** What reads it, where it is not read as a stream. */
  readonly onread?: OnReadOpts
  /** A connection that leads there already. */
  readonly socket?: Socket
}

/** Opens a connection to an origin, encrypted where its address says so. */
export function openSocket(to: URL, tls: typeof TlsConnect | undefined, options: SocketOptions): Socket {
  const host = hostOf(to)
  const port = portOf(to)
  if (tls === undefined || to.protocol !== 'https:') return connect({ host, port, ...options })
  const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host }
  // The types do not know that it can be read this way, too.
  return tls({ host, port, ...servername, ALPNProtocols: ['http/1.1'], ...(options as object) })
}

/** When a connection can be written to. */
export const readyEvent = ({ protocol }: URL): 'secureConnect' | 'connect' =>
  protocol === 'https:' ? 'secureConnect' : 'connect'

/** No proxy says more than this to a request for a tunnel. */

/** Asks a proxy to lead us to an origin. `opened` gets the connection once it does; `lost` hears why it does not. */
export function openTunnel(
  { proxy, to, tls }: { readonly proxy: WebProxy; readonly to: URL; readonly tls: typeof TlsConnect },
  { opened, lost }: { opened(socket: Socket): void; lost(why: Error): void },
): Socket {
  const via = new URL(proxy.origin)
  const socket = openSocket(via, tls, {})
  const target = `${to.hostname}:${portOf(to)}`
  const authorization = proxy.authorization === undefined ? '' : `proxy-authorization: ${proxy.authorization}\r\n`
  const closed = () => lost(closedError())
  let said: Buffer = Buffer.alloc(0)
  const read = (chunk: Buffer) => {
    said = Buffer.concat([said, chunk])
    try {
      const length = headLength(said, 0)
      if (length === 0) {
        refuseBareLf(said, 0)
        if (said.length > maxHead) throw new BadAnswer('its head is too long')
        return
      }
      const { status } = readHead(said.toString('latin1', 0, length))
      if (status < 200 || status > 299) throw proxyRefused(proxy, to, status)
      // Whoever is at the other end waits for us to speak first.
      if (said.length > length) throw new BadAnswer('it speaks unasked')
      // From here on whoever takes it over hears of its end, after all that came through it.
      socket.off('data', read).off('close', closed).pause()
      opened(socket)
    } catch (error) {
      lost(error as Error)
    }
  }
  socket.on('data', read).on('error', lost).on('close', closed)
  socket.once(readyEvent(via), () => {
    socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${authorization}\r\n`, 'latin1')
  })
  return socket
}

export const closedError = (): Error => Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80)
