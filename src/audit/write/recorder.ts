import { readFileSync } from 'node:fs'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { publicKeyFile } from '../log-files.ts'
import { type Unrecorded, type Verifier, verifiersOf } from '../record.ts'
import type { ControlFields } from './chain.ts'
import { bounded, type RecordBody } from './event-body.ts'
import { FileModifiedError, type FileSystem, type GroupCommit, writeFully } from './log-file.ts'
import { applyRetention } from './retention.ts'
import { type AuditWriter, lockFreeLane, openWriter, recordStart, type WriterOptions } from './writer.ts'

export interface RecorderOptions extends Omit<WriterOptions, 'failed' | 'lost' | 'synced'> {
  /** Hold `may` records until the end of the event-loop turn and write them in one batch. */
  readonly holds: boolean
  readonly retainMs: number
  copied?(lane: string): number
  readonly version: string
}

/**
 * How hard to try while the log cannot be written. `may` (reads) is retried at intervals only. `should` (the beginning
 * of a write, a denial) is tried every time while the disk reserve is held. Only `must` (the end of a write that has
 * run) may use the reserve: otherwise repeated refused calls could use it up.
 */
export type RecordPriority = 'may' | 'should' | 'must'

export interface AppendedRecord {
  readonly seq: number
  readonly commit: GroupCommit
}

/** Owns this process's lane: opens it, reopens it after a failure, and appends to it. */
export interface Recorder extends AsyncDisposable {
  readonly writer: AuditWriter | undefined
  readonly outage: RecordingOutage
  /** The last sync failed, so a record that was written may not be on disk. */
  readonly lastSyncFailed: boolean
  /** Undefined if the record could not be written; the caller then counts it with `outage.countMissed`. */
  record(body: RecordBody, weight: RecordPriority): AppendedRecord | undefined
}

const checkpointEvery = 1024
const checkpointMs = 60_000
/** Records that no caller waits for are synced within this time. */
const syncMs = 1000
/** During an outage, less important records retry only this often. */
const patienceMs = 100
const hourMs = 60 * 60 * 1000

export function createRecorder(options: RecorderOptions): Recorder {
  const { folder, clock, log, files } = options
  const outage = createOutage({ clock, log })
  let lane: AuditWriter | undefined
  let closed = false
  let doubtful = false
  /** Events since the last signed record. */
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
    doubtful = true
    outage.unsynced(error, records)
    // Only reopening the lane shows what is left of it.
    if (error instanceof FileModifiedError && lane === of) leave()
  }

  const leave = () => {
    lane?.close()
    lane = undefined
  }

  const open = (): AuditWriter => {
    publishKey(folder, options.signer, files, log)
    const opened = openWriter(lockFreeLane(folder), {
      ...options,
      lost: (records) => outage.countMissed('reads', records),
      failed: (...what) => failed(opened, ...what),
      synced: () => {
        doubtful = false
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
      await lane?.flush()
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
        lane?.chain.write()
      } catch (error) {
        outage.begin(error)
      }
    })
  }

  const checkpoint = (end?: 'final') => {
    if (!lane || (unsigned === 0 && !end)) return
    try {
      lane.chain.appendControl({ operation: 'checkpoint', ...(end && { final: true }) })
      unsigned = 0
      wrote()
    } catch (error) {
      outage.begin(error)
    }
  }

  const put = ({ chain, reserve }: AuditWriter, body: RecordBody, held?: 'held'): number => {
    // On a full disk the gap record waits: the remaining space is for the ends of writes.
    const gap = reserve.held ? outage.gap() : undefined
    if (gap) {
      chain.appendControl(gap)
      outage.reported()
    }
    return chain.append(body, held)
  }

  /** Only `must` records may use the reserve; the others fail until it is restored. */
  const place = (into: AuditWriter, body: RecordBody, weight: RecordPriority): number => {
    if (weight !== 'must') {
      if (!into.reserve.held && !into.reserve.restore()) throw full('the disk is full')
      if (weight === 'should' || !options.holds || outage.active) return put(into, body)
      writeSoon()
      return put(into, body, 'held')
    }
    try {
      return put(into, body)
    } catch (error) {
      if (!spends(into, error)) throw error
      return put(into, body)
    }
  }

  const spends = (of: AuditWriter, error: unknown): boolean => {
    if (!isFull(error) || !of.reserve.release()) return false
    outage.begin(error)
    return true
  }

  const record: Recorder['record'] = (body, weight) => {
    if (closed) return undefined
    const now = clock.monotonic()
    const pressing = weight === 'must' || (weight === 'should' && lane?.reserve.held)
    if (outage.active && !pressing && now - triedMs < patienceMs) return undefined
    if (!pressing) triedMs = now
    try {
      lane ??= open()
      const seq = place(lane, body, weight)
      if (lane.reserve.held && !doubtful) outage.end()
      unsigned++
      if (unsigned >= checkpointEvery) checkpoint()
      wrote()
      return { seq, commit: lane.commit }
    } catch (error) {
      outage.begin(error)
      // The folder is gone. A running sync detects that itself.
      if (codeOf(error) === 'ENOENT' && lane && !lane.commit.busy) leave()
      return undefined
    }
  }

  const retirement = async () => {
    await applyRetention({ ...options, own: () => lane, releaseReserve: spends })
    const ms = Math.min(hourMs, Math.max(options.segmentMs, syncMs))
    once('retention', ms, () => {
      retiring = retirement()
    })
  }

  try {
    lane = open()
  } catch (error) {
    // Start even on a full disk: `unrecordedReads` decides about reads, and writes are refused.
    if (!isFull(error)) throw error
    outage.begin(error)
  }
  let retiring = retirement()

  return {
    get writer() {
      return lane
    },
    outage,
    get lastSyncFailed() {
      return doubtful
    },
    record,
    [Symbol.asyncDispose]: async () => {
      if (closed) return
      closed = true
      for (const timer of timers.values()) timer[Symbol.dispose]()
      await retiring
      checkpoint('final')
      await flush()
      leave()
    },
  }
}

