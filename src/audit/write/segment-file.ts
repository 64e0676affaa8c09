import { closeSync, fdatasync, fstatSync, fsyncSync, ftruncateSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { ChainEnd } from '../../core/audit-archive.ts'
import { makeFolder } from '../../lib/files.ts'

export interface Segment {
  readonly file: string
  readonly path: string
  readonly fd: number
  readonly openedMs: number
  bytes: number
  /** Whether a partial line could not be cut off, so that the file may be longer than `bytes`. */
  spoiled: boolean
  /** Whether the file's folder entry may still be unsynced. */
  fresh: boolean
  /** Whether the segment gets no more records. The file is closed after the next sync. */
  done: boolean
}

/** Creates a segment, or opens an existing one if `bytes` is given. */
export function openSegment(
  files: FileSystem,
  folder: string,
  { file, openedMs, bytes }: Pick<Segment, 'file' | 'openedMs'> & { readonly bytes?: number },
): Segment {
  const path = join(folder, file)
  // Create the file exclusively, so that two writers never share it.
  const fd = files.openSync(path, bytes === undefined ? 'ax' : 'a', 0o600)
  return { file, path, fd, openedMs, bytes: bytes ?? 0, spoiled: false, fresh: bytes === undefined, done: false }
}

/** Appends a whole line or nothing: after a partial write, the file is truncated. */
export function appendLine(files: FileSystem, segment: Segment, line: string): void {
  const bytes = Buffer.from(line)
  try {
    writeFully(files, segment.fd, bytes)
  } catch (error) {
    try {
      files.ftruncateSync(segment.fd, segment.bytes)
    } catch {
      segment.spoiled = true
    }
    throw error
  }
  segment.bytes += bytes.length
}

export interface GroupCommitOptions {
  readonly files: FileSystem
  readonly from: number
  position(): ChainEnd
  /** Called after a successful sync, before the promises of the waiting callers are resolved. */
  synced(position: ChainEnd): void
  /** Called if a sync failed. The sync must not be retried. `records` is how many records may not be on disk. */
  failed(error: unknown, records: number): void
}

/** Group commit: runs one sync at a time. Records that arrive during a sync share the next one. */
export function createGroupCommit({ files, from, position, synced, failed }: GroupCommitOptions) {
  let waiters: (PromiseWithResolvers<void> & { readonly seq: number })[] = []
  let segments: Segment[] = []

  const run = async () => {
    commit.busy = true
    // Wait, so that all records from the same event-loop turn share this sync.
    await new Promise<void>((resolve) => setImmediate(resolve))
    const covered = position()
    const targets = segments
    // A segment that is retired during the sync may have received records meanwhile, so it is not finished yet.
    const finished = targets.filter(({ done }) => done)
    try {
      await Promise.all(targets.map((segment) => sync(files, segment)))
      synced(covered)
      commit.settled = covered.seq
      forget(finished)
      const free = waiters.filter(({ seq }) => seq <= covered.seq)
      waiters = waiters.filter(({ seq }) => seq > covered.seq)
      for (const waiter of free) waiter.resolve()
    } catch (error) {
      // Never sync these files again: after a failed fsync, the next one may succeed although data was lost.
      failed(error, position().seq - commit.settled)
      commit.settled = position().seq
      forget(segments)
      const refused = waiters
      waiters = []
      for (const waiter of refused) waiter.reject(error)
    }
    commit.busy = false
    if (waiters.length > 0) void run()
  }

  const forget = (gone: readonly Segment[]) => {
    segments = segments.filter((segment) => !gone.includes(segment))
    for (const { fd } of gone) {
      try {
        files.closeSync(fd)
      } catch {
        // The files are already synced or abandoned, so a failed close loses nothing.
      }
    }
  }

  const commit = {
    /** Records up to this number are on disk or have been abandoned. */
    settled: from,
    /** Whether a sync is running. If so, the files must stay open. */
    busy: false,
    get waiting() {
      return waiters.length
    },
    track: (segment: Segment): void => {
      segments = [...segments, segment]
    },
    wait: (seq: number): Promise<void> => {
      if (seq <= commit.settled) return Promise.resolve()
      const waiter = { seq, ...Promise.withResolvers<void>() }
      waiters.push(waiter)
      if (!commit.busy) void run()
      return waiter.promise
    },
    /** Closes the files. No sync may be running. */
    close: (): void => forget(segments),
  }
  return commit
}

/** Thrown if another process changed or removed a file that only this process writes to. */
export class FileModifiedError extends Error {}

async function sync(files: FileSystem, segment: Segment): Promise<void> {
  await files.fdatasync(segment.fd)
  // Sync the segment's folder and the two above it, because the lane's folder and the log folder may be new too.
  for (let path = dirname(segment.path), up = 0; segment.fresh && up < 3; path = dirname(path), up++) {
    await files.syncFolder(path)
  }
  segment.fresh = false
  const { file, bytes, spoiled } = segment
  const length = files.length(segment.fd)
  if (length === undefined) throw new FileModifiedError(`${file} was removed by another process`)
  if (length === bytes || spoiled) return
  throw new FileModifiedError(`${file} was changed by another process: ${length} bytes instead of ${bytes}`)
}

/** The file system functions that the log uses; tests make them fail. */
export interface FileSystem {
  openSync(path: string, flags: string, mode?: number): number
  closeSync(fd: number): void
  /** Writes bytes and returns how many were written, possibly fewer than `length`. */
  writeSync(fd: number, bytes: Buffer, offset: number, length: number, position: number | null): number
  ftruncateSync(fd: number, bytes: number): void
  fdatasync(fd: number): Promise<void>
  fsyncSync(fd: number): void
  /** Syncs a folder. A new file survives a crash only after its folder is synced. */
  syncFolder(path: string): Promise<void>
  /** The length of a file. Undefined once the file is unlinked, because everything written to it is then lost. */
  length(fd: number): number | undefined
  unlinkSync(path: string): void
  mkdirSync(path: string): void
}

export const nodeFileSystem: FileSystem = {
  openSync,
  closeSync,
  writeSync,
  ftruncateSync,
  fdatasync: promisify(fdatasync),
  fsyncSync,
  syncFolder: async (path) => {
    // Windows cannot sync folders and does not need to.
    if (process.platform === 'win32') return
    await using folder = await open(path, 'r')
    await folder.sync()
  },
  length: (fd) => {
    const { nlink, size } = fstatSync(fd)
    return nlink === 0 ? undefined : size
  },
  unlinkSync,
  mkdirSync: makeFolder,
}

export function writeFully(files: FileSystem, fd: number, bytes: Buffer, position: number | null = null): void {
  for (let done = 0; done < bytes.length; ) {
    const written = files.writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done)
    // Avoid an endless loop in case the disk accepts nothing and reports no error.
    if (written === 0) throw Object.assign(new Error('nothing was written'), { code: 'EIO' })
    done += written
  }
}
