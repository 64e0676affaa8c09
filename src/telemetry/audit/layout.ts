import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * `<folder>/<lane>/<first seq, 12 digits>.jsonl`, with `head`, `lock` and `reserve` beside the segments of a lane, and
 * `<folder>/audit.pub`. A lane belongs to one process at a time: several may share a folder.
 */
export const segmentFile = (firstSeq: number): string => `${String(firstSeq).padStart(12, '0')}.jsonl`

export const firstSeqOf = (file: string): number => Number.parseInt(file, 10)

export const publicKeyFile = (folder: string): string => join(folder, 'audit.pub')

/** The lanes of a log, in the order of their numbers; none if there is no such folder. */
export const lanesOf = (folder: string): string[] =>
  names(folder)
    .filter((name) => /^[1-9]\d*$/.test(name))
    .sort((a, b) => Number(a) - Number(b))

/** The segments of a lane, oldest first. */
export const segmentsOf = (folder: string, lane: string): string[] =>
  names(join(folder, lane))
    .filter((name) => /^\d{12,}\.jsonl$/.test(name))
    .sort((a, b) => firstSeqOf(a) - firstSeqOf(b))

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