const full = (message: string): Error => Object.assign(new Error(message), { code: 'ENOSPC' })

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? ''

const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(codeOf(error))

/** Writes the public key next to the log, so that signatures can be verified without the secret. */
function publishKey(folder: string, key: Verifier, files: FileSystem, log: Log): void {
  files.mkdirSync(folder)
  const path = publicKeyFile(folder)
  const known = verifiersOf(text(path))
  if (known.some(({ id }) => id === key.id)) return
  if (known.length > 0) {
    log.warn({ file: path }, 'the secret of the audit log has been replaced; older records keep their old signatures')
  }
  const fd = files.openSync(path, 'a', 0o644)
  try {
    writeFully(files, fd, Buffer.from(key.pem))
  } finally {
    files.closeSync(fd)
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

interface RecordingOutage {
  readonly active: boolean
  readonly count: number
  /** Empty without an outage. */
  readonly error: string
  /** Not yet reported in a gap record. */
  readonly unrecorded: Unrecorded
  begin(error: unknown): void
  end(): void
  unsynced(error: unknown, records: number): void
  countMissed(what: Exclude<keyof Unrecorded, 'unsynced'>, records?: number): void
  /** The gap record to write before any other record. */
  gap(): ControlFields | undefined
  reported(): void
}

const none: Unrecorded = { refused: 0, reads: 0, denials: 0, writes: 0, unsynced: 0 }

function createOutage({ clock, log }: { readonly clock: Clock; readonly log: Log }): RecordingOutage {
  let sinceMs: number | undefined
  let lasts = false
  let count = 0
  let error = ''
  let unrecorded = none

  const begins = (thrown: unknown) => {
    error = thrown instanceof Error ? thrown.message : String(thrown)
    sinceMs ??= clock.now()
    if (lasts) return
    lasts = true
    count++
    log.error({ error }, 'audit records cannot be written; refusing write calls until the log works again')
  }

  return {
    get active() {
      return lasts
    },
    get count() {
      return count
    },
    get error() {
      return error
    },
    get unrecorded() {
      return unrecorded
    },
    begin: begins,
    end: () => {
      if (!lasts) return
      lasts = false
      sinceMs = undefined
      error = ''
      log.info({}, 'the audit log is writable again')
    },
    unsynced: (thrown, records) => {
      begins(thrown)
      unrecorded = { ...unrecorded, unsynced: unrecorded.unsynced + records }
    },
    countMissed: (what, records = 1) => {
      unrecorded = { ...unrecorded, [what]: unrecorded[what] + records }
    },
    gap: () => {
      if (unrecorded === none) return undefined
      const since = new Date(sinceMs ?? clock.now()).toISOString()
      return { operation: 'gap', reason: 'unrecorded', error: bounded(error), since, unrecorded }
    },
    reported: () => {
      unrecorded = none
    },
  }
}
