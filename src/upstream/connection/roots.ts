import { hash } from 'node:crypto'
import type { Peer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { RpcConnection } from './rpc-connection.ts'

/**
 * Roots of callers without a session. Each call may come from another program with other roots, while a server asks for
 * them once and keeps them. So every call is asked for its roots, and uses a connection that was given the same ones.
 */
export interface ClientRoots {
  /** The roots of one call; asked once, however many want to know. Undefined if its client does not tell. */
  of(peer: Peer, signal: AbortSignal): Promise<Json | undefined>
}

export function createClientRoots(): ClientRoots {
  const asked = new WeakMap<Peer, Promise<Json | undefined>>()
  return {
    of(peer, signal) {
      const known = asked.get(peer)
      if (known) return known
      const roots = peer.ask('roots/list', Json.of({}), signal).catch((thrown) => {
        // A call that is over has no use for a connection.
        if (signal.aborted || (thrown instanceof ToolwayError && thrown.code === 'CANCELLED')) throw thrown
        return undefined
      })
      asked.set(peer, roots)
      return roots
    },
  }
}

export const rootsKey = (roots: Json): string =>
  hash('sha256', JSON.stringify((roots.value as { roots?: unknown }).roots ?? []), 'base64url').slice(0, 22)

/** How long a server may take to answer a ping, after which it is not waited for. */
const pingWithinMs = 1_000
/** How long calls wait for a client that has declared roots and does not tell them. */
const tellWithinMs = 5_000
/** A server looks at the folders it was told before it uses them, and says nothing when it has done so. */
const applyPings = 5
const applyPauseMs = 50

/** Settles when a server that asks for roots right after the handshake has asked: it reads messages in order. */
export async function pingOnce({ request }: RpcConnection, clock: Clock): Promise<void> {
  using limit = deadline(clock, pingWithinMs, () => new Error('no answer'))
  await request({ method: 'ping', params: () => undefined, signal: limit.signal }).catch(() => {})
}

/** Settles when a server that was told roots has had the time to apply them; a busy server gets more of it. */
export async function rootsApplied(connection: RpcConnection | undefined, clock: Clock): Promise<void> {
  for (let ping = 0; connection && ping < applyPings; ping++) {
    await pause(clock, applyPauseMs)
    await pingOnce(connection, clock)
  }
}

/** Waits for roots that a server has asked for, but not for a client that never tells them. */
export async function waitForRoots(roots: Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  using limit = deadline(clock, tellWithinMs, () => new Error('not told'), signal)
  await waitFor(roots, limit.signal).catch((error) => {
    if (signal.aborted) throw error
  })
}

const pause = (clock: Clock, ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))
