import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { bounded } from './bounds.ts'
import type { OwnFields } from './chain.ts'
import type { Unrecorded } from './record.ts'

/** A time in which records cannot be written, and what was missed in it. */
export interface Outage {
  readonly lasts: boolean
  /** How many there were. */
  readonly count: number
  /** Why; empty where all is well. */
  readonly error: string
  /** What nobody has been told yet. */
  readonly unrecorded: Unrecorded
  begins(error: unknown): void
  ends(): void
  /** Records were written that the disk may not have. */
  unsynced(error: unknown, records: number): void
  missed(what: Exclude<keyof Unrecorded, 'unsynced'>, records?: number): void
  /** What the log must say about it before it says anything else. */
  gap(): OwnFields | undefined
  /** It has said so. */
  told(): void
}

const none: Unrecorded = { refused: 0, reads: 0, denials: 0, writes: 0, unsynced: 0 }

export function createOutage({ clock, log }: { readonly clock: Clock; readonly log: Log }): Outage {
  let sinceMs: number | undefined
  let lasts = false
  let count = 0
  let error = ''
  let unrecorded = none

  const begins = (thrown: unknown) => {
    error = thrown instanceof Error ? thrown.message : String(thrown)
    sinceMs ??= clock.now()
    if (lasts) return
    lasts = true
    count++
    log.error({ error }, 'audit records cannot be written; writes are refused until they can')
  }

  return {
    get lasts() {
      return lasts
    },
    get count() {
      return count
    },
    get error() {
      return error
    },
    get unrecorded() {
      return unrecorded
    },
    begins,
    ends: () => {
      if (!lasts) return
      lasts = false
      sinceMs = undefined
      error = ''
      log.info({}, 'audit records are written again')
    },
    unsynced: (thrown, records) => {
      begins(thrown)
      unrecorded = { ...unrecorded, unsynced: unrecorded.unsynced + records }
    },
    missed: (what, records = 1) => {
      unrecorded = { ...unrecorded, [what]: unrecorded[what] + records }
    },
    gap: () => {
      if (unrecorded === none) return undefined
      const since = new Date(sinceMs ?? clock.now()).toISOString()
      return { operation: 'gap', reason: 'unrecorded', error: bounded(error), since, unrecorded }
    },
    told: () => {
      unrecorded = none
    },
  }
}
