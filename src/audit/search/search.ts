import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type AuditFilter, comparedFields } from '../../core/audit-filter.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { StoredRecord } from '../log-files.ts'
import type { BeforeRecord } from '../record.ts'
import { type CatchUpOptions, catchUp } from './catch-up.ts'
import { hasWords, isDamage, openIndex, removeIndex } from './index-file.ts'
import { type AuditRow, isGap, rowOfBegin, rowOfEnd, rowOfGap, rowOfRecord, satisfies } from './rows.ts'
import { createSegments, type Place, type Segments } from './segment-reader.ts'

export interface AuditQuery extends FoundQuery {
  readonly limit?: number
}

/** Finds operations in a log. What is not in the index yet is not found: `catchUp` first. */
export interface AuditSearch extends Disposable {
  /** Brings the index up to date; settles with the number of new records. */
  catchUp(options?: CatchUpOptions): Promise<number>
  /** One row for each operation. */
  query(query: AuditQuery): Generator<AuditRow>
  /** The records themselves. */
  records(query: AuditQuery): Generator<StoredRecord>
  /** How many operations there are for each combination of these fields, most first. */
  count(filter: AuditFilter, by: readonly GroupField[]): Group[]
}

/** Opens the index of a log for reading; the log itself is never touched. The folder must be there. */
export function openSearch({ folder }: { readonly folder: string }): AuditSearch {
  let database = openIndex(folder)
  return {
    async catchUp(options = {}) {
      try {
        return await catchUp(database, folder, options)
      } catch (error) {
        if (!isDamage(error)) throw error
        database.close()
        removeIndex(folder)
        database = openIndex(folder)
        return catchUp(database, folder, options)
      }
    },
    query: ({ limit, ...query }) => first(limit, found(database, folder, query, false), ({ row }) => row),
    records: ({ limit, ...query }) => first(limit, found(database, folder, query, true), ({ stored }) => stored),
    count: (filter, by) => countGroups(database, folder, filter, by),
    [Symbol.dispose]: () => database.close(),
  }
}

function* first<T>(limit = Number.MAX_SAFE_INTEGER, all: Generator<Found>, part: (found: Found) => T): Generator<T> {
  let left = limit
  if (left <= 0) return
  for (const one of all) {
    yield part(one)
    if (--left <= 0) return
  }
}

interface FoundQuery extends AuditFilter {
  /** A cursor: only what comes after that row in the order asked for. */
  readonly before?: string
  /** Newest first by default. */
  readonly order?: 'newest' | 'oldest'
}

interface Found {
  readonly row: AuditRow
  readonly stored: StoredRecord
}

