import { randomUUID } from 'node:crypto'
import type { BudgetUse } from '../../core/budgets.ts'
import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import {
  callFilters,
  type HistoryBatch,
  type HistoryStore,
  maxLogins,
  maxLoginsOfOne,
  oldestTally,
  type StoredCall,
  type StoredCallQuery,
  type StoredLogin,
  type TallyCounts,
  type TallyQuery,
  type TallySums,
  tallyFilters,
  tallyGroups,
  tallyNumbers,
  tallyResolutions,
  tallySteps,
} from '../../core/history.ts'
import type { Log } from '../../core/log.ts'
import { createSeenTime, type SeenTime } from '../../core/seen-time.ts'
import { hourMs } from '../../lib/duration.ts'
import { createLazy } from '../../lib/lazy.ts'
import { jsonValue } from '../../lib/parse-json.ts'
import { callColumns, decodeBatch, encodeBatch, parseSteps } from '../sqlite/history-batch.ts'
import { storable } from './append.ts'
import { advisoryLocks, connectMs, connectPostgres, type Postgres, postgresErrorReason } from './connection.ts'
import { requireTables } from './migrations.ts'
import { timesIn } from './retention.ts'

/** The history of all replicas. */
export interface PostgresHistory extends HistoryStore {
  /** Why PostgreSQL cannot be used; undefined if it can. */
  trouble(): string | undefined
  /** The size of the batches that wait. `refused` counts the calls in batches that were dropped. */
  use(): Omit<BudgetUse, 'name'>
}

export interface PostgresHistoryOptions {
  readonly url: string
  /** Whether to create the tables automatically; `manual` leaves them to `toolway migrate`. */
  readonly migrate: 'auto' | 'manual'
  readonly keepMs: number
  readonly maxBytes: number
  readonly clock: Clock
  readonly log: Log
  /** Max size of the batches that wait while PostgreSQL cannot be reached. */
  readonly maxWaitingBytes?: number
  readonly pruneEveryMs?: number
}

/** A batch that waits. `seq` tells PostgreSQL whether it already has the batch: an acknowledgement may be lost. */
interface Waiting {
  readonly seq: number
  readonly text: string
  readonly calls: number
}

/** How long a reader waits for its own latest batch to be written. */
const freshMs = 500
/** How often to try again while PostgreSQL cannot be reached. */
const retryMs = 2_000
const readMs = 4_000
/** Pruning counts rows, because PostgreSQL does not return space when rows are deleted. Both are averages. */
const bytesPerCall = 500
const bytesPerTally = 300
const pruneMs = 60_000

