import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import {
  type CallChoices,
  type CallFilter,
  type CallOrder,
  type CallPageQuery,
  callFilters,
  mapChoices,
} from '../../core/call-query.ts'
import type { Clock } from '../../core/clock.ts'
import {
  type HistoryBatch,
  maxLogins,
  maxLoginsOfOne,
  oldestTally,
  type Run,
  type StoredCall,
  type StoredCalls,
  type StoredCapture,
  type StoredLogin,
  type Tally,
  type TallyCounts,
  type TallyKey,
  type TallyQuery,
  type TallySum,
  type TallySums,
  tallyFilters,
  tallyGroups,
  tallyNumbers,
  tallyResolutions,
  tallySteps,
} from '../../core/history.ts'
import { createSeenTime, type SeenTime } from '../../core/seen-time.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { addPacked, createLatencies, type Latencies, type Packed, pack } from '../../lib/latency-histogram.ts'
import { inTransaction, openSqliteFile, type SqliteFileOptions } from '../../lib/sqlite.ts'
import { callColumns } from './history-batch.ts'

export interface HistoryDatabaseOptions extends Pick<SqliteFileOptions, 'path' | 'say' | 'busyMs'> {
  readonly keepMs: number
  readonly maxBytes: number
  readonly captures: { readonly keepMs: number; readonly maxBytes: number }
  readonly startedAt: number
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}

const minuteMs = 60_000
const hourStepMs = 60 * minuteMs

const tallyColumns = tallyNumbers.map((name) => `${name} REAL NOT NULL`).join(', ')

const historySchema = `
  CREATE TABLE keys (id INTEGER PRIMARY KEY, agent TEXT NOT NULL, server TEXT NOT NULL, operation TEXT NOT NULL,
    name TEXT NOT NULL, UNIQUE (agent, server, operation, name));
  CREATE TABLE tallies (stepMs INTEGER NOT NULL, at INTEGER NOT NULL, key INTEGER NOT NULL, ${tallyColumns},
    latencies BLOB NOT NULL, PRIMARY KEY (stepMs, at, key)) WITHOUT ROWID;
  CREATE TABLE calls (id TEXT PRIMARY KEY, parent TEXT, at REAL NOT NULL, ms REAL NOT NULL, agent TEXT NOT NULL,
    principal TEXT NOT NULL, operation TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, outcome TEXT NOT NULL,
    code TEXT, cache TEXT, steps TEXT NOT NULL);
  CREATE INDEX calls_at ON calls (at, id);
  CREATE INDEX calls_parent ON calls (parent) WHERE parent IS NOT NULL;
  CREATE TABLE logins (digest TEXT PRIMARY KEY, owner TEXT NOT NULL, sealed TEXT NOT NULL, until INTEGER NOT NULL)`

/** Added to files of version 1: they need no other one, because earlier releases ignore them. */
const addedSchema = `
  CREATE TABLE IF NOT EXISTS captures (id TEXT PRIMARY KEY, at REAL NOT NULL, bytes INTEGER NOT NULL, sealed TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS runs (startedAt INTEGER PRIMARY KEY, seenAt INTEGER NOT NULL)`

/** Files of another version are moved aside, so change this only together with the tables. */
const historyVersion = 1

/** Names of agents, servers and tools that are told apart. Further ones count as `other`. */
const maxKeys = 20_000
const otherKey: TallyKey = { agent: 'other', server: 'other', operation: 'other', name: '' }

const pruneEveryMs = minuteMs

