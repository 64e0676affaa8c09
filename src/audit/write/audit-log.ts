import type { Audit, AuditBegin, AuditEnd } from '../../core/audit.ts'
import type { Clock } from '../../core/clock.ts'
import { type ErrorDetails, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createSeenTime, type SeenTime } from '../../core/seen-time.ts'
import { dayMs, hourMs } from '../../lib/duration.ts'
import { isMissing, publicKeyFile, readIfExists } from '../log-files.ts'
import {
  argumentsJson,
  bounded,
  EventFormat,
  type RecordBody,
  signerOf,
  type Unrecorded,
  type Verifier,
  verifiersOf,
} from '../record.ts'
import type { KilledProcess } from './recover.ts'
import { applyRetention } from './retention.ts'
import { FileModifiedError, type FileSystem, nodeFileSystem, writeFully } from './segment-file.ts'
import {
  type AuditWriter,
  type ControlFields,
  lockFreeLane,
  openWriter,
  recordStart,
  type WriterOptions,
} from './writer.ts'

export interface AuditLogOptions {
  readonly folder: string
  /** Which records must be on disk before the response is sent: those of writes and denials, all, or none. */
  readonly sync: 'writes' | 'all' | 'none'
  readonly unrecordedReads: 'allow' | 'refuse'
  readonly retainMs: number
  /** The number of the lane's last copied record. Uncopied records are kept for up to twice `retainMs`. */
  copied?(lane: string): number
  /** The secret from which the keys are derived. */
  readonly key: Buffer | string
  /** Returns the arguments in the form in which they are recorded. If it throws, they are dropped. */
  describe(args: Record<string, unknown>): unknown
  /** The present redactor of names: a new function whenever the secrets change. If it throws, the name is dropped. */
  redactor?(): (name: string) => string
  readonly clock: Clock
  readonly log: Log
  readonly version?: string
  readonly segmentBytes?: number
  /** The folder with the high-water marks; see head.ts. */
  readonly marks?: string | undefined
  readonly reserveBytes?: number
  readonly files?: FileSystem
}

export interface AuditStatus {
  /** This process's lane. Undefined while the log cannot be opened. */
  readonly lane: string | undefined
  /** The number of the last record and, in `synced`, of the last one known to be on disk. */
  readonly seq: number
  readonly synced: number
  readonly waiting: number
  readonly recording: boolean
  readonly outages: number
  readonly error: string | undefined
  readonly unrecorded: Unrecorded
  /** How many signs of a change were found when this process opened its log. */
  readonly changedBeforeStart: number
  /** The process that wrote to this lane before and was killed; undefined if it was stopped. */
  readonly killed: KilledProcess | undefined
}

export interface AuditLog extends Audit, AsyncDisposable {
  /** Resolves when everything recorded so far is on disk. Rejects if that fails. */
  flushed(): Promise<void>
  status(): AuditStatus
}

/** When a caller should retry an operation that changed nothing. Toolway retries writing to the log more often. */
const harmlessAgain = { retryAfterMs: 1_000 }

const unchanged = (name: string): string => name