/** Opens the history in PostgreSQL. It connects on first use; nothing waits for it for long. */
export function postgresHistory(options: PostgresHistoryOptions): PostgresHistory {
  const { clock, log, maxWaitingBytes = 16 * 1_048_576, pruneEveryMs = 5 * 60_000 } = options
  /** Identifies this process as a writer. */
  const writer = randomUUID()
  let state: 'unknown' | 'up' | 'down' = 'unknown'
  let error: string | undefined
  let waiting: Waiting[] = []
  let waitingBytes = 0
  let dropped = 0
  let seq = 0
  const seen = createSeenTime(clock, options.keepMs, hourMs)
  let prunedAt = clock.monotonic()
  let draining: Promise<void> | undefined
  let timer: Disposable | undefined
  let closed = false

  const connection = createLazy(() => connectPostgres(options.url, readMs, 2))

  const settle = (up: boolean, why?: string) => {
    const news = state !== (up ? 'up' : 'down')
    state = up ? 'up' : 'down'
    error = why
    if (!up && !closed) timer ??= clock.after(retryMs, retry)
    if (!news || closed) return
    if (up) log.info({}, 'PostgreSQL is available: all replicas share their history')
    else log.warn({ why }, 'PostgreSQL is unavailable: the history shows only this machine for now')
  }

  const retry = () => {
    timer = undefined
    void drain()
  }

  const dropOldest = () => {
    while (waitingBytes > maxWaitingBytes) {
      const oldest = waiting.shift() as Waiting
      waitingBytes -= oldest.text.length
      dropped += oldest.calls
    }
  }

  /** Writes what waits, one batch at a time. */
  const drain = (): Promise<void> => {
    draining ??= drainNow().finally(() => {
      draining = undefined
    })
    return draining
  }

  const drainNow = async () => {
    try {
      const postgres = await connection.get()
      if (state !== 'up') await requireTables(postgres, options.migrate, 'history')
      for (let batch = waiting[0]; batch; batch = waiting[0]) {
        const written = await writeBatch(postgres, writer, batch, clock.now()).then(yes, noneIfInvalid)
        // The batch may have been dropped in the meantime.
        if (waiting[0] !== batch) continue
        waiting.shift()
        waitingBytes -= batch.text.length
        if (!written) dropped += batch.calls
      }
      settle(true)
      if (clock.monotonic() - prunedAt >= pruneEveryMs) {
        prunedAt = clock.monotonic()
        await prune(postgres, seen, options)
      }
    } catch (thrown) {
      settle(false, postgresErrorReason(thrown))
    }
  }

  /** Resolves with undefined if PostgreSQL cannot be reached. */
  const ask = async <T>(question: (postgres: Postgres) => Promise<T>): Promise<T | undefined> => {
    if (closed) return undefined
    if (state === 'unknown') await settles(drain(), connectMs, clock)
    if (state !== 'up') return undefined
    try {
      return await question(await connection.get())
    } catch (thrown) {
      settle(false, postgresErrorReason(thrown))
      return undefined
    }
  }

  return {
    trouble: () => error,
    use: () => ({
      ...{ used: waitingBytes, limit: maxWaitingBytes, refused: dropped },
      // Batches hold the calls of many agents; `history_calls` limits each agent's part of a batch.
      ...{ perCaller: maxWaitingBytes, largest: waitingBytes },
    }),
    async write(batch) {
      const text = encodeStorable(batch)
      waiting.push({ seq: ++seq, text, calls: batch.calls.length })
      waitingBytes += text.length
      dropOldest()
      if (state !== 'down') await settles(drain(), freshMs, clock)
      return true
    },
    sums: (query) => ask((postgres) => sumTallies(postgres, query, clock.now())),
    calls: (query) => ask((postgres) => findCalls(postgres, query)),
    call: (id) =>
      ask(async (postgres) => {
        const [call] = await callsWhere(postgres, 'id = $1', [id], '')
        return call && { call, children: await callsWhere(postgres, 'parent = $1', [id], 'ORDER BY at, id LIMIT 1000') }
      }),
    logins: {
      add: async (login) => (await ask((postgres) => addLogin(postgres, login, clock.now()))) ?? false,
      find: (digest) =>
        ask(async (postgres) => {
          const [row] = await postgres.query<Omit<StoredLogin, 'until'> & { readonly until: string }>(
            'SELECT * FROM toolway.history_logins WHERE digest = $1 AND until > $2',
            [digest, clock.now()],
          )
          return row ? { ...row, until: Number(row.until) } : null
        }),
      async remove(digest) {
        await ask((postgres) => postgres.query('DELETE FROM toolway.history_logins WHERE digest = $1', [digest]))
      },
    },
    async [Symbol.asyncDispose]() {
      closed = true
      timer?.[Symbol.dispose]()
      if (waiting.length > 0) await settles(drain(), connectMs, clock)
      waiting = []
      const postgres = await connection.loaded()
      if (postgres) await settles(postgres[Symbol.asyncDispose](), connectMs, clock)
    },
  }
}

const yes = () => true

/** False for a batch that would always be rejected, so that it does not block later ones; rethrows other errors. */
function noneIfInvalid(thrown: unknown): false {
  if (/^(?:21|22|23|54)/.test((thrown as { code?: string }).code ?? '')) return false
  throw thrown
}

/** PostgreSQL rejects NUL and lone surrogates. They are rare, so the text is searched before every name is converted. */
function encodeStorable(batch: HistoryBatch): string {
  const text = encodeBatch(batch)
  if (!/\\u(?:0000|d[89a-f])/i.test(text)) return text
  const rewritten = JSON.stringify(decodeBatch(text), (_, value) =>
    typeof value === 'string' ? storable(value) : value,
  )
  return encodeBatch(jsonValue(rewritten) as HistoryBatch)
}

const counts = ['calls', 'errors', 'tool_errors', 'denials', 'cache_hits', 'cache_misses', 'sum_ms', 'hit_ms'] as const

/** The id of a key. Names may be too long for an index. */
const keyOf = `substring(sha256(convert_to(concat_ws(chr(1), r->>0, r->>1, r->>2, r->>3), 'UTF8')) FROM 1 FOR 16)`

const insertKeys = `
  INSERT INTO toolway.history_keys (id, agent, server, operation, name)
  SELECT DISTINCT ON (1) ${keyOf}, r->>0, r->>1, r->>2, r->>3 FROM json_array_elements($1::json->0) r ORDER BY 1
  ON CONFLICT DO NOTHING`

