import { hash } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { Files } from './files.ts'
import { type Head, type HeadWriter, headFile, openHead, type ReadHead, readHead } from './head.ts'
import type { Signer } from './keys.ts'
import { lanesOf, segmentsOf } from './layout.ts'
import type { VerifyProblem } from './problem.ts'

/**
 * High-water marks: what `head` says, kept once more outside the folder of the log. A lane that is deleted, or a folder
 * that is put back to an earlier state together with its heads, is behind its mark. One folder for each place of a log,
 * so that a log elsewhere begins without marks.
 */
export const marksFolder = (state: string, log: string): string =>
  join(state, 'audit-marks', hash('sha256', resolve(log)).slice(0, 16))

interface MarkOptions {
  readonly folder: string
  readonly marks?: string | undefined
  readonly files: Files
  readonly signer: Signer
}

/** How far a lane is known to go: what its `head` says, unless its mark is further. */
export function lastKnown(lane: string, { folder, marks, signer }: MarkOptions): ReadHead {
  const own = readHead(folder, lane, signer)
  const mark = marks === undefined ? undefined : readHead(marks, lane, signer)
  if (mark?.state !== 'read') return own
  if (own.state === 'read') return own.head.seq < mark.head.seq ? mark : own
  return own.state === 'missing' && segmentsOf(folder, lane).length === 0 ? mark : own
}

export function openMark(lane: string, { marks, files, signer }: MarkOptions, first: Head): HeadWriter | undefined {
  if (marks === undefined) return undefined
  files.mkdirSync(join(marks, lane))
  return openHead(headFile(marks, lane), first, files, signer)
}

/** The marks of all lanes. */
export const readMarks = (marks: string | undefined, signer: Signer | undefined): Map<string, ReadHead> =>
  new Map(marks === undefined ? [] : lanesOf(marks).map((lane) => [lane, readHead(marks, lane, signer)]))

/** What a mark says against its lane, which ends with record `last`; undefined where the lane is gone. */
export function markProblem(lane: string, mark: ReadHead, last: number | undefined): VerifyProblem | undefined {
  if (mark.state === 'missing') return undefined
  if (mark.state === 'invalid') {
    const message = 'its high-water mark is not as Toolway wrote it, or not with this secret'
    return { kind: 'head', lane, message }
  }
  const { seq } = mark.head
  if (last === undefined && seq > 0) {
    const message = `lane ${lane} is missing: it was deleted after ${seq} records had been written`
    return { kind: 'lane', lane, seq, message }
  }
  if (last === undefined || seq <= last) return undefined
  const message = `the lane ends with record ${last}, but record ${seq} was written: its end is cut off, or it was rolled back to an earlier state`
  return { kind: 'rolled_back', lane, seq, message }
}