/** The tables of the history. Synchronous: it runs in a thread of its own, or when the gateway stops. */
export function openHistoryDatabase(options: HistoryDatabaseOptions) {
  const { keepMs, maxBytes, startedAt, clock } = options
  const { now } = clock
  const seen = createSeenTime(clock, keepMs, hourStepMs)
  const file = openSqliteFile({
    ...options,
    create: (database) => database.exec(historySchema),
    version: historyVersion,
    prepare: prepareHistory,
  })
  let prunedAt = Number.NEGATIVE_INFINITY
  let hasWritten = false
  const noteRun = (database: DatabaseSync) => {
    const note = 'INSERT INTO runs VALUES (?, ?) ON CONFLICT DO UPDATE SET seenAt = max(seenAt, excluded.seenAt)'
    database.prepare(note).run(startedAt, now())
    hasWritten = true
  }

  return {
    write({ tallies, calls, captures }: HistoryBatch): boolean {
      const written = file.use((database) =>
        inTransaction(database, () => {
          if (tallies.length > 0) addTallies(database, tallies)
          if (calls.length > 0) addCalls(database, calls)
          if (captures.length > 0) addCaptures(database, captures)
          noteRun(database)
          return { full: usedPageBytes(database) > maxBytes }
        }),
      )
      if (written && (written.full || clock.monotonic() - prunedAt >= pruneEveryMs)) {
        prunedAt = clock.monotonic()
        file.use((database) => prune(database, seen, options))
      }
      return written !== undefined
    },
    sums: (query: TallyQuery): TallySums | undefined => file.use((database) => sumTallies(database, query, now())),
    calls: (query: CallPageQuery): StoredCalls | undefined => file.use((database) => findCalls(database, query)),
    choices: (filter: CallFilter): CallChoices | undefined => file.use((database) => findChoices(database, filter)),
    call: (id: string) =>
      file.use((database) => {
        const [call] = callsWhere(database, 'id = ?', [id], '')
        return call && { call, children: callsWhere(database, 'parent = ?', [id], 'ORDER BY at, id LIMIT 1000') }
      }),
    capture: (id: string, since: number): string | undefined =>
      file.use((database) => {
        const row = database.prepare('SELECT sealed FROM captures WHERE id = ? AND at >= ?').get(id, since)
        return row?.sealed as string | undefined
      }),
    addLogin: ({ digest, owner, sealed, until }: StoredLogin): boolean =>
      file.use((database) =>
        inTransaction(database, () => {
          database.prepare('DELETE FROM logins WHERE until <= ?').run(now())
          const oldest = 'SELECT digest FROM logins WHERE owner = ? OR ? ORDER BY until DESC LIMIT -1 OFFSET ?'
          const evict = database.prepare(`DELETE FROM logins WHERE digest IN (${oldest})`)
          evict.run(owner, 0, maxLoginsOfOne - 1)
          evict.run(owner, 1, maxLogins - 1)
          const add = database.prepare(insertInto('logins', ['digest', 'owner', 'sealed', 'until']))
          add.run(digest, owner, sealed, until)
          return true
        }),
      ) ?? false,
    findLogin: (digest: string): StoredLogin | null | undefined =>
      file.use((database) => {
        const row = database.prepare('SELECT * FROM logins WHERE digest = ? AND until > ?').get(digest, now())
        return row ? ({ ...row } as unknown as StoredLogin) : null
      }),
    removeLogin: (digest: string): void =>
      file.use((database) => void database.prepare('DELETE FROM logins WHERE digest = ?').run(digest)),
    [Symbol.dispose]() {
      if (hasWritten) file.use(noteRun)
      file[Symbol.dispose]()
    },
  }
}

/** Adds what is not in all files of this version, and lets SQL add up latencies. */
function prepareHistory(database: DatabaseSync): void {
  database.exec(addedSchema)
  const merged = createLatencies()
  database.function('merge', { deterministic: true }, (one, another) => {
    merged.fill(0)
    addPacked(merged, asPacked(one as Uint8Array))
    addPacked(merged, asPacked(another as Uint8Array))
    return asBytes(pack(merged))
  })
}

const insertInto = (table: string, columns: readonly string[], verb: 'INSERT' | 'REPLACE' = 'INSERT'): string =>
  `${verb} INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`

/** Adds tallies to those that are stored for the same step and key. Other processes may have written them. */
function addTallies(database: DatabaseSync, tallies: readonly Tally[]): void {
  const keyOf = tallyKeys(database)
  const sums = tallyNumbers.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')
  const add = database.prepare(
    `${insertInto('tallies', ['stepMs', 'at', 'key', ...tallyNumbers, 'latencies'])}
     ON CONFLICT DO UPDATE SET ${sums}, latencies = merge(latencies, excluded.latencies)`,
  )
  for (const tally of tallies) {
    const key = keyOf(tally)
    const values = tallyNumbers.map((name) => tally.counts[name])
    const latencies = asBytes(Uint32Array.from(tally.latencies))
    for (const { stepMs } of tallyResolutions) {
      add.run(stepMs, Math.floor(tally.at / stepMs) * stepMs, key, ...values, latencies)
    }
  }
}

function tallyKeys(database: DatabaseSync): (key: TallyKey) => number {
  const find = database.prepare('SELECT id FROM keys WHERE agent = ? AND server = ? AND operation = ? AND name = ?')
  const add = database.prepare(insertInto('keys', ['agent', 'server', 'operation', 'name']))
  const count = () => database.prepare('SELECT count(*) AS count FROM keys').get()?.count as number
  const idOf = ({ agent, server, operation, name }: TallyKey, hasRoom: () => boolean): number => {
    const values = [agent, server, operation, name]
    const known = find.get(...values)?.id as number | undefined
    if (known !== undefined) return known
    return hasRoom() ? Number(add.run(...values).lastInsertRowid) : idOf(otherKey, () => true)
  }
  return (key) => idOf(key, () => count() < maxKeys)
}

/** Copies the bytes, because a view needs an aligned offset. The format is that of the machine. */
const asPacked = (bytes: Uint8Array): Packed => new Uint32Array(Uint8Array.from(bytes).buffer)
const asBytes = ({ buffer, byteOffset, byteLength }: Packed): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength)

