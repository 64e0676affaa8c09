import type { Peer } from './call.ts'
import type { Clock } from './clock.ts'
import { Json } from './json.ts'

/** How long somebody waits for servers that are still starting, and who hears of it. */
export interface Wait {
  /** Ends the waiting with its reason. */
  readonly signal?: AbortSignal
  /** For each server; its own call timeout, if none is given. */
  readonly timeoutMs?: number | undefined
  /** Called every second with the servers that are still starting. */
  progress?(waitedMs: number, servers: readonly string[]): void
}

const progressEveryMs = 1_000

/** Calls `tick` every second until disposed of. */
export function everySecond(clock: Clock, tick: () => void): Disposable {
  let timer: Disposable
  const next = () => {
    timer = clock.after(progressEveryMs, () => {
      next()
      tick()
    })
  }
  next()
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }
}

/**
 * Tells a caller that asked for progress what its call is waiting for. The numbers stay far below 1, so that what the
 * tool itself reports under the same token later is larger.
 */
export function tellWaiting(
  { progressToken }: Readonly<Record<string, unknown>>,
  peer: Pick<Peer, 'notify'>,
  waitedMs: number,
  servers: readonly string[],
): void {
  if (progressToken === undefined) return
  const message = `Waiting for ${servers.join(', ')} to start (${Math.round(waitedMs / 1000)} s).`
  peer.notify('notifications/progress', Json.of({ progressToken, progress: waitedMs / 1e9, message }))
}
