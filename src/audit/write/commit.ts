import { dirname, join } from 'node:path'
import { type FileSystem, writeFully } from './file-system.ts'

/** The end of a chain. */
export interface ChainPosition {
  readonly seq: number
  readonly hash: string
}

export interface GroupCommitOptions {
  readonly files: FileSystem
  /** Everything up to here is settled already. */
  readonly from: number
  /** The end of the chain as it is now. */
  position(): ChainPosition
  /** Everything up to here is on disk. Whoever waits for it hears of it afterwards. */
  synced(position: ChainPosition): void
  /** A sync failed: of this many records nobody knows whether the disk has them, and nobody may ask it again. */
  failed(error: unknown, records: number): void
}

/** Brings records to disk, many at a time. */
export interface GroupCommit {
  /** Up to here records are on disk, or given up. */
  readonly settled: number
  readonly waiting: number
  /** A sync is under way: the files must stay open. */
  readonly busy: boolean
  /** A segment has been begun. */
  track(segment: Segment): void
  /** Settles when this record is on disk. */
  wait(seq: number): Promise<void>
  /** Closes the files. No sync may be under way. */
  close(): void
}

/** Somebody else has been at a file that only this process writes to. */
export class FileModifiedError extends Error {}

interface Waiter {
  readonly seq: number
  resolve(): void
  reject(error: unknown): void
}

/**
 * Group commit: one sync at a time. Whoever comes while it runs waits for the next one, together with all others, so
 * the price of a sync is shared by everybody who writes at that time.
 */
export function createGroupCommit({ files, from, position, ...told }: GroupCommitOptions): GroupCommit {
  let settled = from
  let busy = false
  let waiters: Waiter[] = []
  let segments: Segment[] = []

  const run = async () => {
    busy = true
    // Those who come in the same turn of the event loop share this sync, too.
    await new Promise<void>((resolve) => setImmediate(resolve))
    const covered = position()
    const targets = segments
    // One that is left during the sync may get more records until then, and is synced once more.
    const finished = targets.filter(({ done }) => done)
    try {
      await Promise.all(targets.map((segment) => sync(files, segment)))
      told.synced(covered)
      settled = covered.seq
      forget(finished)
      const free = waiters.filter(({ seq }) => seq <= settled)
      waiters = waiters.filter(({ seq }) => seq > settled)
      for (const waiter of free) waiter.resolve()
    } catch (error) {
      // Never again on these files: the next sync might succeed and have lost what this one could not bring to disk.
      told.failed(error, position().seq - settled)
      settled = position().seq
      forget(segments)
      const refused = waiters
      waiters = []
      for (const waiter of refused) waiter.reject(error)
    }
    busy = false
    if (waiters.length > 0) void run()
  }

  const forget = (gone: readonly Segment[]) => {
    segments = segments.filter((segment) => !gone.includes(segment))
    for (const { fd } of gone) {
      try {
        files.closeSync(fd)
      } catch {
        // They were synced, or given up: closing them can neither save nor lose anything.
      }
    }
  }

  return {
    get settled() {
      return settled
    },
    get waiting() {
      return waiters.length
    },
    get busy() {
      return busy
    },
    track: (segment) => {
      segments = [...segments, segment]
    },
    wait: (seq) => {
      if (seq <= settled) return Promise.resolve()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      waiters.push({ seq, resolve, reject })
      if (!busy) void run()
      return promise
    },
    close: () => forget(segments),
  }
}

async function sync(files: FileSystem, segment: Segment): Promise<void> {
  await files.fdatasync(segment.fd)
  // The lane and the log may be as new as their first file.
  for (let path = dirname(segment.path), up = 0; segment.fresh && up < 3; path = dirname(path), up++) {
    await files.syncFolder(path)
  }
  segment.fresh = false
  const length = files.length(segment.fd)
  if (length === undefined) throw new FileModifiedError(`${segment.file} has been removed by somebody else`)
  if (length !== segment.bytes && !segment.spoiled) {
    throw new FileModifiedError(
      `${segment.file} has been changed by somebody else: ${length} bytes, not ${segment.bytes}`,
    )
  }
}

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
  files: FileSystem,
  folder: string,
  { file, openedMs, bytes }: Pick<Segment, 'file' | 'openedMs'> & { readonly bytes?: number },
): Segment {
  const path = join(folder, file)
  // Where the file must be new, two writers can never meet in it.
  const fd = files.openSync(path, bytes === undefined ? 'ax' : 'a', 0o600)
  return { file, path, fd, openedMs, bytes: bytes ?? 0, spoiled: false, fresh: bytes === undefined, done: false }
}

/** Appends a whole line or nothing: what could be written of it only in part is cut off again. */
export function appendLine(files: FileSystem, segment: Segment, line: string): void {
  const bytes = Buffer.from(line)
  try {
    writeFully(files, segment.fd, bytes)
  } catch (error) {
    cutBack(files, segment)
    throw error
  }
  segment.bytes += bytes.length
}

function cutBack(files: FileSystem, segment: Segment): void {
  try {
    files.ftruncateSync(segment.fd, segment.bytes)
  } catch {
    segment.spoiled = true
  }
}
