import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Signer } from '../keys.ts'
import { listLanes } from '../log-files.ts'
import { createChain, type RecordChain } from './chain.ts'
import { createGroupCommit, type GroupCommit } from './commit.ts'
import { type FileSystem, writeFully } from './file-system.ts'
import { headFile, lastKnownHead, openHead, openMark } from './head.ts'
import { type RecoveredLane, recoverLane } from './recover.ts'

export interface WriterOptions {
  readonly folder: string
  readonly signer: Signer
  readonly files: FileSystem
  readonly clock: Clock
  readonly log: Log
  readonly segmentBytes: number
  readonly segmentMs: number
  readonly reserveBytes: number
  /** Where the high-water marks of the lanes are kept, outside the log; nowhere, if absent. */
  readonly marks?: string | undefined
  /** Records that were held could not be written. */
  lost(records: number): void
  /** All that was written up to now is on disk. */
  synced?(): void
  /** A sync failed; see `CommitOptions`. The segment is abandoned already. */
  failed(error: unknown, records: number): void
}

/** A lane that is open for writing, and all that belongs to it. */
export interface AuditWriter {
  readonly name: string
  readonly chain: RecordChain
  readonly commit: GroupCommit
  readonly reserve: DiskReserve
  /** What was found when it was opened. */
  readonly found: Pick<RecoveredLane, 'torn' | 'unproven' | 'findings'>
  /** Settles when all that was appended is on disk; rejects, or throws, where that failed. */
  flush(): Promise<void>
  /** Gives it to others. Nobody may be waiting for a commit. */
  close(): void
}

/** Opens a lane that this process has claimed; the lane's `close` also ends the claim. */
export function openWriter(claim: LaneLock, options: WriterOptions): AuditWriter {
  const { folder, signer, files, log } = options
  const name = claim.lane
  const here = join(folder, name)
  using opening = new DisposableStack()
  opening.use(claim)
  const resumption = recoverLane(folder, name, lastKnownHead(name, options))
  const { seq, hash } = resumption
  const head = openHead(headFile(folder, name), { lane: name, seq, hash }, files, signer)
  opening.defer(() => head.close())
  const mark = openMark(name, options, { lane: name, seq, hash })
  opening.defer(() => mark?.close())
  const reserve = openReserve(join(here, 'reserve'), options.reserveBytes, files)
  opening.defer(() => reserve.close())

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
        // The records themselves are safe; only a tail that somebody cuts off might go unnoticed until the next time.
        if (!headFails) log.warn({ lane: name, error: String(error) }, 'the head of the audit log cannot be written')
        headFails = true
      }
      options.synced?.()
    },
    failed: (error, records) => {
      chain.abandon()
      options.failed(error, records)
    },
  })
  const chain = createChain({ ...options, lane: name, resumption, opened: commit.track })
  opening.defer(() => commit.close())
  const held = opening.move()
  const flush = () => {
    chain.write()
    return commit.wait(chain.seq)
  }
  return { name, chain, commit, reserve, found: resumption, flush, close: () => held.dispose() }
}

/**
 * Space that is kept for the end of writes that are already under way: a file full of nothing, given up when the disk
 * is full. Unlike a look at the free space now and then it also knows quotas, and no other program can be quicker.
 */
interface DiskReserve {
  /** While it is not, only what must be written is written. */
  readonly held: boolean
  /** Gives the space up; false if there was none to give up. */
  release(): boolean
  /** Takes the space again; false if there is none. */
  restore(): boolean
  close(): void
}

const pieceBytes = 64 * 1024

function openReserve(path: string, bytes: number, files: FileSystem): DiskReserve {
  const fd = files.openSync(path, 'a', 0o600)
  const empty = () => files.ftruncateSync(fd, 0)
  let held = files.length(fd) === bytes

  const restore = () => {
    if (held) return true
    try {
      empty()
      for (let left = bytes; left > 0; left -= pieceBytes) {
        writeFully(files, fd, Buffer.alloc(Math.min(left, pieceBytes)))
      }
      held = true
    } catch {
      try {
        empty()
      } catch {
        // What is left of it is emptied when it is tried again.
      }
    }
    return held
  }
  restore()
  return {
    get held() {
      return held
    },
    release: () => {
      if (!held) return false
      held = false
      empty()
      return true
    },
    restore,
    close: () => files.closeSync(fd),
  }
}

/** A lane that nobody else writes to until it is released. */
interface LaneLock extends Disposable {
  readonly lane: string
}

const maxLanes = 1000
const busy = 5

/**
 * Takes the first lane that is free. The lock is an open transaction on the empty database `lock`: the operating
 * system gives it back however the process ends. Nobody else may open that file, since closing it would end the lock.
 */
export function lockFreeLane(folder: string): LaneLock {
  for (let number = 1; number <= maxLanes; number++) {
    const claim = tryLockLane(folder, String(number))
    if (claim) return claim
  }
  throw new Error(`all ${maxLanes} lanes of ${folder} are taken; are so many processes running?`)
}

/** Takes this lane unless somebody has it. */
export function tryLockLane(folder: string, lane: string): LaneLock | undefined {
  mkdirSync(join(folder, lane), { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(join(folder, lane, 'lock'), { timeout: 0 })
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return { lane, [Symbol.dispose]: () => database.close() }
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode === busy) return undefined
    throw error
  }
}

export interface StartOptions {
  readonly folder: string
  readonly version: string
  readonly log: Log
}

/** Writes down, and tells the operator, who has taken a lane and in which state it was. */
export function recordStart({ name, chain, found }: AuditWriter, { folder, version, log }: StartOptions): void {
  const { torn, unproven, findings } = found
  chain.appendControl({
    operation: 'start',
    pid: process.pid,
    host: hostname(),
    version,
    lanes: listLanes(folder),
    ...(torn > 0 && { torn }),
    ...(unproven > 0 && { unproven }),
  })
  if (torn > 0) log.warn({ lane: name, bytes: torn }, 'cut a record off the audit log that was left half written')
  for (const finding of findings) {
    chain.appendControl({ operation: 'gap', ...finding })
    log.error({ lane: name, ...finding }, 'the audit log is not as it was left; `toolway audit verify` says more')
  }
}
