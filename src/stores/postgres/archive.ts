import {
  type Archive,
  type ArchiveChain,
  type ArchiveFound,
  type ArchiveName,
  type ArchivePage,
  type ArchiveQuery,
  archiveNames,
  type FiledRecord,
} from '../../core/audit-archive.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Postgres } from './connection.ts'
import { cursorText, parseCursor, whereOf } from './where.ts'

/** Nobody who searches waits longer. The server gives up before the client does: then it is known to be there. */
const patienceMs = 4_000
const travelMs = 1_000
const recordsAtOnce = 2_000

/** The records of all replicas, for whoever reads them. */
export const archiveOf = (postgres: Postgres, { searchMs = patienceMs } = {}): Archive => ({
  search: (query) => search(postgres, query, searchMs),
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
        `SELECT seq, line, time, shown, is_error, words, ${archiveNames.join(', ')} FROM toolway.records
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
    const rows = await postgres.query<{ line: string }>(
      'SELECT line FROM toolway.checkpoints WHERE chain = $1 ORDER BY seq',
      [chain],
    )
    return rows.map(({ line }) => line)
  },
  async publicKeys() {
    const rows = await postgres.query<{ keys: string }>('SELECT public_keys AS keys FROM toolway.replicas ORDER BY id')
    return rows.map(({ keys }) => keys).join('\n')
  },
})

interface FiledRow extends Record<ArchiveName, string | null> {
  readonly seq: string
  readonly line: string
  readonly time: Date
  readonly shown: boolean
  readonly is_error: boolean
  readonly words: string
}

const filedOf = ({ seq: _, line, time, shown, is_error, words, ...names }: FiledRow): FiledRecord => ({
  line,
  time: time.getTime(),
  shown,
  is_error,
  words,
  names,
})

interface FoundRow extends ArchiveFound {
  readonly chain: number
  readonly seq: string
  readonly time: Date
}

async function search(postgres: Postgres, query: ArchiveQuery, searchMs: number): Promise<ArchivePage> {
  const { before, order = 'newest', limit, raw = false, ...filter } = query
  const newestFirst = order === 'newest'
  const cursor = before === undefined ? undefined : parseCursor(before)
  const where = whereOf({ filter, raw, cursor, newestFirst })
  const direction = newestFirst ? 'DESC' : 'ASC'
  const sql = `SELECT c.replica, p.host, c.lane, r.line, b.line AS begin, r.chain, r.seq, r.time
     FROM toolway.records r
     JOIN toolway.chains c ON c.id = r.chain JOIN toolway.replicas p ON p.id = c.replica
     LEFT JOIN toolway.records b ON b.chain = r.chain AND b.seq = r.begin_seq AND b.time = r.begin_time
     WHERE ${where.sql}
     ORDER BY r.time ${direction}, r.chain ${direction}, r.seq ${direction} LIMIT $${where.values.length + 1}`
  const rows = await postgres
    .transaction(async (client) => {
      await client.query(`SET LOCAL statement_timeout = ${searchMs}`, [], searchMs)
      return client.query<FoundRow>(sql, [...where.values, limit + 1], searchMs + travelMs)
    })
    .catch((error) => {
      throw (error as { code?: string }).code === cancelled ? tooSlow(searchMs, error) : error
    })
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return {
    found: rows.slice(0, limit).map(({ replica, host, lane, line, begin }) => ({ replica, host, lane, line, begin })),
    next: last ? cursorText({ time: last.time.getTime(), chain: last.chain, seq: Number(last.seq) }) : null,
  }
}

const cancelled = '57014'

const tooSlow = (searchMs: number, cause: unknown) =>
  new ToolwayError(
    'TIMEOUT',
    `The search in PostgreSQL took longer than ${searchMs / 1000} s; narrow it down, by time, agent or server.`,
    { cause },
  )

/** PostgreSQL's large numbers come as texts. */
interface ChainRow {
  readonly id: number
  readonly replica: string
  readonly host: string
  readonly lane: string
  readonly epoch: number
  readonly seq: string
  readonly hash: string
  readonly removed_to: string
}

const chainOf = ({ seq, removed_to, ...chain }: ChainRow): ArchiveChain => ({
  ...chain,
  seq: Number(seq),
  removedTo: Number(removed_to),
})
