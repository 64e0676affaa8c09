import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { canonical } from '../../lib/canonical-json.ts'
import { type Files, writeWhole } from './files.ts'
import type { Signer } from './keys.ts'

/**
 * `<lane>/head` says how far the lane is known to be on disk. It is rewritten in place after each commit and before
 * anybody hears of it, so that a tail which is cut off between two checkpoints is missed. It is never ahead of the log
 * and small enough for one sector, so it needs no sync of its own: after a loss of power it may be old, never wrong.
 */
export interface Head {
  readonly lane: string
  readonly seq: number
  readonly hash: string
}

/** Always as long as this, so that rewriting it needs no space. */
const headBytes = 256

export const headFile = (folder: string, lane: string): string => join(folder, lane, 'head')

export interface HeadWriter {
  write(head: Head): void
  close(): void
}

/** Opens the file, or makes it: then it is on disk before a record is. */
export function openHead(path: string, first: Head, files: Files, signer: Signer): HeadWriter {
  const write = (fd: number, head: Head) => {
    const text = canonical({ ...head, mac: signer.mac(canonical(head)) })
    writeWhole(files, fd, Buffer.from(`${text.padEnd(headBytes - 1)}\n`), 0)
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

export type ReadHead =
  | { readonly state: 'missing' }
  | { readonly state: 'invalid' }
  /** `checked` is false where there was no secret to check it with. */
  | { readonly state: 'read'; readonly head: Head; readonly checked: boolean }

/** What the file says, checked if the secret is at hand. */
export function readHead(folder: string, lane: string, signer: Signer | undefined): ReadHead {
  const text = readText(headFile(folder, lane))
  // An empty one was made on a full disk and never written.
  if (!text) return { state: 'missing' }
  try {
    const { mac, ...head } = JSON.parse(text) as Head & { readonly mac: unknown }
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
