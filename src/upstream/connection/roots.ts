import { hash } from 'node:crypto'
import type { Call, Peer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, pause, waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { pingOnce } from './ping.ts'
import type { RpcConnection } from './rpc-connection.ts'

/** The only client of a connection, and the state of its roots. */
export interface ConnectionOwner {
  /** The key of the connection in `owned`; set for an owner without a session. */
  key?: string | undefined
  roots?: Json
  readonly rooted: PromiseWithResolvers<Json>
  /** Resolves when the server has had time to ask for roots. */
  greeting?: Promise<void> | undefined
  /** Resolves when a server that asked for roots has applied them. */
  rooting?: Promise<void> | undefined
  /** The owner's calls on this connection, including those that are waiting for it to open. */
  readonly users: Set<Pick<Call, 'caller' | 'peer' | 'signal'>>
  /** The route to the owner's client outside any call, if there is one. */
  peer?: Peer | undefined
}

/**
 * Returns a function that requests the roots for a call once and resolves with undefined if the client does not provide
 * them. It is for callers without a session: each of their calls may come from a different program with different
 * roots, while a server asks for roots once and keeps them. So the client is asked for its roots in every call, and the
 * call uses a connection whose server was given the same roots.
 */
export function createRootsOf(): (peer: Peer, signal: AbortSignal) => Promise<Json | undefined> {
  const requested = new WeakMap<Peer, Promise<Json | undefined>>()
  return (peer, signal) => {
    const known = requested.get(peer)
    if (known) return known
    const roots = peer.ask('roots/list', Json.of({}), signal).catch((thrown) => {
      // Rethrow if the call has ended, because it no longer needs a connection.
      if (signal.aborted || (thrown instanceof ToolwayError && thrown.code === 'CANCELLED')) throw thrown
      return undefined
    })
    requested.set(peer, roots)
    return roots
  }
}

export const rootsKey = (roots: Json): string =>
  hash('sha256', JSON.stringify((roots.value as { roots?: unknown }).roots ?? []), 'base64url').slice(0, 22)

/** How long calls wait for a client that declared roots but does not provide them. */
const tellWithinMs = 5_000
/** How many pings give a server time to apply its roots; servers do not report when they have applied them. */
const applyPings = 5
const applyPauseMs = 50

/** Gives a server time to apply its roots. A busy server responds to pings more slowly, so it gets more time. */
export async function rootsApplied(connection: RpcConnection | undefined, clock: Clock): Promise<void> {
  for (let ping = 0; connection && ping < applyPings; ping++) {
    await pause(clock, applyPauseMs)
    await pingOnce(connection, clock)
  }
}

/** Waits until the server has its roots. Gives up after a while if the client does not provide them. */
export async function waitForRoots(roots: Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  using limit = deadline(clock, tellWithinMs, () => new Error('not told'), signal)
  await waitFor(roots, limit.signal).catch((error) => {
    if (signal.aborted) throw error
  })
}
