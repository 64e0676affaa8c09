import type { Audit, AuditBegin, AuditEnd } from '../../core/audit.ts'
import type { Clock } from '../../core/clock.ts'
import { type ErrorDetails, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { dayMs } from '../../lib/duration.ts'
import { argumentsJson, EventFormat, signerOf, type Unrecorded } from '../record.ts'
import { AuditRecorder } from './recorder.ts'
import type { KilledProcess } from './recover.ts'
import { type FileSystem, nodeFileSystem } from './segment-file.ts'

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
