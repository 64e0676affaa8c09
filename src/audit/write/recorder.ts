import { readFileSync } from 'node:fs'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { type Verifier, verifiersOf } from '../keys.ts'
import { publicKeyFile } from '../log-files.ts'
import type { Unrecorded } from '../record.ts'
import type { ControlFields } from './chain.ts'
import { FileModifiedError, type GroupCommit } from './commit.ts'
import { bounded, type RecordBody } from './event-body.ts'
import { type FileSystem, writeFully } from './file-system.ts'
import { applyRetention } from './retention.ts'
import { type AuditWriter, lockFreeLane, openWriter, recordStart, type WriterOptions } from './writer.ts'

export interface RecorderOptions extends Omit<WriterOptions, 'failed' | 'lost' | 'synced'> {
  /** Whether what may be written can wait for the end of the turn, to be written together with others. */
  readonly holds: boolean
  readonly retainMs: number
  /** See `Age`. */
  copied?(lane: string): number
  readonly version: string
}

/**
 * How much a record matters while nothing can be written. What `may` be written (a read) is not tried at every turn;
 * what `should` be is (the beginning of a write, a denial); only what `must` be, the end of a write that has run, may
 * use the reserve: else whoever is refused often enough could use it up.
 */
export type RecordPriority = 'may' | 'should' | 'must'

/** Where a record went, and whom to ask when it is on disk. */
export interface AppendedRecord {
  readonly seq: number
  readonly commit: GroupCommit
}

/** Keeps the lane of this process: opens it, as often as need be, and writes into it while that is possible. */
export interface Recorder extends AsyncDisposable {
  readonly writer: AuditWriter | undefined
  readonly outage: RecordingOutage
  /** The last sync failed: that a record was written says nothing about whether the disk has it. */
  readonly lastSyncFailed: boolean
  /** Undefined where it could not be written: whoever wanted it says what became of that in `outage.missed`. */
  record(body: RecordBody, weight: RecordPriority): AppendedRecord | undefined
}

const checkpointEvery = 1024
const checkpointMs = 60_000
/** What nobody waits for is on disk within this time. */
const syncMs = 1000
/** How long a failure is taken for granted by what does not matter so much. */
const patienceMs = 100
const hourMs = 60 * 60 * 1000

export function createRecorder(options: RecorderOptions): Recorder {
  const { folder, clock, log, files } = options
  const outage = createOutage({ clock, log })
  let lane: AuditWriter | undefined
  let closed = false
  let doubtful = false
  /** Events since the last signature. */
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
    // Only opening the lane anew finds out what is left of it.
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

  /** Sees to it that what was written gets to disk and gets signed. */
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
    // On a full disk what was missed has to wait: the little space there is belongs to the ends of writes.
    const gap = reserve.held ? outage.gap() : undefined
    if (gap) {
      chain.appendControl(gap)
      outage.reported()
    }
    return chain.append(body, held)
  }

  /** What must be written may use the reserve; all else waits until there is one again. */
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

  /** Gives up the reserve, if that may help. */
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
      // The folder is gone; a sync that is under way finds out by itself.
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
    // A full disk is no reason not to start: what then happens to reads and writes is configured.
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

/** Puts the public key beside the log, so that others can check signatures without the secret. */
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

/** A time in which records cannot be written, and what was missed in it. */
interface RecordingOutage {
  readonly active: boolean
  /** How many there were. */
  readonly count: number
  /** Why; empty where all is well. */
  readonly error: string
  /** What nobody has been told yet. */
  readonly unrecorded: Unrecorded
  begin(error: unknown): void
  end(): void
  /** Records were written that the disk may not have. */
  unsynced(error: unknown, records: number): void
  countMissed(what: Exclude<keyof Unrecorded, 'unsynced'>, records?: number): void
  /** What the log must say about it before it says anything else. */
  gap(): ControlFields | undefined
  /** It has said so. */
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
    log.error({ error }, 'audit records cannot be written; writes are refused until they can')
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
      log.info({}, 'audit records are written again')
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