/** What the index finds, read from the segments: operations, or all records where they are wanted raw. */
function* found(database: DatabaseSync, folder: string, query: FoundQuery, raw: boolean): Generator<Found> {
  const { before, order = 'newest', ...filter } = query
  const newestFirst = order === 'newest'
  const cursor = before === undefined ? undefined : parseCursor(before)
  const where = whereOf({ filter, raw, cursor, newestFirst, words: hasWords(database) })
  const direction = newestFirst ? 'DESC' : 'ASC'
  const statement = database.prepare(
    `SELECT r.lane, r.file, r.at, r.bytes, b.file AS b_file, b.at AS b_at, b.bytes AS b_bytes
     FROM records r LEFT JOIN records b ON b.id = r.begin WHERE ${where.sql}
     ORDER BY r.time ${direction}, r.lane ${direction}, r.seq ${direction}`,
  )
  using segments = createSegments(folder)
  try {
    for (const place of statement.iterate(...where.values)) {
      const answer = readRow(segments, place as unknown as Joined, raw)
      if (answer && (filter.text === undefined || satisfies(answer.row, { text: filter.text }))) yield answer
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    removeIndex(folder)
    const sentence = 'The index of the audit log was damaged and has been removed; run the command again to rebuild it.'
    throw new ToolwayError('INTERNAL', sentence, { cause: error })
  }
}

/** Where a record stands, and the beginning of its operation if it is an end. */
interface Joined extends Place {
  readonly b_file: number | null
  readonly b_at: number | null
  readonly b_bytes: number | null
}

function readRow(segments: Segments, place: Joined, raw: boolean): Found | undefined {
  const stored = segments.read(place)
  // Retention has been faster than the index.
  if (!stored) return undefined
  const { record, lane } = stored
  const before = beginOf(segments, place)
  if (raw) {
    // Those who look for a text want both records of the operation.
    const given = record.phase === 'before' ? record.arguments : before?.arguments
    return { row: { ...rowOfRecord(lane, record), ...(given !== undefined && { arguments: given }) }, stored }
  }
  if (record.phase === 'after') return { row: rowOfEnd(lane, record, before), stored }
  if (record.phase === 'before') return { row: rowOfBegin(lane, record), stored }
  return isGap(record) ? { row: rowOfGap(lane, record), stored } : undefined
}

function beginOf(
  segments: Segments,
  { lane, b_file: file, b_at: at, b_bytes: bytes }: Joined,
): BeforeRecord | undefined {
  if (file === null || at === null || bytes === null) return undefined
  const record = segments.read({ lane, file, at, bytes })?.record
  return record?.phase === 'before' ? record : undefined
}

type GroupField = 'agent' | 'principal' | 'server' | 'tool' | 'operation' | 'decision' | 'reason' | 'code'

interface Group {
  /** In the order of the fields asked for; null where a row has no such field. */
  readonly key: readonly (string | null)[]
  readonly count: number
  /** Those whose tool said that it failed. */
  readonly errors: number
}

/** How many operations there are for each combination of these fields, most first. */
const countGroups = (
  database: DatabaseSync,
  folder: string,
  filter: AuditFilter,
  by: readonly GroupField[],
): Group[] => (filter.text === undefined ? inIndex(database, filter, by) : inRows(database, folder, filter, by))

function inIndex(database: DatabaseSync, filter: AuditFilter, by: readonly GroupField[]): Group[] {
  const where = whereOf({ filter, raw: false, cursor: undefined, newestFirst: true, words: false })
  const fields = by.map((field, index) => `r.${field} AS k${index},`).join(' ')
  const groups = by.length > 0 ? `GROUP BY ${by.map((field) => `r.${field}`).join(', ')}` : ''
  const statement = database.prepare(
    `SELECT ${fields} count(*) AS count, total(r.is_error) AS errors
     FROM records r WHERE ${where.sql} ${groups} ORDER BY count(*) DESC`,
  )
  return statement.all(...where.values).map((row) => ({
    key: by.map((_, index) => row[`k${index}`] as string | null),
    count: Number(row.count),
    errors: Number(row.errors),
  }))
}

/** The index knows only roughly where a text is, so the records are read. */
function inRows(database: DatabaseSync, folder: string, filter: AuditFilter, by: readonly GroupField[]): Group[] {
  const groups = new Map<string, Group>()
  for (const { row } of found(database, folder, filter, false)) {
    const key = by.map((field) => row[field] ?? null)
    const id = JSON.stringify(key)
    const { count, errors } = groups.get(id) ?? { count: 0, errors: 0 }
    groups.set(id, { key, count: count + 1, errors: errors + (row.is_error ? 1 : 0) })
  }
  return [...groups.values()].sort((a, b) => b.count - a.count)
}

/** A condition in SQL, and its values. */
interface Where {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

/** A place in the order of time: rows after it in the direction of reading are wanted. */
interface Cursor {
  readonly time: number
  readonly lane: number
  readonly seq: number
}

/** The cursor after a row. */
export const cursorOf = ({ time, lane, seq }: Pick<AuditRow, 'time' | 'lane' | 'seq'>): string =>
  `${Date.parse(time)}.${lane}.${seq}`

function parseCursor(text: string): Cursor {
  const [time = Number.NaN, lane = Number.NaN, seq = Number.NaN] = text.split('.').map(Number)
  if (![time, lane, seq].every(Number.isSafeInteger)) {
    throw new ToolwayError('INVALID_ARGUMENTS', `${text} is no cursor; take one that an earlier answer gave.`)
  }
  return { time, lane, seq }
}

interface WhereOptions {
  readonly filter: AuditFilter
  readonly raw: boolean
  readonly cursor: Cursor | undefined
  readonly newestFirst: boolean
  readonly words: boolean
}

/** The filter as far as the index can tell. Texts are only narrowed down: whoever reads the records decides. */
function whereOf({ filter, raw, cursor, newestFirst, words }: WhereOptions): Where {
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
