import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import { isMissing, listLanes, listSegments, type ReadPosition, readRecords, type StoredRecord } from '../log-files.ts'
import { parseRecord } from '../record.ts'

export interface FollowOptions {
  readonly folder: string
  /** Each lane's start position. Lanes that are not listed are read from their beginning. */
  readonly from: Readonly<Record<string, ReadPosition>>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly everyMs?: number
}

/** Yields new records from all processes; each batch is sorted by time. */
export async function* followRecords(options: FollowOptions): AsyncGenerator<readonly StoredRecord[]> {
  const { folder, clock, signal, everyMs = 200 } = options
  const positions: Record<string, ReadPosition> = { ...options.from }
  while (!signal.aborted) {
    const records: StoredRecord[] = []
    for await (const stored of readRecords(folder, { from: positions })) records.push(stored)
    for (const { lane, file, offset, bytes } of records) positions[lane] = { file, offset: offset + bytes }
    if (records.length > 0) yield mergeLanes(records)
    await delay(everyMs, clock, signal)
  }
}

/** Waits for `ms`, or until the signal aborts. Never rejects. */
export const delay = (ms: number, clock: Clock, signal: AbortSignal): Promise<void> =>
  pause(clock, ms, signal).catch(() => {})

/** Merges the lanes by time. Records of one lane keep their order, even if the clock was set back. */
export function mergeLanes(records: readonly StoredRecord[]): StoredRecord[] {
  const lanes = [...Map.groupBy(records, ({ lane }) => lane).values()].map((own) => ({ own, next: 0 }))
  return Array.from(records, () => {
    let first: { readonly stored: StoredRecord; readonly lane: (typeof lanes)[number] } | undefined
    for (const lane of lanes) {
      const stored = lane.own[lane.next]
      if (stored && (!first || stored.record.time < first.stored.record.time)) first = { stored, lane }
    }
    const { stored, lane } = first as NonNullable<typeof first>
    lane.next++
    return stored
  })
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
      const last = missing > 0 ? await lastLines(folder, lane, file, missing) : undefined
      // Stop if enough records were found, or if retention removed the segment after it was listed.
      if (!last) break
      const { lines, end, complete } = last
      positions[lane] ??= { file, offset: end }
      found.unshift(lines)
      missing -= lines.length
      whole &&= complete
    }
    whole &&= found.length === files.length
    records.push(...found.flat())
  }
  return { records: mergeLanes(records), positions, whole }
}

const blockBytes = 64 * 1024

async function lastLines(folder: string, lane: string, file: string, count: number) {
  await using handle = await open(join(folder, lane, file), 'r').catch((error): undefined => {
    if (!isMissing(error)) throw error
  })
  if (!handle) return undefined
  const { size } = await handle.stat()
  for (let length = blockBytes; ; length *= 4) {
    const start = Math.max(0, size - length)
    const bytes = Buffer.alloc(size - start)
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, start)
    const lines = wholeLines(bytes.subarray(0, bytesRead), start)
    if (start > 0 && lines.length < count) continue
    const kept = lines.slice(-count)
    return {
      lines: kept.flatMap(({ offset, text }) => {
        const record = parseRecord(text)
        return record ? [{ lane, file, offset, bytes: Buffer.byteLength(text) + 1, text, record }] : []
      }),
      end: start + bytes.lastIndexOf(10) + 1,
      complete: start === 0 && kept.length === lines.length,
    }
  }
}

/** The complete lines in part of a file. Skips text before the first newline, unless the file starts there. */
function wholeLines(bytes: Buffer, start: number): { offset: number; text: string }[] {
  const lines: { offset: number; text: string }[] = []
  let from = start === 0 ? 0 : bytes.indexOf(10) + 1
  for (let end = bytes.indexOf(10, from); end !== -1; end = bytes.indexOf(10, from)) {
    lines.push({ offset: start + from, text: bytes.toString('utf8', from, end) })
    from = end + 1
  }
  return lines
}
