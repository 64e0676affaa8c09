import type { Pool, PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg'

/** A small pool of connections with short timeouts, which connects on demand. */
export interface Postgres extends Transaction, AsyncDisposable {
  /** The database address without credentials, for display. */
  readonly where: string
  /** Runs statements that are committed as a whole or not at all. Throws if the connection fails before the commit. */
  transaction<T>(run: (client: Transaction) => Promise<T>): Promise<T>
}

export interface Transaction {
  query<Row extends QueryResultRow>(sql: string, values?: readonly unknown[], withinMs?: number): Promise<Row[]>
}

export const postgresConnectMs = 2_000
const statementMs = 10_000
/** How much longer than the server's statement timeout the client waits, to allow for the network. */
const queryTravelMs = 1_000

export async function connectPostgres(url: string): Promise<Postgres> {
  // Loaded only if PostgreSQL is configured.
  const { default: pg } = await import('pg')
  const pool: Pool = new pg.Pool({
    connectionString: verifying(url),
    max: 4,
    connectionTimeoutMillis: postgresConnectMs,
    idleTimeoutMillis: 30_000,
    allowExitOnIdle: true,
    keepAlive: true,
    application_name: 'toolway',
    // The server cancels slow statements; the client gives up if the server does not respond.
    statement_timeout: statementMs,
    query_timeout: statementMs + queryTravelMs,
  })
  // The pool replaces broken idle connections itself; without a listener, the error event would end the process.
  pool.on('error', () => {})

  const ask = async <Row extends QueryResultRow>(
    client: Pool | PoolClient,
    sql: string,
    values: readonly unknown[] = [],
    withinMs?: number,
  ): Promise<Row[]> => {
    const query: QueryConfig & { query_timeout?: number } = { text: sql, values: [...values], query_timeout: withinMs }
    try {
      return ((await client.query(query)) as QueryResult<Row>).rows
    } catch (error) {
      throw withLimit(error, withinMs ?? statementMs + queryTravelMs)
    }
  }

  return {
    where: displayAddress(url),
    query: (...asked) => ask(pool, ...asked),
    async transaction(run) {
      const client = await pool.connect().catch((error) => {
        throw withLimit(error, postgresConnectMs)
      })
      // Without a listener, a connection that fails between two queries would end the process.
      const broken = () => {}
      client.on('error', broken)
      try {
        // BEGIN is answered immediately, so a short timeout detects a dead connection before longer statements run.
        await ask(client, 'BEGIN', [], postgresConnectMs)
        const result = await run({ query: (...asked) => ask(client, ...asked) })
        await ask(client, 'COMMIT')
        client.off('error', broken)
        client.release()
        return result
      } catch (error) {
        // Close the connection instead of reusing it: that ends the transaction in any state.
        client.release(true)
        throw error
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

/** The messages in the driver's timeout errors, which have no code. */
const noConnection = /^(?:timeout exceeded when trying to connect|Connection terminated due to connection timeout)$/
const readTimeoutMessage = 'Query read timeout'

/** Replaces driver timeouts with an error that states the limit. */
function withLimit(error: unknown, queryMs: number): unknown {
  const { message } = error as Error
  const ms = noConnection.test(message) ? postgresConnectMs : message === readTimeoutMessage ? queryMs : undefined
  if (ms === undefined) return error
  return new Error(`no response within ${ms / 1000} s (a fixed limit)`, { cause: error })
}

/** Changes the URL so that encrypted connections also verify the certificate; only `no-verify` turns that off. */
function verifying(url: string): string {
  const place = new URL(url)
  const mode = place.searchParams.get('sslmode') ?? ''
  if (['allow', 'prefer', 'require', 'verify-ca'].includes(mode)) place.searchParams.set('sslmode', 'verify-full')
  return place.href
}

/** The address as `host:port/database`, without credentials. */
export function displayAddress(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  return `${host || (searchParams.get('host') ?? 'localhost')}${pathname}`
}

/** An error's reason in words. If connecting to all of a host's addresses fails, the error itself has no message. */
export function postgresErrorReason(thrown: unknown): string {
  const { message, code, errors } = thrown as Error & { code?: string; errors?: readonly Error[] }
  if (code === undefinedTable || code === undefinedSchema) return 'its tables do not exist yet; run `toolway migrate`'
  if (code === untranslatable) return `${message}; ${encodingSentence('of the database')}`
  return message || errors?.[0]?.message || code || String(thrown)
}

const undefinedTable = '42P01'
const undefinedSchema = '3F000'
const untranslatable = '22P05'

export const encodingSentence = (name: string): string =>
  `the encoding ${name} cannot store every record; copying needs a database that was created with ENCODING 'UTF8'`

/** The latest time that both JavaScript's ISO format and PostgreSQL can represent. */
const latestTime = Date.UTC(9999, 11, 31)

export const isoOf = (time: number): string => new Date(Math.min(Math.max(time, 0), latestTime)).toISOString()

/** Replaces NUL and lone surrogates, which PostgreSQL does not accept. Search text is converted in the same way. */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

/** SQL for a column's time in milliseconds. The driver reads dates only in PostgreSQL's default `DateStyle`. */
export const epochMs = (column: string): string => `(extract(epoch FROM ${column}) * 1000)::bigint`

/** Advisory locks, held for one transaction. The first number is our namespace: "tool". */
const lockNamespace = 0x746f6f6c

export const advisoryLocks = {
  migrate: [lockNamespace, 1],
  partitions: [lockNamespace, 2],
  retention: [lockNamespace, 3],
} as const
