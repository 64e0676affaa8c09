import { join } from 'node:path'
import { type Files, writeWhole } from './files.ts'

/** A file that records are appended to. */
export interface Segment {
  readonly file: string
  readonly path: string
  readonly fd: number
  readonly openedMs: number
  /** How much of it counts. */
  bytes: number
  /** It may hold more than counts, since what was half written could not be cut off. */
  spoiled: boolean
  /** Its folder may not know it yet. */
  fresh: boolean
  /** No record goes there any more: whoever has synced it closes it. */
  done: boolean
}

/** Makes a new, empty segment, or opens one to go on with. */
export function openSegment(
  files: Files,
  folder: string,
  { file, openedMs, bytes }: Pick<Segment, 'file' | 'openedMs'> & { readonly bytes?: number },
): Segment {
  const path = join(folder, file)
  // Where the file must be new, two writers can never meet in it.
  const fd = files.openSync(path, bytes === undefined ? 'ax' : 'a', 0o600)
  return { file, path, fd, openedMs, bytes: bytes ?? 0, spoiled: false, fresh: bytes === undefined, done: false }
}

/** Appends a whole line or nothing: what could be written of it only in part is cut off again. */
export function appendLine(files: Files, segment: Segment, line: string): void {
  const bytes = Buffer.from(line)
  try {
    writeWhole(files, segment.fd, bytes)
  } catch (error) {
    cutBack(files, segment)
    throw error
  }
  segment.bytes += bytes.length
}

function cutBack(files: Files, segment: Segment): void {
  try {
    files.ftruncateSync(segment.fd, segment.bytes)
  } catch {
    segment.spoiled = true
  }
}
