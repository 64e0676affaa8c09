import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import {
  isMissing,
  listLanes,
  listSegments,
  type ReadPosition,
  readLines,
  readRecords,
  type StoredRecord,
  storedRecord,
} from '../log-files.ts'

export interface FollowOptions {
  readonly folder: string
  /** Each lane's start position. Lanes that are not listed are read from their beginning. */
  readonly from: Readonly<Record<string, ReadPosition>>
  readonly clock: Clock
  readonly signal: AbortSignal
}

const tailEveryMs = 200

/** Yields new records from all processes; each batch is sorted by time. */
export async function* followRecords(options: FollowOptions): AsyncGenerator<readonly StoredRecord[]> {
  const { folder, clock, signal } = options
  const positions: Record<string, ReadPosition> = { ...options.from }
  while (!signal.aborted) {
    const records: StoredRecord[] = []
    for await (const stored of readRecords(folder, { from: positions })) records.push(stored)
    for (const { lane, file, offset, bytes } of records) positions[lane] = { file, offset: offset + bytes }
    if (records.length > 0) yield mergeLanes(records)
    await delay(tailEveryMs, clock, signal)
  }
}

/** Waits for `ms`, or until the signal aborts. Never rejects. */
export const delay = (ms: number, clock: Clock, signal: AbortSignal): Promise<void> =>
  pause(clock, ms, signal).catch(() => {})

/** Merges the lanes by time. Records of one lane keep their order, even if the clock was set back. */
export function mergeLanes(records: readonly StoredRecord[]): StoredRecord[] {
  const latest = new Map<string, string>()
  const timed = records.map((stored) => {
    const { lane, record } = stored
    const before = latest.get(lane)
    if (before === undefined || before < record.time) latest.set(lane, record.time)
    return { time: latest.get(lane) as string, stored }
  })
  timed.sort((a, b) => Number(a.time > b.time) - Number(a.time < b.time))
  return timed.map(({ stored }) => stored)
}

/** Reads at most `count` records from the end of each lane. `whole` is true if there are no earlier records. */
export async function readRecent(folder: string, count: number) {
  const records: StoredRecord[] = []
  const positions: Record<string, ReadPosition> = {}
  let whole = true
  for (const lane of listLanes(folder)) {
    const files = listSegments(folder, lane)
    const found: StoredRecord[][] = []
    let missing = count
    for (const file of files.toReversed()) {
      const last = missing > 0 ? await lastRecords(folder, lane, file, missing).catch(undefinedIfMissing) : undefined
      // Stop if enough records were found, or if retention removed the segment after it was listed.
      if (!last) break
      positions[lane] ??= { file, offset: last.end }
      found.unshift(last.records)
      missing -= last.records.length
      whole &&= last.complete
    }
    whole &&= found.length === files.length
    records.push(...found.flat())
  }
  return { records: mergeLanes(records), positions, whole }
}

const blockBytes = 64 * 1024

function undefinedIfMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error
}

async function lastRecords(folder: string, lane: string, file: string, count: number) {
  const path = join(folder, lane, file)
  const { size } = await stat(path)
  for (let length = blockBytes; ; length *= 4) {
    const start = Math.max(0, size - length)
    const read = (await Array.fromAsync(readLines(path, start))).flat().filter(({ whole }) => whole)
    // Only the first line of the file is complete for certain.
    const lines = start === 0 ? read : read.slice(1)
    if (start > 0 && lines.length < count) continue
    const kept = lines.slice(-count)
    const last = lines.at(-1)
    return {
      records: kept.flatMap((line) => storedRecord(lane, file, line) ?? []),
      end: last ? last.offset + last.bytes.length + 1 : start,
      complete: start === 0 && kept.length === lines.length,
    }
  }
}
