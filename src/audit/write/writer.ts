import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { makeFolder } from '../../lib/files.ts'
import { listLanes } from '../log-files.ts'
import type { Signer } from '../record.ts'
import { RecordChain } from './chain.ts'
import { headFile, lastKnownHead, openHead, openMark } from './head.ts'
import { recoverLane } from './recover.ts'
import { createGroupCommit, type FileSystem, writeFully } from './segment-file.ts'

export interface WriterOptions {
  readonly folder: string
  readonly signer: Signer
  readonly files: FileSystem
  readonly clock: Clock
  readonly log: Log
  readonly segmentBytes: number
  readonly segmentMs: number
  readonly reserveBytes: number
  /** The folder with the high-water marks, outside the log. */
  readonly marks?: string | undefined
  lost(records: number): void
  synced?(): void
  /** Called if a sync failed; see `GroupCommitOptions`. The segment has already been abandoned at that point. */
  failed(error: unknown, records: number): void
}

export type AuditWriter = ReturnType<typeof openWriter>

/** Opens the writer for a locked lane. Closing the writer releases the lock. */
export function openWriter(lock: LaneLock, options: WriterOptions) {
  const { folder, signer, files, log } = options
  const name = lock.lane
  using opening = new DisposableStack()
  opening.use(lock)
  const resumption = recoverLane(folder, name, lastKnownHead(name, options))
  const { seq, hash } = resumption
  const head = openHead(headFile(folder, name), { lane: name, seq, hash }, files, signer)
  opening.defer(head.close)
  const mark = openMark(name, options, { lane: name, seq, hash })
  if (mark) opening.defer(mark.close)
  const reserve = openReserve(join(folder, name, 'reserve'), options.reserveBytes, files)
  opening.defer(reserve.close)

  let headFails = false
  const commit = createGroupCommit({
    files,
    from: seq,
    position: () => chain.written,
    synced: (position) => {
      try {
        head.write({ lane: name, ...position })
        mark?.write({ lane: name, ...position })
        headFails = false
      } catch (error) {
        // The records are safe. Until the head can be written again, only a truncation could go undetected.
        if (!headFails) log.warn({ lane: name, err: error }, "cannot write the audit log's head")
        headFails = true
      }
      options.synced?.()
    },
    failed: (error, records) => {
      chain.abandon()
      options.failed(error, records)
    },
  })
  const chain: RecordChain = new RecordChain({ ...options, lane: name, resumption, opened: commit.track })
  opening.defer(commit.close)
  const resources = opening.move()
  return {
    name,
    chain,
    commit,
    reserve,
    found: resumption,
    /** Resolves when all appended records are on disk. Rejects or throws if that fails. */
    flush: (): Promise<void> => {
      chain.write()
      return commit.wait(chain.seq)
    },
    /** Releases the lane. Must not be called while a commit is pending. */
    close: (): void => resources.dispose(),
  }
}

const pieceBytes = 64 * 1024

/**
 * Disk space that is reserved for the ends of running writes: a file of zeros that is truncated when the disk is full.
 * Unlike checking the free space, this also works with quotas, and no other program can take the space first.
 */
function openReserve(path: string, bytes: number, files: FileSystem) {
  const fd = files.openSync(path, 'a', 0o600)
  const empty = () => files.ftruncateSync(fd, 0)
  const reserve = {
    /** Whether the space is reserved. While it is not, only `must` records are written. */
    held: files.length(fd) === bytes,
    /** Frees the space. Returns false if none was reserved. */
    release: (): boolean => {
      if (!reserve.held) return false
      reserve.held = false
      empty()
      return true
    },
    restore: (): boolean => {
      if (reserve.held) return true
      try {
        empty()
        for (let left = bytes; left > 0; left -= pieceBytes) {
          writeFully(files, fd, Buffer.alloc(Math.min(left, pieceBytes)))
        }
        reserve.held = true
      } catch {
        try {
          empty()
        } catch {
          // Ignore the failure: the next attempt empties the file first.
        }
      }
      return reserve.held
    },
    close: (): void => files.closeSync(fd),
  }
  reserve.restore()
  return reserve
}

interface LaneLock extends Disposable {
  readonly lane: string
}

const maxLanes = 1000
const busy = 5

/**
 * Locks the first free lane. The lock is an open transaction on the empty database `lock`; the operating system
 * releases it however the process ends. No other code may open that file, because closing it would release the lock.
 */
export function lockFreeLane(folder: string): LaneLock {
  for (let number = 1; number <= maxLanes; number++) {
    const lock = tryLockLane(folder, String(number))
    if (lock) return lock
  }
  throw new Error(`all ${maxLanes} lanes of ${folder} are in use; stop some of the processes that write there`)
}

/** Locks a lane. Undefined if another process holds the lock. */
export function tryLockLane(folder: string, lane: string): LaneLock | undefined {
  makeFolder(join(folder, lane))
  const database = new DatabaseSync(join(folder, lane, 'lock'), { timeout: 0 })
  try {
    // Nothing is ever written: without a journal file, closing need not wait for the disk.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return { lane, [Symbol.dispose]: () => database.close() }
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode === busy) return undefined
    throw error
  }
}

type StartOptions = Pick<WriterOptions, 'folder' | 'log'> & { readonly version: string }

/** Records and logs the start of this process and the state in which it found the lane. */
export function recordStart({ name, chain, found }: AuditWriter, { folder, version, log }: StartOptions): void {
  const { torn, unproven, findings } = found
  chain.appendControl({
    operation: 'start',
    pid: process.pid,
    host: hostname(),
    version,
    lanes: listLanes(folder),
    torn: torn || undefined,
    unproven: unproven || undefined,
  })
  if (torn > 0)
    log.warn({ lane: name, bytes: torn }, 'removed a partially written record from the end of the audit log')
  for (const finding of findings) {
    chain.appendControl({ operation: 'gap', ...finding })
    log.error(
      { lane: name, ...finding },
      'the audit log was modified while Toolway was not running; run `toolway audit verify` for details',
    )
  }
}
