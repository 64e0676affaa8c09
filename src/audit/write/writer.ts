import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { ChainEnd } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { canonical } from '../../json/canonical-json.ts'
import { dayMs } from '../../lib/duration.ts'
import { makeFolder } from '../../lib/files.ts'
import { firstSeqOf, listLanes, segmentFileName } from '../log-files.ts'
import {
  type ChainedRecord,
  type ControlRecord,
  type RecordBody,
  type RecordPosition,
  type SegmentRecord,
  type Signer,
  sealLine,
} from '../record.ts'
import { headFile, lastKnownHead, openHead, openMark } from './head.ts'
import { type RecoveredLane, recoverLane } from './recover.ts'
import {
  appendLine,
  createGroupCommit,
  type FileSystem,
  openSegment,
  type Segment,
  writeFully,
} from './segment-file.ts'

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

/** `Omit`, applied to each member of a union. */
type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never
/** A control record before it is signed and chained. */
export type ControlFields = Without<ControlRecord, keyof ChainedRecord | 'lane' | 'key' | 'signature' | 'phase'>

export interface ChainOptions {
  readonly folder: string
  readonly lane: string
  readonly resumption: RecoveredLane
  readonly signer: Signer
  readonly files: FileSystem
  readonly clock: Clock
  readonly segmentBytes: number
  readonly segmentMs: number
  opened(segment: Segment): void
  /** Called if held records could not be written and are lost. */
  lost(records: number): void
}

/** The hash chain of one lane. A failed write leaves it unchanged. */
class RecordChain {
  readonly #options: ChainOptions
  readonly #folder: string
  readonly #timeOf = isoTime()
  #seq: number
  #hash: string
  #segment: Segment | undefined
  #isAbandoned: boolean
  #previous: SegmentRecord['previous']
  #written: ChainEnd
  #held = ''

  constructor(options: ChainOptions) {
    const { seq, hash, segment, needsNewSegment } = options.resumption
    this.#options = options
    this.#folder = join(options.folder, options.lane)
    this.#seq = seq
    this.#hash = hash
    this.#written = { seq, hash }
    this.#isAbandoned = segment !== undefined && needsNewSegment
    this.#previous = segment && endOf(segment)
    if (segment && !needsNewSegment) {
      this.#segment = openSegment(options.files, this.#folder, segment)
      options.opened(this.#segment)
    }
  }

  get seq(): number {
    return this.#seq
  }

  /** The last record in the file. Held records come after it. */
  get written(): ChainEnd {
    return this.#written
  }

  /**
   * Appends a record and returns its number. Rethrows file system errors. A held record is written together with the
   * next record that is not held, or by `write`, because one large write is cheaper than many.
   */
  append(body: RecordBody, later?: 'held'): number {
    const now = this.#options.clock.now()
    const segment = this.#current(now)
    const text = body(this.#next(now))
    return later ? this.#hold(text) : this.#put(segment, text)
  }

  appendControl(fields: ControlFields): number {
    const now = this.#options.clock.now()
    return this.#putControl(this.#current(now), fields, now)
  }

  /** Writes the held records. If that throws, they are lost. */
  write(): void {
    if (this.#segment && this.#held !== '') this.#writeTo(this.#segment, this.#seq - this.#written.seq)
  }

  abandon(): void {
    if (!this.#segment) return
    this.#drop(this.#seq - this.#written.seq)
    this.#retire(this.#segment)
    this.#isAbandoned = true
  }

  /** Starts a new segment if the current one is old and not empty, even if there is no record to write. */
  rotateIfOld(): void {
    if (this.#segment && this.#seq > firstSeqOf(this.#segment.file)) this.#current(this.#options.clock.now())
  }

  #next(now: number): RecordPosition {
    return { time: this.#timeOf(now), seq: this.#seq + 1, prev: this.#hash }
  }

  #hold(body: string): number {
    const { line, hash } = sealLine(body)
    this.#held += line
    this.#hash = hash
    return ++this.#seq
  }

  /** Rolls back to the last written record and reports held records as lost. */
  #drop(promised: number): void {
    this.#held = ''
    this.#seq = this.#written.seq
    this.#hash = this.#written.hash
    if (promised > 0) this.#options.lost(promised)
  }

  #writeTo(segment: Segment, promised: number): void {
    try {
      appendLine(this.#options.files, segment, this.#held)
    } catch (error) {
      this.#drop(promised)
      throw error
    }
    this.#held = ''
    this.#written = { seq: this.#seq, hash: this.#hash }
  }

  #put(segment: Segment, body: string): number {
    const promised = this.#seq - this.#written.seq
    const seq = this.#hold(body)
    this.#writeTo(segment, promised)
    return seq
  }

  #putControl(segment: Segment, fields: object, now: number): number {
    const { lane, signer } = this.#options
    const record = { ...fields, ...this.#next(now), lane, key: signer.id }
    return this.#put(segment, canonical({ ...record, signature: signer.sign(record) }))
  }

  #retire(segment: Segment): void {
    this.#previous = endOf(segment)
    segment.done = true
    this.#segment = undefined
  }

  #current(now: number): Segment {
    const { segmentBytes, segmentMs } = this.#options
    if (this.#segment?.spoiled) this.abandon()
    const segment = this.#segment
    if (!segment) return this.#begin(this.#isAbandoned ? 'abandoned' : 'first', now)
    if (segment.bytes + this.#held.length >= segmentBytes) return this.#begin('size', now)
    return isOld(segment.openedMs, now, segmentMs) ? this.#begin('age', now) : segment
  }

  /** Starts a new segment. Creates it with its first record before retiring the old one. */
  #begin(reason: SegmentRecord['reason'], now: number): Segment {
    const { files, opened } = this.#options
    this.write()
    const old = this.#segment
    const fresh = openSegment(files, this.#folder, { file: segmentFileName(this.#seq + 1), openedMs: now })
    try {
      this.#putControl(fresh, { operation: 'segment', reason, previous: old ? endOf(old) : this.#previous }, now)
    } catch (error) {
      files.closeSync(fresh.fd)
      files.unlinkSync(fresh.path)
      throw error
    }
    if (old) this.#retire(old)
    this.#isAbandoned = false
    this.#segment = fresh
    opened(fresh)
    return fresh
  }
}

const endOf = ({ file, bytes }: Pick<Segment, 'file' | 'bytes'>) => ({ file, bytes })

/** Creates a function that formats times and caches the part that stays the same for a second. */
function isoTime(): (ms: number) => string {
  let second = Number.NaN
  let text = ''
  return (ms) => {
    const now = Math.floor(ms / 1000)
    if (now !== second) {
      second = now
      text = new Date(now * 1000).toISOString().slice(0, -4)
    }
    return `${text}${String(ms - now * 1000).padStart(3, '0')}Z`
  }
}

/**
 * Whether a segment must end. Segments end with the UTC day, or earlier if the retention time is short. They also end
 * when a wrong clock is corrected, because the age of a file that begins in the future is unknown.
 */
const isOld = (openedMs: number, nowMs: number, maxMs: number): boolean =>
  Math.floor(nowMs / dayMs) !== Math.floor(openedMs / dayMs) || Math.abs(nowMs - openedMs) >= maxMs
