import type { Postgres } from './connection.ts'
import { lockKeys } from './locks.ts'

/** A month of records: the table it is kept in, and its bounds, in milliseconds. */
export interface Month {
  readonly table: string
  readonly from: number
  readonly to: number
}

/** The month (UTC) of a time. */
export function monthOf(time: number): Month {
  const date = new Date(time)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  const table = `records_${String(year).padStart(4, '0')}_${String(month + 1).padStart(2, '0')}`
  return { table, from: Date.UTC(year, month), to: Date.UTC(year, month + 1) }
}

/** The month that a table is for; none for the one that takes all others. */
export function monthOfTable(table: string): Month | undefined {
  const [, year, month] = /^records_(\d{4})_(\d{2})$/.exec(table) ?? []
  return year === undefined ? undefined : monthOf(Date.UTC(Number(year), Number(month) - 1))
}

/** The partitions that there are. */
export async function partitionsOf(postgres: Pick<Postgres, 'query'>): Promise<string[]> {
  const rows = await postgres.query<{ table: string }>(
    `SELECT c.relname AS table FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'toolway.records'::regclass`,
  )
  return rows.map(({ table }) => table)
}

/** Makes the partition of a month, unless it is there. */
export async function makePartition(postgres: Postgres, { table, from, to }: Month): Promise<void> {
  if ((await partitionsOf(postgres)).includes(table)) return
  await postgres.transaction(async (client) => {
    // Another replica comes into the new month at the same time.
    await client.query('SELECT pg_advisory_xact_lock($1, $2)', lockKeys.partitions)
    const bounds = [from, to].map((time) => `'${new Date(time).toISOString()}'`)
    await client.query(
      `CREATE TABLE IF NOT EXISTS toolway.${table} PARTITION OF toolway.records
       FOR VALUES FROM (${bounds[0]}) TO (${bounds[1]})`,
    )
  })
}
