import { Json } from '../json/json.ts'
import { asRecord } from '../lib/is-record.ts'
import type { Peer } from './call.ts'
import type { Clock } from './clock.ts'

export interface Wait {
  readonly signal?: AbortSignal
  /** How long to wait for each server; defaults to the server's call timeout. */
  readonly timeoutMs?: number | undefined
  /** The name of the parameter that sets `timeoutMs`, if it is not `timeout_ms`. */
  readonly timeoutKey?: string
  /** Called every second while waiting. */
  progress?(waitedMs: number, servers: readonly string[]): void
}

const progressEveryMs = 1_000

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

/** Sends a progress notification while a call waits for servers. */
export function notifyWaiting(
  meta: Readonly<Record<string, unknown>>,
  peer: Pick<Peer, 'notify'>,
  waitedMs: number,
  servers: readonly string[],
): void {
  notifyWaitingFor(meta, peer, waitedMs, `${servers.join(', ')} to start`)
}

export function progressValues(params: Json) {
  const { progress, total, message } = asRecord(params.value)
  return {
    progress: typeof progress === 'number' ? progress : null,
    total: typeof total === 'number' ? total : null,
    message: typeof message === 'string' ? message : null,
  }
}

const notices = new WeakSet<Json>()

/** Whether Toolway itself sends this progress notification because a call waits. */
export const isWaitingNotice = (params: Json): boolean => notices.has(params)

/**
 * Sends a progress notification while a call waits for something. The values stay far below 1, because the tool's own
 * progress follows under the same token. The caller's peer raises values that are not higher than the last one.
 */
export function notifyWaitingFor(
  { progressToken }: Readonly<Record<string, unknown>>,
  peer: Pick<Peer, 'notify'>,
  waitedMs: number,
  what: string,
): void {
  if (progressToken === undefined) return
  const message = `Waiting for ${what} (${Math.round(waitedMs / 1000)} s).`
  const params = Json.of({ progressToken, progress: waitedMs / 1e9, message })
  notices.add(params)
  peer.notify('notifications/progress', params)
}
