import type { Postgres, Transaction } from './connection.ts'
import { lockKeys } from './locks.ts'
import { migrations as known, type Migration } from './migrations.ts'

/** What there was to do, and what was there before. */
export interface Migrated {
  /** The number that the database had; 0 for none. */
  readonly from: number
  readonly to: number
  /** In their order; with `dryRun` what would have been applied. */
  readonly applied: readonly Pick<Migration, 'number' | 'name'>[]
}

export interface MigrateOptions {
  readonly dryRun?: boolean
  readonly migrations?: readonly Migration[]
}

const patienceMs = 10 * 60_000

/** Brings the database into the form that this version wants: all of it or nothing, and whoever comes second waits. */
export function migrate(postgres: Postgres, { dryRun = false, migrations = known }: MigrateOptions = {}) {
  return postgres.transaction(async (client): Promise<Migrated> => {
    if (!dryRun) {
      // Others may be at it, and a large table takes its time.
      await client.query(`SET LOCAL statement_timeout = ${patienceMs}`)
      await client.query('SELECT pg_advisory_xact_lock($1, $2)', lockKeys.migrate, patienceMs)
      await client.query('CREATE SCHEMA IF NOT EXISTS toolway')
      await client.query(`CREATE TABLE IF NOT EXISTS toolway.migrations (
        number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
      )`)
    }
    const from = await numberOf(client)
    const missing = migrations.filter(({ number }) => number > from)
    if (!dryRun) for (const migration of missing) await apply(client, migration)
    const applied = missing.map(({ number, name }) => ({ number, name }))
    return { from, to: missing.at(-1)?.number ?? from, applied }
  })
}

async function apply(client: Transaction, { number, name, sql }: Migration): Promise<void> {
  await client.query(sql, [], patienceMs)
  await client.query('INSERT INTO toolway.migrations (number, name) VALUES ($1, $2)', [number, name])
}

/** The last step that the database has been through; 0 for none. */
export async function numberOf(client: Pick<Postgres | Transaction, 'query'>): Promise<number> {
  const [there] = await client.query<{ table: string | null }>(
    `SELECT to_regclass('toolway.migrations')::text AS table`,
  )
  if (!there?.table) return 0
  const [last] = await client.query<{ number: number }>(
    'SELECT coalesce(max(number), 0) AS number FROM toolway.migrations',
  )
  return last?.number ?? 0
}

/** What this version wants. */
export const wantedNumber: number = Math.max(...known.map(({ number }) => number))