/** Rows are sorted, so that writers lock them in the same order. */
const insertTallies = `
  INSERT INTO toolway.history_tallies AS t (step_ms, at, key, ${counts.join(', ')}, latencies)
  SELECT $2::integer, (r->>4)::bigint / $2::integer * $2::integer, ${keyOf},
    ${counts.map((_, index) => `sum((r->5->>${index})::double precision)`).join(', ')},
    toolway.sum_latencies(ARRAY(SELECT json_array_elements_text(r->6)::integer))
  FROM json_array_elements($1::json->0) r GROUP BY 2, 3 ORDER BY 2, 3
  ON CONFLICT (step_ms, at, key) DO UPDATE SET
    ${counts.map((name) => `${name} = t.${name} + excluded.${name}`).join(', ')},
    latencies = toolway.add_latencies(t.latencies, excluded.latencies)`

const insertCalls = `
  INSERT INTO toolway.history_calls (${callColumns.join(', ')}, steps)
  SELECT ${callColumns.map((name, index) => (name === 'at' || name === 'ms' ? `(r->>${index})::double precision` : `r->>${index}`)).join(', ')},
    r->>${callColumns.length}
  FROM json_array_elements($1::json->1) r ON CONFLICT DO NOTHING`

function writeBatch(postgres: Postgres, writer: string, { seq, text }: Waiting, now: number): Promise<void> {
  return postgres.transaction(async (client) => {
    await client.query('SELECT pg_advisory_xact_lock_shared($1, $2)', advisoryLocks.history)
    const isNew = await client.query(
      `INSERT INTO toolway.history_writers AS w (id, seq, at) VALUES ($1, $2, $3)
       ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, at = excluded.at WHERE w.seq < excluded.seq RETURNING seq`,
      [writer, seq, now],
    )
    if (isNew.length === 0) return
    await client.query(insertKeys, [text])
    for (const { stepMs } of tallyResolutions) await client.query(insertTallies, [text, stepMs])
    await client.query(insertCalls, [text])
  })
}

/** Max number of groups or steps in an answer. */
const maxSums = 20_000

async function sumTallies(postgres: Postgres, query: TallyQuery, now: number): Promise<TallySums> {
  const { by, maxSteps } = query
  const oldest = tallyResolutions.map(
    ({ stepMs }) => `(SELECT min(at) FROM toolway.history_tallies WHERE step_ms = ${stepMs})::double precision`,
  )
  const [found] = await postgres.query<{ oldest: (number | null)[] }>(`SELECT ARRAY[${oldest.join(', ')}] AS oldest`)
  const since = oldestTally(found?.oldest.filter((at) => at !== null) ?? []) ?? now
  const { stepMs, width, first } = tallySteps(query, since, now)
  const { where, values } = condition(query, tallyFilters, [stepMs, first, query.to])
  const rows = await postgres.query<SumRow>(
    // One statement, so that counts and latencies are of the same moment.
    `WITH found AS MATERIALIZED (
       SELECT ${by === undefined ? "''" : tallyGroups[by].join(" || '.' || ")} AS name, ${maxSteps === undefined ? '0' : `t.at / ${width} * ${width}`} AS step,
         ${counts.map((name) => `t.${name}`).join(', ')}, t.latencies
       FROM toolway.history_tallies t JOIN toolway.history_keys k ON k.id = t.key
       WHERE t.step_ms = $1 AND t.at >= $2 AND t.at < $3${where}${by === 'tool' ? " AND operation = 'call_tool'" : ''}
     ), buckets AS (
       SELECT name, step, latencies[i] AS bucket, sum(latencies[i + 1]) AS n
       FROM found, generate_series(1, cardinality(latencies), 2) i GROUP BY 1, 2, 3
     ), histograms AS (
       SELECT name, step, array_agg(bucket) AS buckets, array_agg(n::double precision) AS sizes
       FROM buckets GROUP BY 1, 2
     ), sums AS (
       SELECT name, step, ${counts.map((count) => `sum(${count}) AS ${count}`).join(', ')} FROM found GROUP BY 1, 2
     )
     SELECT * FROM sums LEFT JOIN histograms USING (name, step) ORDER BY calls DESC LIMIT ${maxSums}`,
    values,
    readMs,
  )
  return { since, stepMs: width, sums: rows.map(sumOf) }
}

type SumRow = Record<(typeof counts)[number], number> & {
  readonly name: string
  readonly step: string
  readonly buckets: readonly number[] | null
  readonly sizes: readonly number[] | null
}

function sumOf({ name, step, buckets, sizes, ...row }: SumRow) {
  const numbers = tallyNumbers.map((number, index) => [number, row[counts[index] as 'calls']])
  return {
    group: name,
    at: Number(step),
    counts: Object.fromEntries(numbers) as TallyCounts,
    latencies: Uint32Array.from((buckets ?? []).flatMap((bucket, index) => [bucket, sizes?.[index] ?? 0])),
  }
}

