import {
  type Archive,
  type ArchiveArrival,
  type ArchiveChain,
  type ArchivedRecord,
  type ArchiveHit,
  type ArchiveName,
  type ArchivePage,
  type ArchiveQuery,
  type ArrivalQuery,
  archiveNames,
  type FilterConditionOptions,
  filterConditions,
  formatCursor,
  parseCursor,
} from '../../core/audit-archive.ts'
import { ToolwayError } from '../../core/errors.ts'
import { epochMs, isoOf, type Postgres, storable } from './connection.ts'

/** Time limit for a search. The server cancels it before the client gives up, which shows that the server is up. */
const searchTimeoutMs = 4_000
const searchTravelMs = 1_000
const readingMs = 60_000
const recordsAtOnce = 2_000

export const createArchive = (postgres: Postgres, { searchMs = searchTimeoutMs } = {}): Archive => ({
  search: (query) => searchArchive(postgres, query, searchMs),
  arrivals: (query) => arrivals(postgres, query),
  async chains() {
    const rows = await postgres.query<ChainRow>(
      `SELECT c.id, c.replica, r.host, c.lane, c.epoch, c.seq, c.hash, c.removed_to
       FROM toolway.chains c JOIN toolway.replicas r ON r.id = c.replica ORDER BY c.id`,
    )
    return rows.map(chainOf)
  },
  async *records(chain) {
    for (let after = 0; ; ) {
      const rows = await postgres.query<FiledRow>(
        `SELECT seq, line, ${epochMs('time')} AS time, shown, is_error, words, ${archiveNames.join(', ')} FROM toolway.records
         WHERE chain = $1 AND seq > $2 ORDER BY seq LIMIT ${recordsAtOnce}`,
        [chain, after],
      )
      const last = rows.at(-1)
      if (!last) return
      yield rows.map(filedOf)
      after = Number(last.seq)
    }
  },
  async checkpoints(chain) {
    const sql = 'SELECT line FROM toolway.checkpoints WHERE chain = $1 ORDER BY seq'
    const rows = await postgres.query<{ line: string }>(sql, [chain])
    return rows.map(({ line }) => line)
  },
  async publicKeys() {
    const rows = await postgres.query<{ keys: string }>('SELECT public_keys AS keys FROM toolway.replicas ORDER BY id')
    return rows.map(({ keys }) => keys).join('\n')
  },
})

type FiledRow = Record<ArchiveName, string | null> &
  Omit<ArchivedRecord, 'names' | 'time'> & { readonly seq: string; readonly time: string }

function filedOf({ seq: _, line, time, shown, is_error, words, ...names }: FiledRow): ArchivedRecord {
  return { line, time: Number(time), shown, is_error, words, names }
}

interface FoundRow extends ArchiveHit {
  readonly chain: number
  readonly seq: string
  readonly time: string
}

async function searchArchive(postgres: Postgres, query: ArchiveQuery, searchMs: number): Promise<ArchivePage> {
  const { before, order = 'newest', limit, raw = false, ...filter } = query
  const newestFirst = order === 'newest'
  const cursor = before === undefined ? undefined : parseCursor(before, 'archive')
  const where = archiveCondition({ filter, raw, cursor, newestFirst })
  const direction = newestFirst ? 'DESC' : 'ASC'
  const rows = await queryWithin<FoundRow>(
    postgres,
    `SELECT ${hitColumns}, r.chain, r.seq, ${epochMs('r.time')} AS time ${recordTables} WHERE ${where.sql}
     ORDER BY r.time ${direction}, r.chain ${direction}, r.seq ${direction} LIMIT $${where.values.length + 1}`,
    [...where.values, limit + 1],
    searchMs,
  )
  const last = rows.length > limit ? rows[limit - 1] : undefined
  const next = last && { time: Number(last.time), chain: last.chain, seq: Number(last.seq) }
  return { hits: rows.slice(0, limit).map(foundOf), next: next ? formatCursor(next, 'archive') : null }
}

async function arrivals(postgres: Postgres, query: ArrivalQuery): Promise<readonly ArchiveArrival[]> {
  const { after = 0, which, limit, raw = false, ...filter } = query
  const where = archiveCondition({ filter, raw })
  const count = where.values.length
  const rows = await queryWithin<ArchiveHit & { readonly position: string }>(
    postgres,
    `SELECT ${hitColumns}, r.position ${recordTables} WHERE ${where.sql} AND r.position > $${count + 1}
     ORDER BY r.position ${which === 'first' ? 'ASC' : 'DESC'} LIMIT $${count + 2}`,
    [...where.values, after, limit],
    readingMs,
  )
  const hits = rows.map((row) => ({ ...foundOf(row), position: Number(row.position) }))
  return which === 'first' ? hits : hits.reverse()
}

/** The columns of a record and, if it ends an operation, of the record that began it. */
const hitColumns = 'c.replica, p.host, c.lane, r.line, b.line AS begin'
const recordTables = `FROM toolway.records r
  JOIN toolway.chains c ON c.id = r.chain JOIN toolway.replicas p ON p.id = c.replica
  LEFT JOIN toolway.records b ON b.chain = r.chain AND b.seq = r.begin_seq AND b.time = r.begin_time`

const foundOf = ({ replica, host, lane, line, begin }: ArchiveHit) => ({ replica, host, lane, line, begin })

async function queryWithin<Row extends object>(
  postgres: Postgres,
  sql: string,
  values: readonly unknown[],
  withinMs: number,
): Promise<Row[]> {
  try {
    return await postgres.transaction(async (client) => {
      await client.query(`SET LOCAL statement_timeout = ${withinMs}`, [], withinMs)
      return client.query<Row>(sql, values, withinMs + searchTravelMs)
    })
  } catch (error) {
    if ((error as { code?: string }).code !== cancelledCode) throw error
    const sentence = `The search in PostgreSQL took longer than ${withinMs / 1000} s (a fixed limit). Narrow it down by time, agent or server.`
    throw new ToolwayError('TIMEOUT', sentence, { cause: error })
  }
}

const cancelledCode = '57014'

/** A chain as the query returns it: the driver returns bigint columns as text. */
type ChainRow = Omit<ArchiveChain, 'seq' | 'removedTo'> & { readonly seq: string; readonly removed_to: string }

const chainOf = ({ seq, removed_to, ...chain }: ChainRow): ArchiveChain => {
  return { ...chain, seq: Number(seq), removedTo: Number(removed_to) }
}

function archiveCondition(options: FilterConditionOptions): { sql: string; values: unknown[] } {
  const values: unknown[] = []
  const bind = (value: unknown): string => `$${values.push(value)}`
  const conditions = filterConditions(options, {
    shown: 'r.shown',
    chain: 'r.chain',
    time: (ms) => `${bind(isoOf(ms))}::timestamptz`,
    boolean: bind,
    integer: (value) => `${bind(value)}::bigint`,
    text: (value) => bind(storable(value)),
    matches: (column, pattern) => `${column} LIKE ${bind(likeOf(storable(pattern)))}`,
    contains: (text) => {
      const words = `coalesce(b.words, CASE WHEN r.phase = 'before' THEN r.words END)`
      return `strpos(${words}, ${bind(storable(text.toLowerCase()))}) > 0`
    },
  })
  return { sql: conditions.length === 0 ? 'true' : conditions.join(' AND '), values }
}

/** Converts a pattern, in which `*` stands for any text, to a LIKE pattern; all other characters are literal. */
const likeOf = (pattern: string): string => pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%')