export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const { sync, unrecordedReads, retainMs } = options
  const recorder = new AuditRecorder({
    files: nodeFileSystem,
    version: 'unknown',
    segmentBytes: 64 * 1024 * 1024,
    reserveBytes: 256 * 1024,
    ...options,
    // Segments must be shorter than the retention time: with an hour's retention, none may last all day.
    segmentMs: Math.min(dayMs, Math.max(1000, retainMs / 4)),
    signer: signerOf(options.key),
    // If reads are refused while the log is failing, do not hold records: the failure must be known before the read.
    holds: unrecordedReads === 'allow' && sync !== 'all',
  })
  const { outage } = recorder
  const format = new EventFormat(options.redactor ?? (() => unchanged))

  const unavailable = (sentence: string, details: ErrorDetails) =>
    new ToolwayError('AUDIT_UNAVAILABLE', `${sentence} (${outage.error || 'the log is closed'}).`, details)

  /** Handles the end of an operation that could not be recorded. Rejects if the result must not be sent. */
  const unrecorded = ({ write, decision }: AuditEnd): Promise<void> | undefined => {
    if (decision === 'DENY' || !(write || unrecordedReads === 'refuse')) return undefined
    const withheld = 'This call could not be written to the audit log, so its result is withheld; try again later'
    const hasRun = `This call HAS run and ended with ${decision}, but that could not be written to the audit log; check what it changed before you repeat it`
    // No `retryAfterMs` for a write that has run: it would invite clients to run the write twice.
    return Promise.reject(write ? unavailable(hasRun, {}) : unavailable(withheld, harmlessAgain))
  }

  const mustBeOnDisk = ({ write, decision }: AuditEnd) =>
    sync === 'all' || (sync === 'writes' && (write || decision === 'DENY'))

  const notBegun = () =>
    unavailable('The audit log cannot be written, so nothing was sent; try again later', harmlessAgain)

  /** Waits until a record is on disk. After a failed sync, an operation starts only once its record is on disk. */
  const durable = (seq: number) =>
    recorder.synced(seq).catch(() => {
      outage.countMissed('refused')
      throw notBegun()
    })

  return {
    begin: (event: AuditBegin) => {
      const described = argumentsJson(event.arguments, options.describe, event.brief)
      const seq = recorder.record(format.begin(event, described), event.write ? 'should' : 'may')
      const refused = event.write || unrecordedReads === 'refuse'
      if (seq !== undefined) return recorder.lastSyncFailed && refused && sync !== 'none' ? durable(seq) : undefined
      outage.countMissed(refused ? 'refused' : 'reads')
      if (refused) throw notBegun()
      return undefined
    },
    end: (event: AuditEnd) => {
      const weight = event.decision === 'DENY' ? 'should' : event.write ? 'must' : 'may'
      const seq = recorder.record(format.end(event), weight)
      if (seq !== undefined)
        return mustBeOnDisk(event) ? recorder.synced(seq).catch(() => unrecorded(event)) : undefined
      outage.countMissed(event.decision === 'DENY' ? 'denials' : event.write ? 'writes' : 'reads')
      return unrecorded(event)
    },
    flushed: async () => {
      await recorder.writer?.flush()
    },
    status: () => {
      const { writer } = recorder
      return {
        lane: writer?.name,
        seq: writer?.chain.seq ?? 0,
        synced: writer?.commit.settled ?? 0,
        waiting: writer?.commit.waiting ?? 0,
        recording: !outage.active,
        outages: outage.count,
        error: outage.active ? outage.error : undefined,
        unrecorded: outage.unrecorded,
        changedBeforeStart: writer?.found.findings.length ?? 0,
        killed: recorder.killed,
      }
    },
    [Symbol.asyncDispose]: () => recorder[Symbol.asyncDispose](),
  }
}

export interface RecorderOptions extends Omit<WriterOptions, 'failed' | 'lost' | 'synced'> {
  /** Whether to hold `may` records until the end of the event-loop turn and write them in one batch. */
  readonly holds: boolean
  readonly retainMs: number
  copied?(lane: string): number
  readonly version: string
}

/**
 * What to do with a record while the log cannot be written. A `may` record (of a read) is only retried at intervals. A
 * `should` record (the beginning of a write, or a denial) is tried every time while the disk reserve is held. Only a
 * `must` record (the end of a write that has run) may use the reserve: otherwise, repeated refused calls could use it
 * up.
 */
export type RecordPriority = 'may' | 'should' | 'must'

const checkpointEvery = 1024
const checkpointMs = 60_000
/** Max time until records that no caller waits for are synced. */
const syncMs = 1000
/** The interval between attempts to write less important records during an outage. */
const retryIntervalMs = 100
/** Sync, checkpoint and retention. */
const maxTimers = 3

/** Owns this process's writer: opens it, reopens it after a failure, and appends to it. */
class AuditRecorder implements AsyncDisposable {
  readonly #options: RecorderOptions
  readonly #seen: SeenTime
  readonly #timers = new Map<'sync' | 'checkpoint' | 'retention', Disposable>()
  readonly outage: Outage
  #writer: AuditWriter | undefined
  #closed = false
  #retaining: Promise<void>
  /** The number of events since the last signed record. */
  #unsigned = 0
  #triedMs = Number.NEGATIVE_INFINITY
  #writesSoon = false
  /** Whether the last sync failed, so that a written record may not be on disk. */
  lastSyncFailed = false
  readonly killed: KilledProcess | undefined

