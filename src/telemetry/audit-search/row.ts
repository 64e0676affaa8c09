import type { AuditSubject } from '../../core/audit.ts'
import type { AfterRecord, AuditRecord, BeforeRecord, GapRecord } from '../audit/record.ts'

/** One operation as readers see it: how it ended, with the arguments it began with. */
export interface AuditRow extends Partial<Omit<AuditSubject, 'operation'>> {
  /** Of its end; of its beginning, where no end is recorded. */
  readonly time: string
  readonly lane: string
  /** Of the record that `time` comes from. */
  readonly seq: number
  readonly operation: string
  readonly arguments?: unknown
  /** False where no end is recorded: it is still going on, or whoever ran it was killed. */
  readonly ended: boolean
  readonly decision?: AfterRecord['decision']
  readonly reason?: string
  readonly rule?: string
  readonly code?: string
  readonly is_error?: boolean
  readonly latency_ms?: number
  readonly requested?: number
  readonly returned?: number
  readonly tokens?: number
}

/** How an operation ended; its arguments stand in the record of its beginning. */
export function rowOfEnd(lane: string, after: AfterRecord, before: BeforeRecord | undefined): AuditRow {
  const { phase: _, prev: __, hash: ___, time, ...fields } = after
  return {
    time,
    ...fields,
    lane,
    ended: true,
    ...(before?.arguments !== undefined && { arguments: before.arguments }),
  }
}

/** An operation without an end. */
export function rowOfBegin(lane: string, before: BeforeRecord): AuditRow {
  const { phase: _, prev: __, hash: ___, time, ...fields } = before
  return { time, ...fields, lane, ended: false }
}

/** Where the log says that something is missing from it, readers must see it. */
export const rowOfGap = (lane: string, { time, seq, operation, reason }: GapRecord): AuditRow => ({
  time,
  lane,
  seq,
  operation,
  reason,
  ended: true,
})

export const isGap = (record: AuditRecord): record is GapRecord => record.operation === 'gap' && !record.phase

/** What a record itself says, whatever it is about: for those who want to see records. */
export function rowOfRecord(lane: string, record: AuditRecord): AuditRow {
  if (record.phase === 'after') return rowOfEnd(lane, record, undefined)
  if (record.phase === 'before') return rowOfBegin(lane, record)
  const { time, seq, operation } = record
  return { time, lane, seq, operation, ended: true, ...('reason' in record && { reason: record.reason }) }
}
