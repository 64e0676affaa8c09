import { hash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { canonical } from '../../lib/canonical-json.ts'
import type { Signer } from '../keys.ts'
import { listLanes, listSegments } from '../log-files.ts'
import { type FileSystem, writeFully } from './file-system.ts'

/**
 * `<lane>/head` says how far the lane is known to be on disk. It is rewritten in place after each commit and before
 * anybody hears of it, so that a tail which is cut off between two checkpoints is missed. It is never ahead of the log
 * and small enough for one sector, so it needs no sync of its own: after a loss of power it may be old, never wrong.
 */
export interface LaneHead {
  readonly lane: string
  readonly seq: number
  readonly hash: string
}

/** Always as long as this, so that rewriting it needs no space. */
const headBytes = 256

export const headFile = (folder: string, lane: string): string => join(folder, lane, 'head')

export interface HeadWriter {
  write(head: LaneHead): void
  close(): void
}

/** Opens the file, or makes it: then it is on disk before a record is. */
export function openHead(path: string, first: LaneHead, files: FileSystem, signer: Signer): HeadWriter {
  const write = (fd: number, head: LaneHead) => {
    const text = canonical({ ...head, mac: signer.mac(canonical(head)) })
    writeFully(files, fd, Buffer.from(`${text.padEnd(headBytes - 1)}\n`), 0)
  }
  const made = files.openSync(path, 'a', 0o600)
  files.closeSync(made)
  const fd = files.openSync(path, 'r+')
  try {
    if (files.length(fd) !== headBytes) {
      files.ftruncateSync(fd, 0)
      write(fd, first)
      files.fsyncSync(fd)
    }
  } catch (error) {
    files.closeSync(fd)
    throw error
  }
  return { write: (head) => write(fd, head), close: () => files.closeSync(fd) }
}

export type HeadState =
  | { readonly state: 'missing' }
  | { readonly state: 'invalid' }
  /** `checked` is false where there was no secret to check it with. */
  | { readonly state: 'read'; readonly head: LaneHead; readonly checked: boolean }

/** What the file says, checked if the secret is at hand. */
export function readHead(folder: string, lane: string, signer: Signer | undefined): HeadState {
  const text = readText(headFile(folder, lane))
  // An empty one was made on a full disk and never written.
  if (!text) return { state: 'missing' }
  try {
    const { mac, ...head } = JSON.parse(text) as LaneHead & { readonly mac: unknown }
    const sound = head.lane === lane && Number.isSafeInteger(head.seq) && typeof head.hash === 'string'
    const whole = `${canonical({ ...head, mac }).padEnd(headBytes - 1)}\n` === text
    if (!sound || !whole || (signer && signer.mac(canonical(head)) !== mac)) return { state: 'invalid' }
    return { state: 'read', head, checked: signer !== undefined }
  } catch {
    return { state: 'invalid' }
  }
}

function readText(path: string): string | undefined {
  try {
    const fd = openSync(path, 'r')
    try {
      const buffer = Buffer.alloc(headBytes + 1)
      return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

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
  readonly files: FileSystem
  readonly signer: Signer
}

/** How far a lane is known to go: what its `head` says, unless its mark is further. */
export function lastKnownHead(lane: string, { folder, marks, signer }: MarkOptions): HeadState {
  const own = readHead(folder, lane, signer)
  const mark = marks === undefined ? undefined : readHead(marks, lane, signer)
  if (mark?.state !== 'read') return own
  if (own.state === 'read') return own.head.seq < mark.head.seq ? mark : own
  return own.state === 'missing' && listSegments(folder, lane).length === 0 ? mark : own
}

export function openMark(lane: string, { marks, files, signer }: MarkOptions, first: LaneHead): HeadWriter | undefined {
  if (marks === undefined) return undefined
  files.mkdirSync(join(marks, lane))
  return openHead(headFile(marks, lane), first, files, signer)
}

/** The marks of all lanes. */
export const readMarks = (marks: string | undefined, signer: Signer | undefined): Map<string, HeadState> =>
  new Map(marks === undefined ? [] : listLanes(marks).map((lane) => [lane, readHead(marks, lane, signer)]))