function sumTallies(database: DatabaseSync, query: TallyQuery, now: number): TallySums {
  const { by, maxSteps } = query
  const since = oldestOf(database) ?? now
  const { stepMs, width, first } = tallySteps(query, since, now)
  const given = tallyFilters.filter((name) => query[name] !== undefined)
  const where = given.map((name) => ` AND ${name} = ?`).join('')
  const values = given.map((name) => query[name] as string)
  // Statistics by tool count only tool calls; all other statistics count every call.
  const tools = by === 'tool' ? " AND operation = 'call_tool'" : ''
  const group = by === undefined ? "''" : tallyGroups[by].join(" || '.' || ")
  const at = maxSteps === undefined ? '0' : `CAST(at / ${width} AS INTEGER) * ${width}`
  const rows = database
    .prepare(
      `SELECT ${group} AS "group", ${at} AS step, ${tallyNumbers.join(', ')}, latencies
       FROM tallies JOIN keys ON keys.id = tallies.key
       WHERE stepMs = ? AND at >= ? AND at < ?${where}${tools}`,
    )
    .iterate(stepMs, first, query.to, ...values)
  const sums = new Map<string, { group: string; at: number; counts: TallyCounts; latencies: Latencies }>()
  for (const row of rows) {
    const id = `${row.step} ${row.group}`
    let sum = sums.get(id)
    if (!sum) {
      const counts = Object.fromEntries(tallyNumbers.map((name) => [name, 0])) as TallyCounts
      sum = { group: row.group as string, at: row.step as number, counts, latencies: createLatencies() }
      sums.set(id, sum)
    }
    for (const name of tallyNumbers) sum.counts[name] += row[name] as number
    addPacked(sum.latencies, asPacked(row.latencies as Uint8Array))
  }
  const packed: TallySum[] = [...sums.values()].map((sum) => ({ ...sum, latencies: pack(sum.latencies) }))
  return { since, stepMs: width, sums: packed, runs: maxSteps === undefined ? [] : runsIn(database, query) }
}

const runsIn = (database: DatabaseSync, { from, to }: TallyQuery): Run[] =>
  database
    .prepare('SELECT * FROM runs WHERE seenAt >= ? AND startedAt < ? ORDER BY startedAt DESC LIMIT 1000')
    .all(from, to)
    .map(({ startedAt, seenAt }) => [Number(startedAt), Number(seenAt)])

function oldestOf(database: DatabaseSync): number | undefined {
  const first = database.prepare('SELECT min(at) AS at FROM tallies WHERE stepMs = ?')
  const found = tallyResolutions.map(({ stepMs }) => first.get(stepMs)?.at)
  return oldestTally(found.filter((at) => typeof at === 'number'))
}

function addCalls(database: DatabaseSync, calls: readonly StoredCall[]): void {
  const add = database.prepare(insertInto('calls', [...callColumns, 'steps'], 'REPLACE'))
  for (const call of calls) {
    add.run(...callColumns.map((column) => call[column]), call.steps.length === 0 ? '' : JSON.stringify(call.steps))
  }
}

/** What calls are ordered by. `callOrders` in telemetry/calls does the same with calls in memory. */
const orderKeys: Readonly<Record<CallOrder['by'], string>> = {
  time: 'at',
  target: "server || '.' || name",
  agent: 'agent',
  outcome: "outcome || ' ' || coalesce(code, '')",
  cache: "coalesce(cache, '')",
  duration: 'ms',
}

function addCaptures(database: DatabaseSync, captures: readonly StoredCapture[]): void {
  const add = database.prepare(insertInto('captures', ['id', 'at', 'bytes', 'sealed'], 'REPLACE'))
  for (const { id, at, sealed } of captures) add.run(id, at, sealed.length, sealed)
}

function findCalls(database: DatabaseSync, { order, after, limit, counted, ...filter }: CallPageQuery): StoredCalls {
  const { where, values } = callCondition(filter)
  const key = orderKeys[order.by]
  const [direction, next] = order.descending ? ['DESC', '<'] : ['ASC', '>']
  const count = database.prepare(
    `SELECT (SELECT count(*) FROM calls WHERE ${where}) -
       (SELECT count(*) FROM calls WHERE id IN (SELECT value FROM json_each(?))) AS total`,
  )
  return {
    calls: callsWhere(
      database,
      after ? `${where} AND (${key}, id) ${next} (?, ?)` : where,
      [...values, ...(after ?? [])],
      `ORDER BY ${key} ${direction}, id ${direction} LIMIT ${Math.trunc(limit)}`,
    ),
    total: Number(count.get(...values, JSON.stringify(counted))?.total),
  }
}

const maxFilterChoices = 1_000

