import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { createSeenTime } from '../../core/seen-time.ts'
import { hourMs } from '../../lib/duration.ts'
import { isMissing, publicKeyFile, readIfExists } from '../log-files.ts'
import { bounded, type RecordBody, type Unrecorded, type Verifier, verifiersOf } from '../record.ts'
import type { ControlFields } from './chain.ts'
import { applyRetention } from './retention.ts'
import { FileModifiedError, type FileSystem, type GroupCommit, writeFully } from './segment-file.ts'
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

export interface AppendedRecord {
  readonly seq: number
  readonly commit: GroupCommit
}

const checkpointEvery = 1024
const checkpointMs = 60_000
/** Max time until records that no caller waits for are synced. */
const syncMs = 1000
/** The interval between attempts to write less important records during an outage. */
const retryIntervalMs = 100

/** Owns this process's writer: opens it, reopens it after a failure, and appends to it. */
export function createRecorder(options: RecorderOptions) {
  const { folder, clock, log, files } = options
  const outage = createOutage(clock, log)
  const seen = createSeenTime(clock, options.retainMs, options.segmentMs)
  let writer: AuditWriter | undefined
  let closed = false
  let lastSyncFailed = false
  /** The number of events since the last signed record. */
  let unsigned = 0
  let triedMs = Number.NEGATIVE_INFINITY
  const timers = new Map<string, Disposable>()

  const once = (name: string, ms: number, run: () => void) => {
    if (closed || timers.has(name)) return
    const timer = clock.after(ms, () => {
      timers.delete(name)
      run()
    })
    timers.set(name, timer)
  }

  const failed = (of: AuditWriter, error: unknown, records: number) => {
    lastSyncFailed = true
    outage.unsynced(error, records)
    // Close the writer: only reopening the log shows what is left of it.
    if (error instanceof FileModifiedError && writer === of) leave()
  }

  const leave = () => {
    writer?.close()
    writer = undefined
  }

  const open = (): AuditWriter => {
    publishKey(folder, options.signer, files, log)
    const opened = openWriter(lockFreeLane(folder), {
      ...options,
      lost: (records) => outage.countMissed('reads', records),
      failed: (...what) => failed(opened, ...what),
      synced: () => {
        lastSyncFailed = false
        if (opened.reserve.held) outage.end()
      },
    })
    try {
      recordStart(opened, options)
    } catch (error) {
      opened.close()
      throw error
    }
    unsigned = 0
    wrote()
    return opened
  }

  const wrote = () => {
    once('sync', syncMs, () => void flush())
    if (unsigned > 0) once('checkpoint', checkpointMs, () => checkpoint())
  }

  const flush = async () => {
    try {
      await writer?.flush()
    } catch (error) {
      outage.begin(error)
    }
  }

  let soon = false
  const writeSoon = () => {
    if (soon) return
    soon = true
    setImmediate(() => {
      soon = false
      try {
        writer?.chain.write()
      } catch (error) {
        outage.begin(error)
      }
    })
  }

  const checkpoint = (end?: 'final') => {
    if (!writer || (unsigned === 0 && !end)) return
    try {
      writer.chain.appendControl({ operation: 'checkpoint', final: end && true })
      unsigned = 0
      wrote()
    } catch (error) {
      outage.begin(error)
    }
  }

  const put = ({ chain, reserve }: AuditWriter, body: RecordBody, held?: 'held'): number => {
    // If the reserve is in use, the gap record waits: the remaining space is for the ends of writes.
    const gap = reserve.held ? outage.gap() : undefined
    if (gap) {
      chain.appendControl(gap)
      outage.reported()
    }
    return chain.append(body, held)
  }

  /** Appends a record. Only `must` records may use the reserve; all others fail until it is restored. */
  const place = (into: AuditWriter, body: RecordBody, weight: RecordPriority): number => {
    if (weight !== 'must') {
      if (!into.reserve.restore()) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
      if (weight === 'should' || !options.holds || outage.active) return put(into, body)
      writeSoon()
      return put(into, body, 'held')
    }
    try {
      return put(into, body)
    } catch (error) {
      if (!releaseReserve(into, error)) throw error
      return put(into, body)
    }
  }

  /** Frees the disk reserve, but only if the error is due to a full disk. Returns whether it did. */
  const releaseReserve = (of: AuditWriter, error: unknown): boolean => {
    if (!isFull(error) || !of.reserve.release()) return false
    outage.begin(error)
    return true
  }

  /** Writes a record. Undefined if that failed; the caller then counts it with `outage.countMissed`. */
  const record = (body: RecordBody, weight: RecordPriority): AppendedRecord | undefined => {
    if (closed) return undefined
    const now = clock.monotonic()
    const pressing = weight === 'must' || (weight === 'should' && writer?.reserve.held)
    if (outage.active && !pressing && now - triedMs < retryIntervalMs) return undefined
    if (!pressing) triedMs = now
    try {
      writer ??= open()
      const seq = place(writer, body, weight)
      if (writer.reserve.held && !lastSyncFailed) outage.end()
      unsigned++
      if (unsigned >= checkpointEvery) checkpoint()
      wrote()
      return { seq, commit: writer.commit }
    } catch (error) {
      outage.begin(error)
      // The folder is gone, so close the writer. If a sync is running, the sync itself detects the missing folder.
      if (isMissing(error) && writer && !writer.commit.busy) leave()
      return undefined
    }
  }

  const retain = async () => {
    await applyRetention({ ...options, seen, own: () => writer, releaseReserve })
    const ms = Math.min(hourMs, Math.max(options.segmentMs, syncMs))
    once('retention', ms, () => {
      retaining = retain()
    })
  }

  try {
    writer = open()
  } catch (error) {
    // Start even on a full disk. `unrecordedReads` then decides whether reads run; writes are refused.
    if (!isFull(error)) throw error
    outage.begin(error)
  }
  const killed = writer?.found.killed
  let retaining = retain()

  return {
    killed,
    get writer() {
      return writer
    },
    outage,
    /** Whether the last sync failed, so that a written record may not be on disk. */
    get lastSyncFailed() {
      return lastSyncFailed
    },
    record,
    [Symbol.asyncDispose]: async () => {
      if (closed) return
      closed = true
      for (const timer of timers.values()) timer[Symbol.dispose]()
      await retaining
      checkpoint('final')
      await flush()
      leave()
    },
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

function createOutage(clock: Clock, log: Log) {
  let sinceMs: number | undefined

  const outage = {
    active: false,
    count: 0,
    /** The error message for the current outage. Empty if there is none. */
    error: '',
    /** The number of missing records that have not been reported in a gap record yet. */
    unrecorded: none,
    begin(thrown: unknown): void {
      outage.error = thrown instanceof Error ? thrown.message : String(thrown)
      sinceMs ??= clock.now()
      if (outage.active) return
      outage.active = true
      outage.count++
      log.error({ err: thrown }, 'audit records cannot be written; refusing write calls until the log works again')
    },
    end(): void {
      if (!outage.active) return
      outage.active = false
      outage.error = ''
      sinceMs = undefined
      log.info({}, 'the audit log is writable again')
    },
    unsynced(thrown: unknown, records: number): void {
      outage.begin(thrown)
      outage.countMissed('unsynced', records)
    },
    countMissed(what: keyof Unrecorded, records = 1): void {
      outage.unrecorded = { ...outage.unrecorded, [what]: outage.unrecorded[what] + records }
    },
    /** The gap record that must be written before any other record. Undefined if there is nothing to report. */
    gap(): ControlFields | undefined {
      const { unrecorded, error } = outage
      if (unrecorded === none) return undefined
      const since = new Date(sinceMs ?? clock.now()).toISOString()
      return { operation: 'gap', reason: 'unrecorded', error: bounded(error), since, unrecorded }
    },
    reported(): void {
      outage.unrecorded = none
    },
  }
  return outage
}
