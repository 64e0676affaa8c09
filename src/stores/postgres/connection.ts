import type { Pool, PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg'

/** Connections to PostgreSQL: few, short-tempered, and opened when they are needed. */
export interface Postgres extends AsyncDisposable {
  /** Its address without the credentials, for people. */
  readonly where: string
  query<Row extends QueryResultRow>(sql: string, values?: readonly unknown[], withinMs?: number): Promise<Row[]>
  /** All of it happens or nothing; what the connection dies of in between is thrown. */
  transaction<T>(run: (client: Transaction) => Promise<T>): Promise<T>
}

/** The statements of one transaction. */
export interface Transaction {
  query<Row extends QueryResultRow>(sql: string, values?: readonly unknown[], withinMs?: number): Promise<Row[]>
}

export interface PostgresConnectionOptions {
  readonly url: string
  /** How long a statement may take. */
  readonly statementMs?: number
}

/** What anybody waits for a connection. */
export const connectMs = 2_000
/** Beyond the time of the statement itself: the answer has to travel, too. */
const travelMs = 1_000
const maxConnections = 4

/** Nothing is connected before somebody asks. */
export async function connectPostgres({ url, statementMs = 10_000 }: PostgresConnectionOptions): Promise<Postgres> {
  // Loaded where it is configured: most gateways keep their audit log to themselves.
  const { default: pg } = await import('pg')
  const pool: Pool = new pg.Pool({
    connectionString: verifying(url),
    max: maxConnections,
    connectionTimeoutMillis: connectMs,
    idleTimeoutMillis: 30_000,
    allowExitOnIdle: true,
    keepAlive: true,
    application_name: 'toolway',
    // The server ends what takes too long; the client gives up where the server does not answer at all.
    statement_timeout: statementMs,
    query_timeout: statementMs + travelMs,
  })
  // An idle connection that breaks is replaced when the next one is needed; without a listener it would end the process.
  pool.on('error', () => {})

  const ask = async <Row extends QueryResultRow>(
    client: Pool | PoolClient,
    sql: string,
    values: readonly unknown[] = [],
    withinMs?: number,
  ): Promise<Row[]> => {
    const query: QueryConfig & { query_timeout?: number } = { text: sql, values: [...values] }
    if (withinMs !== undefined) query.query_timeout = withinMs
    try {
      return ((await client.query(query)) as QueryResult<Row>).rows
    } catch (error) {
      throw withLimit(error, withinMs ?? statementMs + travelMs)
    }
  }

  return {
    where: displayAddress(url),
    query: (...asked) => ask(pool, ...asked),
    async transaction(run) {
      const client = await pool.connect().catch((error) => {
        throw withLimit(error, connectMs)
      })
      // It may break while nobody has asked it anything.
      const broken = () => {}
      client.on('error', broken)
      try {
        // Answered at once or not at all: who has gone deaf is noticed here, before anything long is asked.
        await ask(client, 'BEGIN', [], connectMs)
        const result = await run({ query: (...asked) => ask(client, ...asked) })
        await ask(client, 'COMMIT')
        client.off('error', broken)
        client.release()
        return result
      } catch (error) {
        // Closed, not given back: that ends the transaction in whatever state it and the connection are.
        client.release(true)
        throw error
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

/** The messages of the driver where it gave up waiting. Neither has a code. */
const noConnection = /^(?:timeout exceeded when trying to connect|Connection terminated due to connection timeout)$/
const noReply = 'Query read timeout'

/** Timeouts of the driver, with their limit. */
function withLimit(error: unknown, queryMs: number): unknown {
  const { message } = error as Error
  const ms = noConnection.test(message) ? connectMs : message === noReply ? queryMs : undefined
  if (ms === undefined) return error
  return new Error(`it did not answer within ${ms / 1000} s (a fixed limit)`, { cause: error })
}

/** What is encrypted is also checked: modes that would not be ask for `no-verify`, which says what it is. */
function verifying(url: string): string {
  const place = new URL(url)
  const mode = place.searchParams.get('sslmode')
  if (mode !== null && ['prefer', 'require', 'verify-ca'].includes(mode)) {
    place.searchParams.set('sslmode', 'verify-full')
  }
  return place.href
}

/** `host:port/database` */
export function displayAddress(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  return `${host || (searchParams.get('host') ?? 'localhost')}${pathname}`
}

/** Why PostgreSQL could not be used. Several addresses of one name fail together, without a sentence of their own. */
export function postgresErrorReason(thrown: unknown): string {
  const { message, code, errors } = thrown as Error & { code?: string; errors?: readonly Error[] }
  if (code === undefinedTable || code === undefinedSchema) return 'its tables are not there yet; run `toolway migrate`'
  return message || errors?.[0]?.message || code || String(thrown)
}

const undefinedTable = '42P01'
const undefinedSchema = '3F000'

/** Locks that replicas hold in PostgreSQL for the length of a transaction. The first number is ours alone: "tool". */
const ours = 0x746f6f6c

export const advisoryLocks = {
  migrate: [ours, 1],
  partitions: [ours, 2],
  retention: [ours, 3],
} as const
