import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import {
  type AuditFilter,
  type FilterConditionOptions,
  filterConditions,
  formatCursor,
  parseCursor,
} from '../../core/audit-archive.ts'
import { ToolwayError } from '../../core/errors.ts'
import { listLanes, type StoredRecord } from '../log-files.ts'
import { type AuditPageQuery, type AuditSearchPage, emptyPage } from '../reader.ts'
import { type CatchUpOptions, catchUp, createSegmentReader, type IndexedPosition } from './catch-up.ts'
import {
  hasWords,
  isIndexDamaged,
  isListed,
  matchesFilter,
  type OperationRow,
  openIndex,
  removeIndex,
  rowOf,
} from './index-file.ts'

export interface AuditQuery extends AuditFilter {
  /** A cursor. Only rows that follow it in the requested order are returned. */
  readonly before?: string
  readonly order?: 'newest' | 'oldest'
  readonly limit?: number
  /** Whether to find only operations without an end. */
  readonly open?: true
}

export type AuditSearch = ReturnType<typeof openSearch>

/**
 * Opens the search in a log's index. The folder must exist. Writes only to the index, never to the log itself. Call
 * `catchUp` first, because records that have not been indexed yet are not found.
 */
export function openSearch({ folder }: { readonly folder: string }) {
  let database = openIndex(folder)
  return {
    async catchUp(options: CatchUpOptions = {}): Promise<number> {
      try {
        return await catchUp(database, folder, options)
      } catch (error) {
        if (!isIndexDamaged(error)) throw error
        database.close()
        removeIndex(folder)
        database = openIndex(folder)
        return catchUp(database, folder, options)
      }
    },
    query: (query: AuditQuery) => find(database, folder, query, false, ({ row }) => row),
    records: (query: AuditQuery) => find(database, folder, query, true, ({ stored }) => stored),
    [Symbol.dispose]: () => database.close(),
  }
}

export async function searchLog(
  folder: string,
  query: AuditPageQuery,
  options?: CatchUpOptions,
): Promise<AuditSearchPage> {
  const { limit, raw, ...rest } = query
  if (listLanes(folder).length === 0) return emptyPage
  using search = await openCurrentSearch(folder, options)
  if (raw) return { ...emptyPage, lines: [...search.records({ ...rest, limit })].map(({ text }) => text) }
  const found = [...search.query({ ...rest, limit: limit + 1 })]
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return { ...emptyPage, rows, next: found.length > limit && last ? cursorOf(last) : null }
}

export async function openCurrentSearch(folder: string, options?: CatchUpOptions): Promise<AuditSearch> {
  using unfinished = new DisposableStack()
  const search = unfinished.use(openSearch({ folder }))
  await search.catchUp(options)
  unfinished.move()
  return search
}

interface Found {
  readonly row: OperationRow
  readonly stored: StoredRecord
}

/** Finds matches in the index and reads them from the segments: operations, or all records if `raw`. */
function* find<T>(
  database: DatabaseSync,
  folder: string,
  query: AuditQuery,
  raw: boolean,
  part: (found: Found) => T,
): Generator<T> {
  const { before, order = 'newest', limit = Number.POSITIVE_INFINITY, open, ...filter } = query
  if (limit <= 0) return
  const newestFirst = order === 'newest'
  const cursor = before === undefined ? undefined : parseCursor(before, 'local')
  const where = whereOf({ filter, raw, cursor, newestFirst }, hasWords(database))
  const direction = newestFirst ? 'DESC' : 'ASC'
  const statement = database.prepare(
    `SELECT r.lane, r.file, r.at, r.bytes, b.file AS b_file, b.at AS b_at, b.bytes AS b_bytes
     FROM records r LEFT JOIN records b ON b.id = r.begin WHERE ${where.sql}${open ? " AND r.phase = 'before'" : ''}
     ORDER BY r.time ${direction}, r.lane ${direction}, r.seq ${direction}`,
  )
  const readRecord = createSegmentReader(folder)
  let count = 0
  try {
    for (const place of statement.iterate(...where.values)) {
      const found = readRow(readRecord, place as unknown as Joined, raw)
      if (!found || (filter.text !== undefined && !matchesFilter(found.row, { text: filter.text }))) continue
      yield part(found)
      if (++count >= limit) return
    }
  } catch (error) {
    if (!isIndexDamaged(error)) throw error
    removeIndex(folder)
    const sentence = "The audit log's index was damaged and has been removed. Run the command again to rebuild it."
    throw new ToolwayError('INTERNAL', sentence, { cause: error })
  }
}

interface Joined extends IndexedPosition {
  readonly b_file: number | null
  readonly b_at: number | null
  readonly b_bytes: number | null
}

function readRow(readRecord: ReturnType<typeof createSegmentReader>, place: Joined, raw: boolean): Found | undefined {
  const { lane, b_file: file, b_at: at, b_bytes: bytes } = place
  const stored = readRecord(place)
  // The record is undefined if retention removed the segment after it was indexed.
  if (!stored || !(raw || isListed(stored.record))) return undefined
  const begun = file !== null && at !== null && bytes !== null
  const before = begun ? readRecord({ lane, file, at, bytes })?.record : undefined
  // A text search should match both records of an operation, so the end's row gets the beginning's arguments.
  return { row: rowOf(stored.lane, stored.record, before?.phase === 'before' ? before : undefined), stored }
}

export const cursorOf = ({ time, lane, seq }: Pick<OperationRow, 'time' | 'lane' | 'seq'>): string =>
  formatCursor({ time: Date.parse(time), chain: Number(lane), seq }, 'local')

function whereOf(options: FilterConditionOptions, hasTextIndex: boolean): { sql: string; values: SQLInputValue[] } {
  const values: SQLInputValue[] = []
  const bind = (value: SQLInputValue): string => {
    values.push(value)
    return '?'
  }
  const conditions = filterConditions(options, {
    shown: 'r.shown = 1',
    chain: 'r.lane',
    time: bind,
    boolean: (value) => bind(value ? 1 : 0),
    integer: bind,
    text: bind,
    matches: (column, pattern) => `wildcard(${bind(pattern)}, ${column})`,
    contains: (text) => {
      const query = hasTextIndex ? trigrams(text) : undefined
      if (query === undefined) return `(r.phase = 'before' OR r.begin IS NOT NULL)`
      return `coalesce(r.begin, r.id) IN (SELECT rowid FROM words WHERE words MATCH ${bind(query)})`
    },
  })
  return { sql: conditions.length === 0 ? '1' : conditions.join(' AND '), values }
}

/** A string's trigrams as a full-text query; undefined if there are none. Skips NUL, which would end the query. */
function trigrams(text: string): string | undefined {
  const characters = [...text.toLowerCase()]
  const all = characters.slice(2).map((_, index) => characters.slice(index, index + 3).join(''))
  const runs = new Set(all.filter((run) => !run.includes('\0')))
  if (runs.size === 0) return undefined
  return [...runs].map((run) => `"${run.replaceAll('"', '""')}"`).join(' AND ')
}
