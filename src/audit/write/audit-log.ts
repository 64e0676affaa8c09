import type { Audit, AuditBegin, AuditEnd } from '../../core/audit.ts'
import type { Clock } from '../../core/clock.ts'
import { type ErrorDetails, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { signerOf } from '../keys.ts'
import type { Unrecorded } from '../record.ts'
import { argumentsJson, createNameQuoter, eventBody, type RedactText } from './event-body.ts'
import { type FileSystem, nodeFileSystem } from './file-system.ts'
import { type AppendedRecord, createRecorder } from './recorder.ts'

export interface AuditLogOptions {
  readonly folder: string
  /** What is on disk before the answer leaves: writes and denials, everything, or nothing. */
  readonly sync: 'writes' | 'all' | 'none'
  /** What happens to reads while nothing can be written. */
  readonly unrecordedReads: 'allow' | 'refuse'
  readonly retainMs: number
  /** Up to which record a lane was copied elsewhere. What is not is kept for longer, up to twice `retainMs`. */
  copied?(lane: string): number
  /** The secret that the keys are made from. */
  readonly key: Buffer | string
  /** What is written down of arguments. Where it throws, nothing is. */
  describe(given: Record<string, unknown>): unknown
  /**
   * Takes secrets out of names: of tools, servers, agents, principals, rules. Asked for each of them in every record, so
   * it had better remember what it has seen. Where it throws, the name is dropped.
   */
  readonly redact?: RedactText
  readonly clock: Clock
  readonly log: Log
  /** Of this program, for the record of its start. */
  readonly version?: string
  readonly segmentBytes?: number
  /** Where the high-water marks of the lanes are kept; see marks.ts. */
  readonly marks?: string | undefined
  /** Kept for the ends of writes on a full disk. */
  readonly reserveBytes?: number
  readonly files?: FileSystem
}

export interface AuditStatus {
  /** The lane of this process; none while the log cannot be opened. */
  readonly lane: string | undefined
  /** The last record, and the last one that is known to be on disk. */
  readonly seq: number
  readonly synced: number
  readonly waiting: number
  readonly recording: boolean
  /** How often it has stopped. */
  readonly outages: number
  /** Why not. */
  readonly error?: string
  /** Missed so far in the outage of now. */
  readonly unrecorded: Unrecorded
}

export interface AuditLog extends Audit, AsyncDisposable {
  /** Settles when all that was recorded up to now is on disk; rejects where that failed. */
  flushed(): Promise<void>
  status(): AuditStatus
}

/** A full disk is tried again much more often, so that this is about how soon somebody can have made room. */
const harmlessAgain = { retryAfterMs: 1_000 }

const dayMs = 24 * 60 * 60 * 1000

/** Opens the log of this process inside a folder that others may write to at the same time. */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const { sync, unrecordedReads, retainMs } = options
  const recorder = createRecorder({
    files: nodeFileSystem,
    version: 'unknown',
    segmentBytes: 64 * 1024 * 1024,
    reserveBytes: 256 * 1024,
    ...options,
    // So that what is kept for an hour does not wait for the end of the day.
    segmentMs: Math.min(dayMs, Math.max(1000, retainMs / 4)),
    signer: signerOf(options.key),
    // Who must be refused where it cannot be written has to know that at once.
    holds: unrecordedReads === 'allow' && sync !== 'all',
  })
  const { outage } = recorder
  const quote = createNameQuoter(options.redact ?? ((text) => text))

  const unavailable = (sentence: string, details: ErrorDetails) =>
    new ToolwayError('AUDIT_UNAVAILABLE', `${sentence} (${outage.error || 'it is closed'}).`, details)

  /** Whoever has run something is not told when to come back: that would be an invitation to run it twice. */
  const mayNotLeave = ({ write, decision }: AuditEnd) =>
    write
      ? unavailable(
          `This call HAS run and ended with ${decision}, but that could not be written to the audit log; look what it changed before you repeat it`,
          {},
        )
      : unavailable(
          'This could not be written to the audit log, so the answer is withheld; try again later',
          harmlessAgain,
        )

  /** What becomes of an operation that is over and whose record did not make it. */
  const unrecorded = (event: AuditEnd): Promise<void> | undefined => {
    if (event.decision === 'DENY') return undefined
    if (event.write || unrecordedReads === 'refuse') return Promise.reject(mayNotLeave(event))
    return undefined
  }

  const wanted = ({ write, decision }: AuditEnd) =>
    sync === 'all' || (sync === 'writes' && (write || decision === 'DENY'))

  const onDisk = ({ seq, commit }: AppendedRecord, event: AuditEnd) => commit.wait(seq).catch(() => unrecorded(event))

  const notBegun = () =>
    unavailable('The audit log cannot be written, so nothing was sent; try again later', harmlessAgain)

  /** After a failed sync only what is surely on disk may begin. */
  const durable = ({ seq, commit }: AppendedRecord) =>
    commit.wait(seq).catch(() => {
      outage.countMissed('refused')
      throw notBegun()
    })

  return {
    begin: (event: AuditBegin) => {
      const described = argumentsJson(event.arguments, options.describe, event.brief)
      const placed = recorder.record(eventBody('before', event, quote, described), event.write ? 'should' : 'may')
      const refused = event.write || unrecordedReads === 'refuse'
      if (placed) return recorder.lastSyncFailed && refused && sync !== 'none' ? durable(placed) : undefined
      outage.countMissed(refused ? 'refused' : 'reads')
      if (refused) throw notBegun()
      return undefined
    },
    end: (event: AuditEnd) => {
      const weight = event.decision === 'DENY' ? 'should' : event.write ? 'must' : 'may'
      const placed = recorder.record(eventBody('after', event, quote), weight)
      if (placed) return wanted(event) ? onDisk(placed, event) : undefined
      outage.countMissed(event.decision === 'DENY' ? 'denials' : event.write ? 'writes' : 'reads')
      return unrecorded(event)
    },
    flushed: async () => {
      await recorder.writer?.flush()
    },
    status: () => {
      const { writer: lane } = recorder
      return {
        lane: lane?.name,
        seq: lane?.chain.seq ?? 0,
        synced: lane?.commit.settled ?? 0,
        waiting: lane?.commit.waiting ?? 0,
        recording: !outage.active,
        outages: outage.count,
        ...(outage.active && { error: outage.error }),
        unrecorded: outage.unrecorded,
      }
    },
    [Symbol.asyncDispose]: () => recorder[Symbol.asyncDispose](),
  }
}
