import type { StoredRecord } from '../audit/read.ts'

/**
 * Puts the records of several lanes into one order. Lanes are written side by side, so time decides between them;
 * within a lane its own order counts, even where somebody has set the clock back.
 */
export function mergeLanes(records: readonly StoredRecord[]): StoredRecord[] {
  const lanes = [...Map.groupBy(records, ({ lane }) => lane).values()].map((own) => ({ own, next: 0 }))
  if (lanes.length < 2) return [...records]
  const merged: StoredRecord[] = []
  while (merged.length < records.length) {
    let first: { record: StoredRecord; lane: (typeof lanes)[number] } | undefined
    for (const lane of lanes) {
      const record = lane.own[lane.next]
      if (record && (!first || record.record.time < first.record.record.time)) first = { record, lane }
    }
    if (!first) break
    merged.push(first.record)
    first.lane.next++
  }
  return merged
}
