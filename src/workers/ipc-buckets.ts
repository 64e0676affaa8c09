import type { Buckets } from '../core/buckets.ts'
import type { DeskAnswers } from './desk.ts'
import type { Line } from './line.ts'

/** Buckets that all workers draw from (F8, B10). While the first process does not answer, each counts alone. */
export function ipcBuckets(line: Line<DeskAnswers>, local: Buckets): Buckets {
  return {
    take: async (buckets, now) => (await line.ask('take', buckets, now)) ?? local.take(buckets, now),
  }
}
