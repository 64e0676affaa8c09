import { advisoryLocks, encodingSentence, type Postgres, type Transaction } from './connection.ts'

/** One change to the database schema. Never edit a migration that has been published. */
export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
}

/**
 * `records` holds each line as written, plus the columns for searching. `shown` marks the record that represents an
 * operation: its end, or its beginning while there is no end. `begin_seq` and `begin_time` refer from an end to its
 * beginning. `position` is the order of arrival across all replicas.
 * A unique key of a partitioned table must include the partition key. `append` ensures that (chain, seq) is unique by
 * locking the row in `chains`. No index includes `tool`, because a URI may be too long for an index.
 */
const auditTables = `
  CREATE TABLE toolway.replicas (
    id uuid PRIMARY KEY,
    host text NOT NULL,
    public_keys text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE toolway.chains (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replica uuid NOT NULL REFERENCES toolway.replicas,
    lane text NOT NULL,
    epoch integer NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    hash text NOT NULL DEFAULT '',
    removed_to bigint NOT NULL DEFAULT 0,
    UNIQUE (replica, lane, epoch)
  );
  CREATE SEQUENCE toolway.position;
  CREATE TABLE toolway.records (
    position bigint NOT NULL DEFAULT nextval('toolway.position'),
    chain integer NOT NULL,
    seq bigint NOT NULL,
    time timestamptz NOT NULL,
    phase text,
    shown boolean NOT NULL,
    begin_seq bigint,
    begin_time timestamptz,
    operation text, call text, parent text, agent text, principal text, server text, tool text,
    decision text, reason text, code text,
    is_error boolean NOT NULL,
    words text NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (chain, seq, time)
  ) PARTITION BY RANGE (time);
  CREATE TABLE toolway.records_other PARTITION OF toolway.records DEFAULT;
  CREATE INDEX records_position ON toolway.records (position);
  CREATE INDEX records_time ON toolway.records (time, chain, seq) WHERE shown;
  CREATE INDEX records_call ON toolway.records (call);
  CREATE INDEX records_agent ON toolway.records (agent, time) WHERE shown;
  CREATE INDEX records_server ON toolway.records (server, time) WHERE shown;
  CREATE INDEX records_refused ON toolway.records (decision, time) WHERE shown AND decision <> 'ALLOW';
  CREATE TABLE toolway.checkpoints (
    chain integer NOT NULL REFERENCES toolway.chains,
    seq bigint NOT NULL,
    time timestamptz NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (chain, seq)
  );
`

/** Number 2 created tables for the history in 0.2.0, which are no longer used: the next migration is number 3. */
const migrations: readonly Migration[] = [{ number: 1, name: 'audit', sql: auditTables }]

interface MigrateOptions {
  readonly dryRun?: boolean
  readonly migrations?: readonly Migration[]
}

export type MigrationResult = Awaited<ReturnType<typeof migrate>>

const migrationTimeoutMs = 10 * 60_000

/**
 * Migrates the schema in one transaction. Concurrent migrations wait for each other. Returns the version before, which
 * is 0 without a schema, and the applied migrations in order; with `dryRun`, those that would be applied.
 */
export function migrate(postgres: Postgres, { dryRun = false, migrations: wanted = migrations }: MigrateOptions = {}) {
  return postgres.transaction(async (client) => {
    if (!dryRun) {
      // Allow more time, because another replica may be migrating and large tables take a long time.
      await client.query(`SET LOCAL statement_timeout = ${migrationTimeoutMs}`)
      await client.query('SELECT pg_advisory_xact_lock($1, $2)', advisoryLocks.migrate, migrationTimeoutMs)
      await client.query('CREATE SCHEMA IF NOT EXISTS toolway')
      await client.query(`CREATE TABLE IF NOT EXISTS toolway.migrations (
        number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
      )`)
    }
    const from = await schemaVersion(client)
    const encoding = from === 0 ? await wrongEncoding(client) : undefined
    if (encoding) throw new Error(encoding)
    const missing = wanted.filter(({ number }) => number > from)
    for (const { number, name, sql } of dryRun ? [] : missing) {
      await client.query(sql, [], migrationTimeoutMs)
      await client.query('INSERT INTO toolway.migrations (number, name) VALUES ($1, $2)', [number, name])
    }
    const applied = missing.map(({ number, name }) => ({ number, name }))
    return { from, to: missing.at(-1)?.number ?? from, applied }
  })
}

export async function schemaVersion(client: Transaction): Promise<number> {
  const exists = `SELECT to_regclass('toolway.migrations')::text AS table`
  const [found] = await client.query<{ table: string | null }>(exists)
  if (!found?.table) return 0
  const [last] = await client.query<{ number: number | null }>('SELECT max(number) AS number FROM toolway.migrations')
  return last?.number ?? 0
}

/** Says that the database cannot store all characters of audit records, and what to do; undefined if it can. */
export async function wrongEncoding(client: Transaction): Promise<string | undefined> {
  const [{ name = '' } = {}] = await client.query<{ name: string }>(`SELECT current_setting('server_encoding') AS name`)
  // SQL_ASCII stores all bytes unchanged.
  return ['UTF8', 'SQL_ASCII'].includes(name) ? undefined : encodingSentence(name)
}

/** The schema version that copying the audit log needs. Later versions only add to it. */
export const currentSchemaVersion: number = Math.max(...migrations.map(({ number }) => number))

/** Creates or updates the tables if they are missing or of an earlier version. With `manual`, throws instead. */
export async function requireTables(postgres: Postgres, how: 'auto' | 'manual'): Promise<void> {
  if ((await schemaVersion(postgres)) >= currentSchemaVersion) return
  if (how === 'manual') throw new Error('its tables are from another version; run `toolway migrate`')
  await migrate(postgres)
}