/** The SQL for the members of a filter that must match exactly. `before` are the values of earlier parameters. */
function condition(query: Partial<StoredCallQuery>, names: readonly string[], before: readonly unknown[]) {
  const given = names.flatMap((name) => {
    const value = query[name as 'agent']
    return value === undefined ? [] : [{ name, value: storable(value) }]
  })
  return {
    where: given.map(({ name }, index) => ` AND ${name} = $${before.length + index + 1}`).join(''),
    values: [...before, ...given.map(({ value }) => value)],
  }
}

function findCalls(postgres: Postgres, query: StoredCallQuery): Promise<readonly StoredCall[]> {
  const { from, to, before, limit } = query
  const { where, values } = condition(query, callFilters, [from, to])
  const earlier = before ? ` AND (at, id) < ($${values.length + 1}, $${values.length + 2})` : ''
  return callsWhere(
    postgres,
    `at >= $1 AND at < $2${where}${earlier}`,
    [...values, ...(before ? [before.at, before.id] : [])],
    `ORDER BY at DESC, id DESC LIMIT ${Math.trunc(limit)}`,
  )
}

async function callsWhere(
  postgres: Postgres,
  where: string,
  values: readonly unknown[],
  order: string,
): Promise<readonly StoredCall[]> {
  const rows = await postgres.query<Omit<StoredCall, 'steps'> & { readonly steps: string }>(
    `SELECT ${callColumns.join(', ')}, steps FROM toolway.history_calls WHERE ${where} ${order}`,
    values,
    readMs,
  )
  return rows.map(({ steps, ...row }) => ({ ...row, steps: parseSteps(steps) }))
}

function addLogin(postgres: Postgres, { digest, owner, sealed, until }: StoredLogin, now: number): Promise<boolean> {
  return postgres.transaction(async (client) => {
    await client.query('DELETE FROM toolway.history_logins WHERE until <= $1', [now])
    const oldest = 'SELECT digest FROM toolway.history_logins WHERE owner = $1 OR $2 ORDER BY until DESC OFFSET $3'
    const evict = `DELETE FROM toolway.history_logins WHERE digest IN (${oldest})`
    await client.query(evict, [owner, false, maxLoginsOfOne - 1])
    await client.query(evict, [owner, true, maxLogins - 1])
    await client.query('INSERT INTO toolway.history_logins (digest, owner, sealed, until) VALUES ($1, $2, $3, $4)', [
      digest,
      owner,
      sealed,
      until,
    ])
    return true
  })
}

const tallyTimes = {
  rows: `toolway.history_tallies WHERE step_ms = ${hourMs}`,
  time: 'at',
  ms: 'time::double precision',
  gap: '$1::bigint',
}

/** Removes what is too old or too much, unless another replica does. Calls may take three quarters of the space. */
function prune(postgres: Postgres, seen: SeenTime, { keepMs, maxBytes }: PostgresHistoryOptions): Promise<void> {
  const maxRows = { calls: (maxBytes * 3) / 4 / bytesPerCall, tallies: maxBytes / 4 / bytesPerTally }
  return postgres.transaction(async (client) => {
    // Writers hold this lock too: a key must not be removed before the first tally that uses it is committed.
    const [lock] = await client.query<{ mine: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1, $2) AS mine',
      advisoryLocks.history,
    )
    if (!lock?.mine) return
    const remove = (sql: string, values: readonly unknown[]) => client.query(sql, values, pruneMs)
    await client.query(`SET LOCAL statement_timeout = ${pruneMs}`)
    const times = await timesIn(client, tallyTimes, seen.maxGapMs)
    for (const { stepMs, keptMs } of tallyResolutions) {
      const oldest = seen.before(Math.min(keptMs, keepMs), times)
      await remove('DELETE FROM toolway.history_tallies WHERE step_ms = $1 AND at < $2', [stepMs, oldest])
    }
    await remove('DELETE FROM toolway.history_calls WHERE at < $1', [seen.before(keepMs, times)])
    for (const [table, rows] of Object.entries(maxRows)) {
      await remove(
        `DELETE FROM toolway.history_${table} WHERE at <= (
           SELECT at FROM toolway.history_${table} ORDER BY at DESC OFFSET $1 LIMIT 1)`,
        [Math.floor(rows)],
      )
    }
    await remove(
      `DELETE FROM toolway.history_keys k WHERE NOT EXISTS (
         SELECT 1 FROM toolway.history_tallies t WHERE t.step_ms = ${hourMs} AND t.key = k.id)`,
      [],
    )
    // A batch does not wait for longer than this.
    await remove('DELETE FROM toolway.history_writers WHERE at < $1', [seen.before(24 * hourMs, times)])
  })
}
