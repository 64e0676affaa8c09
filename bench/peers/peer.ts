import type { Aim } from '../load/orders.ts'
import type { ServerEntry } from '../targets/toolway.ts'

/** Another gateway, in front of one of the echo servers. */
export interface StartedPeer extends AsyncDisposable {
  readonly pid: number
  /** Calls of the echo tool. */
  readonly aim: Aim
}

export interface Peer {
  readonly name: string
  /** What it cannot put itself in front of is not in the list. */
  readonly fronts: readonly ('stdio' | 'http')[]
  /** Rejects with the reason where it cannot be installed or started. */
  start(server: ServerEntry, folder: string): Promise<StartedPeer>
  /** What it must be beaten by, where somebody has said so. */
  readonly leastTimes?: { readonly stdio?: number; readonly http?: number }
  readonly note?: string
}
