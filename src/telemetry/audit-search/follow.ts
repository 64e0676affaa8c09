import type { Clock } from '../../core/clock.ts'
import { type Position, readRecords, type StoredRecord } from '../audit/read.ts'
import { mergeLanes } from './merge.ts'

export interface FollowOptions {
  readonly folder: string
  /** Where each lane goes on; new lanes are read from their beginning. */
  readonly from: Readonly<Record<string, Position>>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly everyMs?: number
}

/** New records as they are written, by whichever process; what comes at once is put in the order of time. */
export async function* followRecords(options: FollowOptions): AsyncGenerator<readonly StoredRecord[]> {
  const { folder, clock, signal, everyMs = 200 } = options
  const positions: Record<string, Position> = { ...options.from }
  while (!signal.aborted) {
    const records: StoredRecord[] = []
    for await (const stored of readRecords(folder, { from: positions })) records.push(stored)
    for (const { lane, file, offset, bytes } of records) positions[lane] = { file, offset: offset + bytes }
    if (records.length > 0) yield mergeLanes(records)
    await passed(everyMs, clock, signal)
  }
}

/** Time has passed, or nobody wants to wait any longer. */
export async function passed(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _ = clock.after(ms, resolve)
  const stop = () => resolve()
  signal.addEventListener('abort', stop)
  if (!signal.aborted) await promise
  signal.removeEventListener('abort', stop)
}
