import { join } from 'node:path'
import type { Files } from './files.ts'
import type { Lane } from './lane.ts'
import { firstSeqOf, segmentsOf } from './layout.ts'
import { firstRecordOf, tailOf } from './tail.ts'

/** The segments of a lane, oldest first, whose newest record is older than `beforeMs`; never the last one. */
export function expiredSegments(folder: string, lane: string, beforeMs: number): string[] {
  const files = segmentsOf(folder, lane)
  const fresh = files.findIndex(
    (file, index) => index === files.length - 1 || newest(folder, lane, file, files[index + 1] as string) >= beforeMs,
  )
  return files.slice(0, Math.max(0, fresh))
}

function newest(folder: string, lane: string, file: string, next: string): number {
  const last = tailOf(join(folder, lane, file)).last ?? firstRecordOf(join(folder, lane, next))
  return last ? Date.parse(last.time) : Number.POSITIVE_INFINITY
}

/**
 * Removes what is old enough. The log says so first, on disk and signed: segments that are missing without such a
 * record were removed by somebody else. Returns how many were removed.
 */
export async function removeExpired(folder: string, lane: Lane, beforeMs: number, files: Files): Promise<number> {
  const expired = expiredSegments(folder, lane.name, beforeMs)
  if (expired.length === 0) return 0
  const first = segmentsOf(folder, lane.name)[expired.length] as string
  const removed = { from: firstSeqOf(expired[0] as string), to: firstSeqOf(first) - 1 }
  await lane.commit.wait(lane.chain.appendOwn({ operation: 'retention', removed }))
  for (const file of expired) files.unlinkSync(join(folder, lane.name, file))
  return expired.length
}