  constructor(options: RecorderOptions) {
    const { clock, log } = options
    this.#options = options
    this.outage = new Outage(clock, log)
    this.#seen = createSeenTime(clock, options.retainMs, options.segmentMs)
    try {
      this.#writer = this.#open()
    } catch (error) {
      // Start even on a full disk. `unrecordedReads` then decides whether reads run; writes are refused.
      if (!isFull(error)) throw error
      this.outage.begin(error)
    }
    this.killed = this.#writer?.found.killed
    this.#retaining = this.#retain()
  }

  get writer(): AuditWriter | undefined {
    return this.#writer
  }

  /** Writes a record and returns its number. Undefined if that failed; the caller then counts it with `countMissed`. */
  record(body: RecordBody, priority: RecordPriority): number | undefined {
    if (this.#closed) return undefined
    const isPressing = priority === 'must' || (priority === 'should' && this.#writer?.reserve.held)
    if (this.outage.active && !isPressing) {
      const now = this.#options.clock.monotonic()
      if (now - this.#triedMs < retryIntervalMs) return undefined
      this.#triedMs = now
    }
    try {
      this.#writer ??= this.#open()
      const seq = this.#place(this.#writer, body, priority)
      if (this.outage.active && this.#writer.reserve.held && !this.lastSyncFailed) this.outage.end()
      if (++this.#unsigned >= checkpointEvery) this.#checkpoint()
      if (this.#timers.size < maxTimers) this.#wrote()
      return seq
    } catch (error) {
      this.#fail(error)
      // The folder is gone, so close the writer. If a sync is running, the sync itself detects the missing folder.
      if (isMissing(error) && !this.#writer?.commit.busy) this.#leave()
      return undefined
    }
  }

  /** Resolves when the record that was just written is on disk. */
  synced(seq: number): Promise<void> {
    return this.#writer?.commit.wait(seq) ?? Promise.resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const timer of this.#timers.values()) timer[Symbol.dispose]()
    await this.#retaining
    this.#checkpoint('final')
    await this.#flush()
    this.#leave()
  }

  #open(): AuditWriter {
    const options = this.#options
    publishKey(options.folder, options.signer, options.files, options.log)
    const opened: AuditWriter = openWriter(lockFreeLane(options.folder), {
      ...options,
      lost: (records) => this.outage.countMissed('reads', records),
      failed: (error, records) => {
        this.lastSyncFailed = true
        this.outage.begin(error)
        this.outage.countMissed('unsynced', records)
        // Close the writer: only reopening the log shows what is left of it.
        if (error instanceof FileModifiedError && this.#writer === opened) this.#leave()
      },
      synced: () => {
        this.lastSyncFailed = false
        if (opened.reserve.held) this.outage.end()
      },
    })
    try {
      recordStart(opened, options)
    } catch (error) {
      opened.close()
      throw error
    }
    this.#unsigned = 0
    this.#wrote()
    return opened
  }

  #leave(): void {
    this.#writer?.close()
    this.#writer = undefined
  }

  #once(name: 'sync' | 'checkpoint' | 'retention', ms: number, run: () => void): void {
    if (this.#closed || this.#timers.has(name)) return
    const timer = this.#options.clock.after(ms, () => {
      this.#timers.delete(name)
      run()
    })
    this.#timers.set(name, timer)
  }

  #wrote(): void {
    this.#once('sync', syncMs, () => void this.#flush())
    if (this.#unsigned > 0) this.#once('checkpoint', checkpointMs, () => this.#checkpoint())
  }

  async #flush(): Promise<void> {
    try {
      await this.#writer?.flush()
    } catch (error) {
      this.outage.begin(error)
    }
  }

  #checkpoint(end?: 'final'): void {
    if (!this.#writer || (this.#unsigned === 0 && !end)) return
    try {
      this.#writer.chain.appendControl({ operation: 'checkpoint', final: end && true })
      this.#unsigned = 0
      this.#wrote()
    } catch (error) {
      this.outage.begin(error)
    }
  }

  /** Appends a record. Only `must` records may use the reserve; all others fail until it is restored. */
  #place(writer: AuditWriter, body: RecordBody, priority: RecordPriority): number {
    if (priority !== 'must') {
      if (!writer.reserve.restore()) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
      if (priority === 'should' || !this.#options.holds || this.outage.active) return this.#put(writer, body)
      if (!this.#writesSoon) {
        this.#writesSoon = true
        setImmediate(() => this.#writeHeld())
      }
      return this.#put(writer, body, 'held')
    }
    try {
      return this.#put(writer, body)
    } catch (error) {
      if (!this.#releaseReserve(writer, error)) throw error
      return this.#put(writer, body)
    }
  }

  #put({ chain, reserve }: AuditWriter, body: RecordBody, held?: 'held'): number {
    // If the reserve is in use, the gap record waits: the remaining space is for the ends of writes.
    if (this.outage.unrecorded !== none && reserve.held) {
      chain.appendControl(this.outage.gap())
      this.outage.unrecorded = none
    }
    return chain.append(body, held)
  }

  #writeHeld(): void {
    this.#writesSoon = false
    try {
      this.#writer?.chain.write()
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (!this.outage.active) this.#triedMs = this.#options.clock.monotonic()
    this.outage.begin(error)
  }

  /** Frees the disk reserve, but only if the error is due to a full disk. Returns whether it did. */
  #releaseReserve(writer: AuditWriter, error: unknown): boolean {
    if (!isFull(error) || !writer.reserve.release()) return false
    this.outage.begin(error)
    return true
  }

  async #retain(): Promise<void> {
    await applyRetention({
      ...this.#options,
      seen: this.#seen,
      own: () => this.#writer,
      releaseReserve: (writer, error) => this.#releaseReserve(writer, error),
    })
    this.#once('retention', Math.min(hourMs, Math.max(this.#options.segmentMs, syncMs)), () => {
      this.#retaining = this.#retain()
    })
  }
}

const isFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException | undefined)?.code ?? '')

/** Writes the public key next to the log, so that signatures can be verified without the secret. */
function publishKey(folder: string, key: Verifier, files: FileSystem, log: Log): void {
  files.mkdirSync(folder)
  const path = publicKeyFile(folder)
  const known = verifiersOf(readIfExists(path) ?? '')
  if (known.some(({ id }) => id === key.id)) return
  if (known.length > 0) {
    log.warn({ file: path }, "the audit log's secret has been replaced; older records keep their old signatures")
  }
  const fd = files.openSync(path, 'a', 0o644)
  try {
    writeFully(files, fd, Buffer.from(key.pem))
  } finally {
    files.closeSync(fd)
  }
}

const none: Unrecorded = { refused: 0, reads: 0, denials: 0, writes: 0, unsynced: 0 }

/** Whether the log cannot be written, and what is missing in it. */
class Outage {
  active = false
  count = 0
  /** The error message for the current outage. Empty if there is none. */
  error = ''
  /** The number of missing records that have not been reported in a gap record yet. */
  unrecorded = none
  #sinceMs: number | undefined
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  begin(thrown: unknown): void {
    this.error = thrown instanceof Error ? thrown.message : String(thrown)
    this.#sinceMs ??= this.#clock.now()
    if (this.active) return
    this.active = true
    this.count++
    this.#log.error({ err: thrown }, 'audit records cannot be written; refusing write calls until the log works again')
  }

  end(): void {
    if (!this.active) return
    this.active = false
    this.error = ''
    this.#sinceMs = undefined
    this.#log.info({}, 'the audit log is writable again')
  }

  countMissed(what: keyof Unrecorded, records = 1): void {
    this.unrecorded = { ...this.unrecorded, [what]: this.unrecorded[what] + records }
  }

  /** The record that must be written before any other record. */
  gap(): ControlFields {
    const since = new Date(this.#sinceMs ?? this.#clock.now()).toISOString()
    return { operation: 'gap', reason: 'unrecorded', error: bounded(this.error), since, unrecorded: this.unrecorded }
  }
}
