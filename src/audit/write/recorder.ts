import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { createSeenTime, type SeenTime } from '../../core/seen-time.ts'
import { hourMs } from '../../lib/duration.ts'
import { isMissing, publicKeyFile, readIfExists } from '../log-files.ts'
import { bounded, type RecordBody, type Unrecorded, type Verifier, verifiersOf } from '../record.ts'
import type { ControlFields } from './chain.ts'
import type { KilledProcess } from './recover.ts'
import { applyRetention } from './retention.ts'
import { FileModifiedError, type FileSystem, writeFully } from './segment-file.ts'
import { type AuditWriter, lockFreeLane, openWriter, recordStart, type WriterOptions } from './writer.ts'

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
export class AuditRecorder implements AsyncDisposable {
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
