import type { SQLInputValue } from 'node:sqlite'
import { ToolwayError } from '../../core/errors.ts'
import { type AuditFilter, comparedFields } from './filter.ts'
import type { AuditRow } from './row.ts'

/** A condition in SQL, and its values. */
export interface Where {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

/** A place in the order of time: rows after it in the direction of reading are wanted. */
export interface Cursor {
  readonly time: number
  readonly lane: number
  readonly seq: number
}

/** The cursor after a row. */
export const cursorOf = ({ time, lane, seq }: Pick<AuditRow, 'time' | 'lane' | 'seq'>): string =>
  `${Date.parse(time)}.${lane}.${seq}`

export function parseCursor(text: string): Cursor {
  const [time = Number.NaN, lane = Number.NaN, seq = Number.NaN] = text.split('.').map(Number)
  if (![time, lane, seq].every(Number.isSafeInteger)) {
    throw new ToolwayError('INVALID_ARGUMENTS', `${text} is no cursor; take one that an earlier answer gave.`)
  }
  return { time, lane, seq }
}

export interface WhereOptions {
  readonly filter: AuditFilter
  readonly raw: boolean
  readonly cursor: Cursor | undefined
  readonly newestFirst: boolean
  readonly words: boolean
}

/** The filter as far as the index can tell. Texts are only narrowed down: whoever reads the records decides. */
export function whereOf({ filter, raw, cursor, newestFirst, words }: WhereOptions): Where {
  const parts: string[] = raw ? [] : ['r.shown = 1']
  const values: SQLInputValue[] = []
  const add = (sql: string, ...given: SQLInputValue[]) => {
    parts.push(sql)
    values.push(...given)
  }
  if (filter.since !== undefined) add('r.time >= ?', filter.since)
  if (filter.until !== undefined) add('r.time < ?', filter.until)
  if (filter.is_error !== undefined) add('r.is_error = ?', filter.is_error ? 1 : 0)
  for (const field of comparedFields) {
    const wanted = filter[field]
    if (wanted !== undefined) add(compared(`r.${field}`, wanted), wanted)
  }
  if (filter.tool === '') add(compared('r.tool', ''), '')
  else if (filter.tool !== undefined) {
    const full = compared("(r.server || '.' || r.tool)", filter.tool)
    add(`(${compared('r.tool', filter.tool)} OR ${full})`, filter.tool, filter.tool)
  }
  if (filter.text !== undefined) {
    const query = words ? trigrams(filter.text) : undefined
    if (query === undefined) parts.push(`(r.phase = 'before' OR r.begin IS NOT NULL)`)
    else add('coalesce(r.begin, r.id) IN (SELECT rowid FROM words WHERE words MATCH ?)', query)
  }
  if (cursor) {
    add(`(r.time, r.lane, r.seq) ${newestFirst ? '<' : '>'} (?, ?, ?)`, cursor.time, cursor.lane, cursor.seq)
  }
  return { sql: parts.length === 0 ? '1' : parts.join(' AND '), values }
}

const compared = (column: string, wanted: string): string =>
  wanted.includes('*') ? `wildcard(?, ${column})` : wanted === '' ? `coalesce(${column}, '') = ?` : `${column} = ?`

/** All runs of three characters; none where the text is shorter. SQLite takes a NUL for the end of the query. */
function trigrams(text: string): string | undefined {
  const characters = [...text.toLowerCase()]
  const all = characters.slice(2).map((_, index) => characters.slice(index, index + 3).join(''))
  const runs = new Set(all.filter((run) => !run.includes('\0')))
  if (runs.size === 0) return undefined
  return [...runs].map((run) => `"${run.replaceAll('"', '""')}"`).join(' AND ')
}
