import { hash } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { ChainEnd } from '../../core/audit-archive.ts'
import { canonical } from '../../json/canonical-json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { ifExists, listLanes, listSegments, readPart } from '../log-files.ts'
import type { Signer } from '../record.ts'
import { type FileSystem, writeFully } from './segment-file.ts'

/**
 * `<lane>/head` records how far the lane is known to be on disk, so that truncation between two checkpoints is
 * detected. It is rewritten in place after each sync, before the operations that wait for the sync continue. It is
 * never ahead of the log and fits into one sector, so it needs no sync itself: after a power loss it may be old, but
 * never wrong.
 */
export interface LogHead extends ChainEnd {
  readonly lane: string
}

/** The fixed length of the file, so that rewriting it needs no disk space. */
const headBytes = 256

export const headFile = (folder: string, lane: string): string => join(folder, lane, 'head')

/** Opens a head for writing. Creates and syncs the file if necessary, so that it is on disk before the first record. */
export function openHead(path: string, first: LogHead, files: FileSystem, signer: Signer) {
  const write = (head: LogHead): void => {
    const text = canonical({ ...head, mac: signer.mac(canonical(head)) })
    writeFully(files, fd, Buffer.from(`${text.padEnd(headBytes - 1)}\n`), 0)
  }
  files.closeSync(files.openSync(path, 'a', 0o600))
  const fd = files.openSync(path, 'r+')
  try {
    if (files.length(fd) !== headBytes) {
      files.ftruncateSync(fd, 0)
      write(first)
      files.fsyncSync(fd)
    }
  } catch (error) {
    files.closeSync(fd)
    throw error
  }
  return { write, close: (): void => files.closeSync(fd) }
}

export type HeadState =
  | { readonly state: 'missing' }
  | { readonly state: 'invalid' }
  | { readonly state: 'read'; readonly head: LogHead }

/** Reads the head. Tries again if it is invalid, because a writer may be rewriting the file. */
export async function readSteadyHead(folder: string, lane: string, signer: Signer | undefined): Promise<HeadState> {
  for (let attempts = 5; ; attempts--) {
    const read = readHead(folder, lane, signer)
    if (read.state !== 'invalid' || attempts === 0) return read
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}

/** Reads the head. Without a signer, the MAC is not verified. */
export function readHead(folder: string, lane: string, signer: Signer | undefined): HeadState {
  const text = ifExists(() => readPart(headFile(folder, lane), headBytes + 1, 'start').bytes.toString('latin1'))
  // An empty file counts as missing: it was created on a full disk and never written.
  if (!text) return { state: 'missing' }
  try {
    const { mac, ...head } = jsonValue(text) as LogHead & { readonly mac: unknown }
    const sound = head.lane === lane && Number.isSafeInteger(head.seq) && typeof head.hash === 'string'
    const whole = `${canonical({ ...head, mac }).padEnd(headBytes - 1)}\n` === text
    if (!sound || !whole || (signer && signer.mac(canonical(head)) !== mac)) return { state: 'invalid' }
    return { state: 'read', head }
  } catch {
    return { state: 'invalid' }
  }
}

/**
 * The folder for the high-water marks, which are copies of `head` outside the log folder. They reveal a deleted lane,
 * or a log folder that was restored to an earlier state together with its heads. Each log path has its own marks
 * folder, so a log at a new path starts without marks.
 */
export const marksFolder = (state: string, log: string): string =>
  join(state, 'audit-marks', hash('sha256', resolve(log)).slice(0, 16))

interface MarkOptions {
  readonly folder: string
  readonly marks?: string | undefined
  readonly files: FileSystem
  readonly signer: Signer
}

/** The lane's `head` or its high-water mark, whichever is further ahead. */
export function lastKnownHead(lane: string, { folder, marks, signer }: MarkOptions): HeadState {
  const own = readHead(folder, lane, signer)
  const mark = marks === undefined ? undefined : readHead(marks, lane, signer)
  if (mark?.state !== 'read') return own
  if (own.state === 'read') return own.head.seq < mark.head.seq ? mark : own
  return own.state === 'missing' && listSegments(folder, lane).length === 0 ? mark : own
}

export function openMark(lane: string, { marks, files, signer }: MarkOptions, first: LogHead) {
  if (marks === undefined) return undefined
  files.mkdirSync(join(marks, lane))
  return openHead(headFile(marks, lane), first, files, signer)
}

export const readMarks = (marks: string | undefined, signer: Signer | undefined): Map<string, HeadState> =>
  new Map(marks === undefined ? [] : listLanes(marks).map((lane) => [lane, readHead(marks, lane, signer)]))
