import type { AuditSubject } from '../../core/audit.ts'
import { type AuditFilter, comparedFields } from '../../core/audit-filter.ts'
import { matches } from '../../lib/wildcard.ts'
import type { StoredRecord } from '../log-files.ts'
import type { AfterRecord, AuditRecord, BeforeRecord, GapRecord } from '../record.ts'

/** One operation as readers see it: how it ended, with the arguments it began with. */
export interface OperationRow extends Partial<Omit<AuditSubject, 'operation'>> {
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
export function rowOfEnd(lane: string, after: AfterRecord, before: BeforeRecord | undefined): OperationRow {
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
export function rowOfBegin(lane: string, before: BeforeRecord): OperationRow {
  const { phase: _, prev: __, hash: ___, time, ...fields } = before
  return { time, ...fields, lane, ended: false }
}

/** Where the log says that something is missing from it, readers must see it. */
export const rowOfGap = (lane: string, { time, seq, operation, reason }: GapRecord): OperationRow => ({
  time,
  lane,
  seq,
  operation,
  reason,
  ended: true,
})

export const isGap = (record: AuditRecord): record is GapRecord => record.operation === 'gap' && !record.phase

/** What a record itself says, whatever it is about: for those who want to see records. */
export function rowOfRecord(lane: string, record: AuditRecord): OperationRow {
  if (record.phase === 'after') return rowOfEnd(lane, record, undefined)
  if (record.phase === 'before') return rowOfBegin(lane, record)
  const { time, seq, operation } = record
  return { time, lane, seq, operation, ended: true, ...('reason' in record && { reason: record.reason }) }
}

/** Whether an operation is one of those: the meaning of a filter, which the index must agree with. */
export function matchesFilter(row: OperationRow, filter: AuditFilter): boolean {
  const time = Date.parse(row.time)
  if (filter.since !== undefined && !(time >= filter.since)) return false
  if (filter.until !== undefined && !(time < filter.until)) return false
  if (filter.is_error !== undefined && (row.is_error === true) !== filter.is_error) return false
  for (const field of comparedFields) {
    const wanted = filter[field]
    if (wanted !== undefined && !fits(wanted, row[field])) return false
  }
  if (filter.tool !== undefined && !isTool(row, filter.tool)) return false
  return filter.text === undefined || searchableText(row.arguments).includes(filter.text.toLowerCase())
}

/** What is not there fits nothing but the empty text: `*` asks for those that have any. */
const fits = (wanted: string, value: string | undefined): boolean =>
  value === undefined ? wanted === '' : matches(wanted, value)

const isTool = ({ server, tool }: OperationRow, wanted: string): boolean =>
  fits(wanted, tool) || (server !== undefined && tool !== undefined && fits(wanted, `${server}.${tool}`))

/** Arguments as people search them: a line for each value, with its name. */
export function searchableText(given: unknown): string {
  const lines: string[] = []
  const add = (value: unknown, name: string, depth: number): void => {
    if (typeof value !== 'object' || value === null) lines.push(name === '' ? String(value) : `${name}=${value}`)
    else if (depth < deepest) {
      for (const [key, member] of Object.entries(value)) add(member, Array.isArray(value) ? name : key, depth + 1)
    }
  }
  if (given !== undefined) add(given, '', 0)
  return lines.join('\n').toLowerCase()
}

/** Redaction leaves nothing deeper. */
const deepest = 64

/** Makes operations of records as they come. */
interface RecordPairing {
  /** The operation that this record completes; none for a beginning, which waits for its end. */
  add(stored: Pick<StoredRecord, 'lane' | 'record'>): OperationRow | undefined
  /** Operations whose end has not come. */
  open(): OperationRow[]
}

/** Operations that run at once; more than this are those that nobody ended. */
const maxOpen = 10_000

export function createRecordPairing(): RecordPairing {
  const begun = new Map<string, { readonly lane: string; readonly record: BeforeRecord }>()
  return {
    add({ lane, record }) {
      if (isGap(record)) return rowOfGap(lane, record)
      if (record.phase === undefined) return undefined
      const key = `${lane} ${record.call}`
      if (record.phase === 'after') {
        const before = begun.get(key)
        begun.delete(key)
        return rowOfEnd(lane, record, before?.record)
      }
      begun.set(key, { lane, record })
      if (begun.size > maxOpen) begun.delete(begun.keys().next().value as string)
      return undefined
    },
    open: () => [...begun.values()].map(({ lane, record }) => rowOfBegin(lane, record)),
  }
}