function findChoices(database: DatabaseSync, filter: CallFilter): CallChoices {
  const { where, values } = callCondition(filter)
  return mapChoices((column) => {
    const sql = `SELECT DISTINCT ${column} AS value FROM calls WHERE ${where} AND ${column} <> '' ORDER BY 1 LIMIT ?`
    const rows = database.prepare(sql).all(...values, maxFilterChoices)
    return rows.map(({ value }) => value as string)
  })
}

const searchedText = ["server || '.' || name", 'agent', 'principal', 'operation', 'id', "coalesce(code, '')"].join(
  ' || char(10) || ',
)

function callCondition({ agents, slowerThan, from, to, text = '', ...exact }: CallFilter) {
  const given = [
    ...callFilters.map((name) => [`${name} = ?`, exact[name]] as const),
    ['agent IN (SELECT value FROM json_each(?))', agents && JSON.stringify(agents)] as const,
    ['ms >= ?', slowerThan] as const,
    ['at >= ?', from] as const,
    ['at < ?', to] as const,
    [`instr(lower(${searchedText}), lower(?)) > 0`, text.trim() || undefined] as const,
  ].flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
  return { where: ['true', ...given.map(({ sql }) => sql)].join(' AND '), values: given.map(({ value }) => value) }
}

function callsWhere(
  database: DatabaseSync,
  where: string,
  values: readonly SQLInputValue[],
  order: string,
): readonly StoredCall[] {
  const rows = database.prepare(`SELECT * FROM calls WHERE ${where} ${order}`).all(...values)
  return rows.map(
    ({ steps, ...row }) => ({ ...row, steps: steps === '' ? [] : jsonValue(steps as string) }) as unknown as StoredCall,
  )
}

/** Removes what is too old. If the file is still too large, removes calls first: statistics take far less room. */
function prune(database: DatabaseSync, seen: SeenTime, { keepMs, maxBytes, captures }: HistoryDatabaseOptions): void {
  const captured = database.prepare('SELECT total(bytes) AS bytes FROM captures')
  const before = (ageMs: number) => seen.before(ageMs, tallyTimes(database, seen.maxGapMs))
  inTransaction(database, () => {
    for (const { stepMs, keptMs } of tallyResolutions) {
      const oldest = before(Math.min(keptMs, keepMs))
      database.prepare('DELETE FROM tallies WHERE stepMs = ? AND at < ?').run(stepMs, oldest)
    }
    database.prepare('DELETE FROM keys WHERE id NOT IN (SELECT key FROM tallies WHERE stepMs = ?)').run(hourStepMs)
    database.prepare('DELETE FROM calls WHERE at < ?').run(before(keepMs))
    database.prepare('DELETE FROM runs WHERE seenAt < ?').run(before(keepMs))
    database.prepare('DELETE FROM captures WHERE at < ?').run(before(captures.keepMs))
    while (Number(captured.get()?.bytes) > captures.maxBytes && removeOldest(database, 'captures')) {}
    for (const tables of [['calls', 'captures'], ['tallies']]) {
      while (
        usedPageBytes(database) > maxBytes &&
        tables.filter((table) => removeOldest(database, table)).length > 0
      ) {}
    }
  })
  database.exec('PRAGMA incremental_vacuum')
}

/** Hours with calls, the newest first: in each `gapMs`, only the last and the first one. */
function* tallyTimes(database: DatabaseSync, gapMs: number): Generator<number> {
  const next = database.prepare(
    `SELECT coalesce(
       (SELECT min(at) FROM tallies WHERE stepMs = $hour AND at >= $at - $gapMs AND at < $at),
       (SELECT max(at) FROM tallies WHERE stepMs = $hour AND at < $at)) AS at`,
  )
  let at: unknown = Number.MAX_SAFE_INTEGER
  while (typeof at === 'number') {
    at = next.get({ hour: hourStepMs, at, gapMs })?.at
    if (typeof at === 'number') yield at
  }
}

/** Removes about a tenth of a table's rows, the oldest first. Returns false if it is empty. */
function removeOldest(database: DatabaseSync, table: string): boolean {
  const rows = database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows as number
  if (rows === 0) return false
  const offset = Math.min(rows - 1, Math.ceil(rows / 10))
  const limit = database.prepare(`SELECT at FROM ${table} ORDER BY at LIMIT 1 OFFSET ?`).get(offset)?.at as number
  const { changes } = database.prepare(`DELETE FROM ${table} WHERE at <= ?`).run(limit)
  return Number(changes) > 0
}

/** The size of the pages in use. Pages that were freed are used again. */
function usedPageBytes(database: DatabaseSync): number {
  const read = (name: string) => database.prepare(`PRAGMA ${name}`).get()?.[name] as number
  return (read('page_count') - read('freelist_count')) * read('page_size')
}
