import { type AuditFilter, comparedFields } from '../../core/audit-filter.ts'
import { ToolwayError } from '../../core/errors.ts'
import { storable } from './append.ts'

/** A condition in SQL, and its values. */
export interface Where {
  readonly sql: string
  readonly values: readonly unknown[]
}

/** A place in the order of time: rows after it in the direction of reading are wanted. */
export interface Cursor {
  readonly time: number
  readonly chain: number
  readonly seq: number
}

/** Tells a place in the database from one in the local index: a search goes on where it began. */
const mark = 'pg.'

export const isArchiveCursor = (text: string): boolean => text.startsWith(mark)

export const cursorText = ({ time, chain, seq }: Cursor): string => `${mark}${time}.${chain}.${seq}`

export function parseCursor(text: string): Cursor {
  const [time = Number.NaN, chain = Number.NaN, seq = Number.NaN] = text.slice(mark.length).split('.').map(Number)
  if (!isArchiveCursor(text) || ![time, chain, seq].every(Number.isSafeInteger)) {
    throw new ToolwayError('INVALID_ARGUMENTS', `${text} is no cursor; take one that an earlier answer gave.`)
  }
  return { time, chain, seq }
}

export interface WhereOptions {
  readonly filter: AuditFilter
  readonly raw: boolean
  readonly cursor: Cursor | undefined
  readonly newestFirst: boolean
}

/** A filter as a condition on a record `r` and the beginning `b` of its operation. */
export function whereOf({ filter, raw, cursor, newestFirst }: WhereOptions): Where {
  const parts: string[] = raw ? [] : ['r.shown']
  const values: unknown[] = []
  const value = (given: unknown): string => `$${values.push(given)}`
  const time = (ms: number): string => `${value(isoOf(ms))}::timestamptz`
  const compared = (column: string, wanted: string): string => {
    if (wanted === '') return `coalesce(${column}, '') = ''`
    return wanted.includes('*')
      ? `${column} LIKE ${value(likeOf(storable(wanted)))}`
      : `${column} = ${value(storable(wanted))}`
  }
  if (filter.since !== undefined) parts.push(`r.time >= ${time(filter.since)}`)
  if (filter.until !== undefined) parts.push(`r.time < ${time(filter.until)}`)
  if (filter.is_error !== undefined) parts.push(`r.is_error = ${value(filter.is_error)}`)
  for (const field of comparedFields) {
    const wanted = filter[field]
    if (wanted !== undefined) parts.push(compared(`r.${field}`, wanted))
  }
  if (filter.tool === '') parts.push(compared('r.tool', ''))
  else if (filter.tool !== undefined) {
    parts.push(`(${compared('r.tool', filter.tool)} OR ${compared(`(r.server || '.' || r.tool)`, filter.tool)})`)
  }
  if (filter.text !== undefined) {
    const words = `coalesce(b.words, CASE WHEN r.phase = 'before' THEN r.words END)`
    parts.push(`strpos(${words}, ${value(storable(filter.text.toLowerCase()))}) > 0`)
  }
  if (cursor) {
    const place = `(${time(cursor.time)}, ${value(cursor.chain)}::bigint, ${value(cursor.seq)}::bigint)`
    parts.push(`(r.time, r.chain, r.seq) ${newestFirst ? '<' : '>'} ${place}`)
  }
  return { sql: parts.length === 0 ? 'true' : parts.join(' AND '), values }
}

/** `*` stands for anything, everything else for itself. */
const likeOf = (pattern: string): string => pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%')

/** What lies beyond the times of a calendar is as good as its ends. */
const isoOf = (ms: number): string => new Date(Math.min(Math.max(ms, 0), Date.UTC(9999, 11, 31))).toISOString()
