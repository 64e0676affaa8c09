import type { SeenTime } from '../../core/seen-time.ts'
import { advisoryLocks, type Postgres, type Transaction } from './connection.ts'

const retentionTimeoutMs = 10 * 60_000

/**
 * Removes old records: drops the tables of months that have expired completely, and deletes other old records
 * individually. A chain is only shortened from its beginning, whatever the times of its records, because a hole would
 * look like tampering. Records dated in the future come from a wrong clock, or from before it was set back; they are
 * removed together with the records after them.
 */
export function removeExpired(postgres: Postgres, nowMs: number, retainMs: number, seen: SeenTime) {
  return postgres.transaction(async (client) => {
    const [lock] = await client.query<{ mine: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1, $2) AS mine',
      advisoryLocks.retention,
    )
    // Another replica is already removing records.
    if (!lock?.mine) return { partitions: [], records: 0 }
    await client.query(`SET LOCAL statement_timeout = ${retentionTimeoutMs}`)
    const beforeMs = seen.before(retainMs, await recordTimes(client, seen.maxGapMs))
    await client.query(
      `CREATE TEMP TABLE kept ON COMMIT DROP AS
       SELECT c.id AS chain, coalesce(
         (SELECT max(r.seq) + 1 FROM toolway.records r
          WHERE r.chain = c.id AND r.time < $1::timestamptz AND (fresh.seq IS NULL OR r.seq < fresh.seq)),
         c.removed_to + 1
       ) AS seq FROM toolway.chains c CROSS JOIN LATERAL (
         SELECT min(r.seq) AS seq FROM toolway.records r
         WHERE r.chain = c.id AND r.time BETWEEN $1::timestamptz AND $2::timestamptz
       ) AS fresh`,
      [beforeMs, nowMs].map((time) => new Date(time).toISOString()),
      retentionTimeoutMs,
    )
    const partitions = await droppable(client, beforeMs)
    const rest = (await partitionsOf(client)).filter((table) => !partitions.includes(table))
    let records = 0
    for (const table of rest) records += await removeFrom(client, table)
    await client.query(
      'UPDATE toolway.chains c SET removed_to = k.seq - 1 FROM kept k WHERE k.chain = c.id AND k.seq - 1 > c.removed_to',
    )
    await client.query('DELETE FROM toolway.checkpoints p USING kept k WHERE p.chain = k.chain AND p.seq < k.seq')
    // Drop tables last, because DROP blocks all other users of the table until the transaction ends.
    for (const table of partitions) await client.query(`DROP TABLE toolway.${table}`)
    return { partitions, records }
  })
}

/** The times of operations, the newest first: in each gap, only the last and the first one. */
async function recordTimes(client: Transaction, gapMs: number): Promise<number[]> {
  const gap = "$1::double precision * interval '1 millisecond'"
  const found = await client.query<{ ms: number }>(
    `WITH RECURSIVE times (time) AS (
       SELECT max(time) FROM toolway.records WHERE shown
       UNION ALL
       SELECT coalesce(
         (SELECT min(time) FROM toolway.records WHERE shown AND time >= times.time - ${gap} AND time < times.time),
         (SELECT max(time) FROM toolway.records WHERE shown AND time < times.time)
       ) FROM times WHERE times.time IS NOT NULL
     ) SELECT extract(epoch FROM time)::double precision * 1000 AS ms FROM times WHERE time IS NOT NULL ORDER BY time DESC`,
    [gapMs],
    retentionTimeoutMs,
  )
  return found.map(({ ms }) => ms)
}

/** The tables for expired months that no chain needs any more. */
async function droppable(client: Transaction, beforeMs: number): Promise<string[]> {
  const tables: string[] = []
  for (const table of await partitionsOf(client)) {
    const month = monthOfTable(table)
    if (!month || month.to > beforeMs) continue
    const sql = `SELECT 1 FROM toolway.${table} r JOIN kept k ON k.chain = r.chain AND r.seq >= k.seq LIMIT 1`
    const needed = await client.query(sql, [], retentionTimeoutMs)
    if (needed.length === 0) tables.push(table)
  }
  return tables
}

async function removeFrom(client: Transaction, table: string): Promise<number> {
  const [gone] = await client.query<{ records: number }>(
    `WITH gone AS (
       DELETE FROM toolway.${table} r USING kept k WHERE r.chain = k.chain AND r.seq < k.seq RETURNING 1
     ) SELECT count(*)::integer AS records FROM gone`,
    [],
    retentionTimeoutMs,
  )
  return gone?.records ?? 0
}

type Month = ReturnType<typeof monthOf>

/** The month in UTC with a time: its table, and its bounds in milliseconds since the epoch. */
export function monthOf(time: number) {
  const date = new Date(time)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  const table = `records_${String(year).padStart(4, '0')}_${String(month + 1).padStart(2, '0')}`
  return { table, from: Date.UTC(year, month), to: Date.UTC(year, month + 1) }
}

/** The month that a table covers; undefined for the default partition. */
function monthOfTable(table: string): Month | undefined {
  const [, year, month] = /^records_(\d{4})_(\d{2})$/.exec(table) ?? []
  return year === undefined ? undefined : monthOf(Date.UTC(Number(year), Number(month) - 1))
}

async function partitionsOf(postgres: Transaction): Promise<string[]> {
  const rows = await postgres.query<{ table: string }>(
    `SELECT c.relname AS table FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'toolway.records'::regclass`,
  )
  return rows.map(({ table }) => table)
}

export async function makePartition(postgres: Postgres, { table, from, to }: Month): Promise<void> {
  if ((await partitionsOf(postgres)).includes(table)) return
  await postgres.transaction(async (client) => {
    // Take a lock, because another replica may create the same table at the same time.
    await client.query('SELECT pg_advisory_xact_lock($1, $2)', advisoryLocks.partitions)
    const bounds = [from, to].map((time) => `'${new Date(time).toISOString()}'`)
    await client.query(
      `CREATE TABLE IF NOT EXISTS toolway.${table} PARTITION OF toolway.records
       FOR VALUES FROM (${bounds[0]}) TO (${bounds[1]})`,
    )
  })
}
