import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { encodeRequest } from '../requests/encode-request.ts'
import type { InitializedConnection } from './handshake.ts'
import type { RpcConnection } from './rpc-connection.ts'

/** How long to wait for a server that is busy or does not answer pings. */
const pingWithinMs = 1_000
const caughtUpWithinMs = 2_000

/**
 * Sends a ping and waits for the response. Servers send messages in order, so if the server requests roots right after
 * the handshake, that request has arrived by then.
 */
export async function pingOnce({ request }: RpcConnection, clock: Clock): Promise<void> {
  using limit = deadline(clock, pingWithinMs, () => new Error('no answer'))
  await request({ method: 'ping', params: () => undefined, signal: limit.signal }).catch(() => {})
}

/**
 * Resolves when a server has read what it was sent, has begun to run it, and what it sent meanwhile has arrived: messages
 * are read and sent in order. Gives up after a while.
 */
export async function caughtUp(open: InitializedConnection, clock: Clock): Promise<void> {
  const method = open.handshake.era === 'modern' ? 'server/discover' : 'ping'
  using limit = deadline(clock, caughtUpWithinMs, () => new Error('no answer'))
  const { signal } = limit
  const ask = () => open.connection.request(encodeRequest(open, { method, capabilities: {}, signal, repeatable: true }))
  // Twice: a server that reads a call and this request at once may answer the request before the call begins to run.
  for (let count = 0; count < 2 && !signal.aborted; count++) await ask().catch(() => {})
}
