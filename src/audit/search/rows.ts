import type { AuditEnd } from '../../core/audit.ts'
import { type AuditFilter, comparedFields } from '../../core/audit-archive.ts'
import { setBounded } from '../../lib/memoize.ts'
import { matches } from '../../lib/wildcard.ts'
import type { StoredRecord } from '../log-files.ts'
import type { AuditRecord, BeforeRecord, GapRecord } from '../record.ts'

/** One operation: how it ended, and the arguments with which it began. */
export interface OperationRow extends Partial<Omit<AuditEnd, 'operation' | 'code'>> {
  /** When the operation ended, or when it began if no end is recorded. */
  readonly time: string
  readonly lane: string
  readonly seq: number
  readonly operation: string
  readonly arguments?: unknown
  /** Whether an end is recorded. If not, the operation is still running, or its process was killed. */
  readonly ended: boolean
  readonly code?: string
}

/** The row for a record. If `record` ends an operation, `before` is the record of the operation's beginning. */
export function rowOf(lane: string, record: AuditRecord, before?: BeforeRecord): OperationRow {
  if (record.phase === undefined) {
    const { time, seq, operation } = record
    const row = { time, lane, seq, operation, reason: 'reason' in record ? record.reason : undefined, ended: true }
    return isGap(record) ? { ...row, detail: extentOf(record) } : row
  }
  const { phase, prev: _, hash: __, time, ...fields } = record
  const row = { time, ...fields, lane, ended: phase === 'after' }
  return phase === 'after' ? { ...row, arguments: before?.arguments } : row
}

/** Whether a record is listed. Operations are, and so are gaps, because readers must see that records are missing. */
export const isListed = (record: AuditRecord): boolean => record.phase !== undefined || isGap(record)

export const isGap = (record: AuditRecord): record is GapRecord => record.operation === 'gap' && !record.phase

/** How many records are missing: `from: 5, to: 9` or `refused: 2, writes: 1`. A record that was changed may have anything. */
const extentOf = ({ missing, unrecorded }: GapRecord): string =>
  Object.entries({ ...missing, ...unrecorded })
    .flatMap(([what, count]) => (typeof count === 'number' && count > 0 ? [`${what}: ${count}`] : []))
    .join(', ')

/** Whether a row matches a filter. This defines the meaning of filters; the index must agree with it. */
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

/** Whether a value matches. A missing value matches only the empty string; `*` matches any value. */
const fits = (wanted: string, value: string | undefined): boolean =>
  value === undefined ? wanted === '' : matches(wanted, value)

const isTool = ({ server, tool }: OperationRow, wanted: string): boolean =>
  fits(wanted, tool) || (server !== undefined && tool !== undefined && fits(wanted, `${server}.${tool}`))

/** The arguments as text for searching: one `name=value` line for each value. */
export function searchableText(given: unknown): string {
  const lines: string[] = []
  const add = (value: unknown, name: string, depth: number): void => {
    if (typeof value !== 'object' || value === null) lines.push(name === '' ? String(value) : `${name}=${value}`)
    else if (depth < maxDepth) {
      for (const [key, member] of Object.entries(value)) add(member, Array.isArray(value) ? name : key, depth + 1)
    }
  }
  if (given !== undefined) add(given, '', 0)
  return lines.join('\n').toLowerCase()
}

/** Max depth. Redaction cuts anything deeper. */
const maxDepth = 64

/** Max operations waiting for their end. Beyond that, the oldest are dropped, because they never ended. */
const maxOpen = 10_000

export function createRecordPairing() {
  const begun = new Map<string, { readonly lane: string; readonly record: BeforeRecord }>()
  return {
    /** Adds a record. Returns the operation that this record completes; undefined for a beginning. */
    add({ lane, record }: Pick<StoredRecord, 'lane' | 'record'>): OperationRow | undefined {
      if (record.phase === undefined) return isGap(record) ? rowOf(lane, record) : undefined
      const key = `${lane} ${record.call}`
      if (record.phase === 'after') {
        const before = begun.get(key)
        begun.delete(key)
        return rowOf(lane, record, before?.record)
      }
      setBounded(begun, key, { lane, record }, maxOpen)
      return undefined
    },
    open: (): OperationRow[] => [...begun.values()].map(({ lane, record }) => rowOf(lane, record)),
  }
}
