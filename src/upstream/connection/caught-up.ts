import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { encodeRequest } from '../requests/encode-request.ts'
import type { InitializedConnection } from './handshake.ts'

/** How long to wait for a server that is busy or does not know the request. */
const withinMs = 2_000

/**
 * Resolves when a server has read what it was sent, has begun to run it, and what it sent meanwhile has arrived: messages
 * are read and sent in order. Gives up after a while.
 */
export async function caughtUp(open: InitializedConnection, clock: Clock): Promise<void> {
  const method = open.handshake.era === 'modern' ? 'server/discover' : 'ping'
  using limit = deadline(clock, withinMs, () => new Error('no answer'))
  const { signal } = limit
  const ask = () => open.connection.request(encodeRequest(open, { method, capabilities: {}, signal, repeatable: true }))
  // Twice: a server that reads a call and this request at once may answer the request before the call begins to run.
  for (let count = 0; count < 2 && !signal.aborted; count++) await ask().catch(() => {})
}
