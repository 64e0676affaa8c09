import { readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import type { HistoryBatch, StoredCall, Tally, TallyCounts } from '../../core/history.ts'
import { addPacked, createLatencies, latencyBucket, percentile } from '../../lib/latency-histogram.ts'
import { openSqliteFile, type SqliteTrouble } from '../../lib/sqlite.ts'
import { type HistoryDatabaseOptions, openHistoryDatabase } from './history-database.ts'

const start = Date.UTC(2027, 0, 15)
const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const captureBounds = { keepMs: day, maxBytes: 10_000 }

/** The database; what a batch does not have is empty. */
function openDatabase(options: HistoryDatabaseOptions) {
  const database = openHistoryDatabase(options)
  return {
    ...database,
    write: (batch: Partial<HistoryBatch>) => database.write({ tallies: [], calls: [], captures: [], ...batch }),
  }
}

async function openTest({ maxBytes = 256 * 1024 * 1024, keepMs = 30 * day, busyMs = 10 } = {}) {
  const { path: folder } = stack.use(await temporaryFolder())
  const path = join(folder, 'state', 'history.sqlite')
  const troubles: (SqliteTrouble | undefined)[] = []
  /** The wall clock can be ahead. */
  const clock = { now: start, aheadMs: 0 }
  const open = () =>
    stack.use(
      openDatabase({
        ...{ path, keepMs, maxBytes, busyMs, captures: captureBounds, startedAt: clock.now },
        clock: { now: () => clock.now + clock.aheadMs, monotonic: () => clock.now - start },
        say: (trouble) => void troubles.push(trouble),
      }),
    )
  return { path, folder: join(folder, 'state'), troubles, clock, open, database: open() }
}

const counts = (changes: Partial<TallyCounts> = {}): TallyCounts => ({
  ...{ calls: 1, errors: 0, toolErrors: 0, denials: 0, cacheHits: 0, cacheMisses: 0, sumMs: 10, hitMs: 0 },
  ...changes,
})

const tally = (changes: Partial<Tally> & { readonly ms?: number } = {}): Tally => {
  const { ms = 10, ...rest } = changes
  return {
    ...{ at: start, agent: 'dev', server: 'files', operation: 'call_tool', name: 'read', counts: counts() },
    latencies: [latencyBucket(ms), 1],
    ...rest,
  }
}

const call = (changes: Partial<StoredCall> = {}): StoredCall => ({
  ...{ id: 'c1', parent: null, at: start, ms: 10, agent: 'dev', principal: 'key:dev', operation: 'call_tool' },
  ...{ server: 'files', name: 'read', outcome: 'answered', code: null, cache: null },
  steps: [['attempt', 1, 9, null]],
  ...changes,
})

const everything = { from: 0, to: start + 365 * day }
const newest = { order: { by: 'time', descending: true }, limit: 100_000, counted: [] } as const

describe('V12: the history in SQLite', () => {
  test('adds up what several processes wrote, and its percentiles are those of all calls', async () => {
    const { open, database } = await openTest()
    const another = open()
    for (const ms of [1, 2, 3]) database.write({ tallies: [tally({ ms })], calls: [] })
    another.write({ tallies: [tally({ ms: 1_000 })], calls: [] })
    const [sum] = another.sums({ ...everything, by: 'tool' })?.sums ?? []
    expect(sum).toMatchObject({ group: 'files.read', counts: { calls: 4, sumMs: 40 } })
    const latencies = createLatencies()
    addPacked(latencies, sum?.latencies as Uint32Array)
    expect(percentile(latencies, 4, 1)).toBeGreaterThan(950)
    expect(percentile(latencies, 4, 0.5)).toBeLessThan(2.1)
  })

  test('knows when processes ran that recorded calls, and forgets it with the calls', async () => {
    const { open, clock, database } = await openTest()
    const runsIn = (from: number, to: number) => database.sums({ from, to, maxSteps: 10 })?.runs
    expect(runsIn(0, start + day)).toEqual([])
    database.write({ tallies: [tally()] })
    clock.now += hour
    database[Symbol.dispose]()
    clock.now += hour
    const next = open()
    clock.now += minute
    next.write({ tallies: [tally()] })
    expect(runsIn(0, start + day)).toEqual([
      [start + 2 * hour, clock.now],
      [start, start + hour],
    ])
    expect(runsIn(start + hour + 1, start + 2 * hour)).toEqual([])
    clock.now += 29 * day + 23 * hour
    next.write({ tallies: [tally({ at: clock.now })] })
    expect(runsIn(0, clock.now)).toEqual([[start + 2 * hour, clock.now]])
  })

  test('groups by agent, server, operation and tool, and filters by all of them', async () => {
    const { database } = await openTest()
    const tallies = [
      tally(),
      tally({ agent: 'ops', name: 'write' }),
      tally({ server: 'memory', operation: 'read_resource', name: '' }),
    ]
    database.write({ tallies, calls: [] })
    const groups = (query: object) =>
      (database.sums({ ...everything, ...query })?.sums ?? []).map(({ group, counts: { calls } }) => [group, calls])
    expect(groups({})).toEqual([['', 3]])
    expect(groups({ by: 'agent' })).toEqual([
      ['dev', 2],
      ['ops', 1],
    ])
    expect(groups({ by: 'tool' })).toEqual([
      ['files.read', 1],
      ['files.write', 1],
    ])
    expect(groups({ by: 'server', agent: 'dev' })).toEqual([
      ['files', 1],
      ['memory', 1],
    ])
    expect(groups({ server: 'files', name: 'write' })).toEqual([['', 1]])
  })

  test('has fine steps for hours, minutes for days, and hours for as long as it keeps anything', async () => {
    const { database, clock } = await openTest()
    const stepsOf = (from: number) => {
      const { stepMs, sums } = database.sums({ from, to: clock.now, maxSteps: 1_000 }) ?? { stepMs: 0, sums: [] }
      return [stepMs, sums.map(({ at, counts: { calls } }) => [at - start, calls])]
    }
    const write = (at: number) => database.write({ tallies: [tally({ at })], calls: [] })
    write(start)
    write(start + 10 * second)
    clock.now = start + minute
    expect(stepsOf(start)).toEqual([
      10 * second,
      [
        [0, 1],
        [10 * second, 1],
      ],
    ])
    clock.now = start + day
    write(clock.now - minute)
    expect(stepsOf(start)).toEqual([
      2 * minute,
      [
        [0, 2],
        [day - 2 * minute, 1],
      ],
    ])
    clock.now = start + 20 * day
    write(clock.now - minute)
    expect(stepsOf(start)).toEqual([
      hour,
      [
        [0, 2],
        [day - hour, 1],
        [20 * day - hour, 1],
      ],
    ])
    clock.now = start + 31 * day
    write(clock.now - minute)
    expect(database.sums(everything)?.since).toBe(start + 20 * day - hour)
  })

  test('finds calls newest first, page by page, and one with its steps and what it caused', async () => {
    const { database } = await openTest()
    const calls = Array.from({ length: 5 }, (_, index) => call({ id: `c${index}`, at: start + (index % 3) }))
    const child = call({ id: 'child', parent: 'c0', agent: 'ops', at: start - 1, outcome: 'failed', code: 'TIMEOUT' })
    database.write({ tallies: [], calls: [...calls, child] })
    const ids = (query: object) => database.calls({ ...newest, ...query })?.calls.map(({ id }) => id)
    expect(ids({})).toEqual(['c2', 'c4', 'c1', 'c3', 'c0', 'child'])
    expect(ids({ limit: 2, after: [start + 1, 'c4'] })).toEqual(['c1', 'c3'])
    expect(ids({ from: start + 1, to: start + 2 })).toEqual(['c4', 'c1'])
    expect(ids({ agent: 'ops', outcome: 'failed' })).toEqual(['child'])
    expect(database.call('c0')).toEqual({ call: calls[0], children: [child] })
    expect(database.call('nothing')).toBeUndefined()
  })

  test('is bounded by age and size: the oldest calls go first, statistics stay', async () => {
    const maxBytes = 512 * 1024
    const { database, clock, path } = await openTest({ maxBytes })
    for (let round = 0; round < 20; round++) {
      const calls = Array.from({ length: 500 }, (_, index) =>
        call({ id: `c${round}-${index}`, at: clock.now + index, name: 'n'.repeat(200) }),
      )
      database.write({ tallies: [tally({ at: clock.now })], calls })
      clock.now += 2 * minute
    }
    database.write({ tallies: [], calls: [] })
    const kept = database.calls(newest)?.calls ?? []
    expect(kept[0]?.id).toBe('c19-499')
    expect(kept.length).toBeGreaterThan(500)
    expect(kept.length).toBeLessThan(5_000)
    expect(database.sums(everything)?.sums[0]?.counts.calls).toBe(20)
    expect(statSync(path).size).toBeLessThan(1.4 * maxBytes)
    clock.now = start + 40 * day
    database.write({ tallies: [], calls: [] })
    expect(database.calls(newest)).toEqual({ calls: [], total: 0 })
    expect(database.sums(everything)?.sums).toEqual([])
  })

  test('is not removed by clocks that are years ahead, and still ends at its age', async () => {
    const { open, database, clock } = await openTest()
    const write = (id: string, to = open()) => {
      const at = clock.now + clock.aheadMs
      to.write({ tallies: [tally({ at })], calls: [call({ id, at })] })
    }
    const ids = () => database.calls({ ...everything, ...newest })?.calls.map(({ id }) => id)
    for (let n = 0; n < 20; n++) {
      write(`c${n}`)
      clock.now += day
    }
    for (const years of [10, 10, 20]) {
      clock.aheadMs = years * 365 * day
      write(`opened ${years} years ahead`)
      write(`running ${years} years ahead`, database)
    }
    clock.aheadMs = 0
    expect(ids()).toHaveLength(20)
    for (let n = 20; n < 60; n++) {
      write(`c${n}`)
      clock.now += day
    }
    expect(ids()?.at(-1)).toBe('c29')
  })

  test('V11: captured calls are bounded by age and bytes; the oldest go first, and calls stay', async () => {
    const { database, clock, open } = await openTest()
    const capture = (id: string, bytes = 3_000) =>
      database.write({
        calls: [call({ id, at: clock.now })],
        captures: [{ id, at: clock.now, sealed: 'x'.repeat(bytes) }],
      })
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      capture(id)
      clock.now += 2 * minute
    }
    const kept = () => ['a', 'b', 'c', 'd', 'e'].filter((id) => open().capture(id, 0) !== undefined).join('')
    database.write({})
    expect(kept()).toBe('cde')
    expect(database.capture('e', clock.now)).toBeUndefined()
    clock.now += day
    database.write({})
    expect(kept()).toBe('')
    expect(database.calls(newest)?.total).toBe(5)
  })

  test('only its owner can read it', async () => {
    const { database, path, folder } = await openTest()
    database.write({ tallies: [tally()], calls: [] })
    expect([statSync(path), statSync(`${path}-wal`)].map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o600])
    expect(statSync(folder).mode & 0o077).toBe(0)
  })

  test('keeps logins until they end, at most 16 of one owner', async () => {
    const { open, database, clock } = await openTest()
    const login = (n: number, owner = 'o') => ({ digest: `${owner}${n}`, owner, sealed: 's', until: start + 1_000 + n })
    database.addLogin(login(1, 'another'))
    for (let n = 0; n < 20; n++) database.addLogin(login(n))
    const found = (digest: string) => open().findLogin(digest)
    expect(found('another1')).toEqual(login(1, 'another'))
    expect([found('o3'), found('o4')?.digest]).toEqual([null, 'o4'])
    database.removeLogin('o4')
    expect(found('o4')).toBeNull()
    clock.now = start + 1_019
    expect([found('o18'), found('o19')]).toEqual([null, null])
  })
})

describe('V12: a history file that cannot be used', () => {
  const written = (database: ReturnType<typeof openDatabase>) => database.write({ tallies: [tally()], calls: [] })
  const asideIn = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.unusable'))

  test.each([
    ['is not a database', (path: string) => writeFileSync(path, 'x'.repeat(10_000))],
    ['was overwritten in part', (path: string) => writeFileSync(path, 'x'.repeat(5_000), { flag: 'r+' })],
    [
      'is of another version',
      (path: string) => {
        using other = new DatabaseSync(path)
        other.exec('PRAGMA user_version = 99')
      },
    ],
  ])('%s: it is moved aside, and a new one begins', async (_, damage) => {
    const { path, folder, troubles, open, database } = await openTest()
    expect(written(database)).toBe(true)
    database[Symbol.dispose]()
    rmSync(`${path}-wal`, { force: true })
    damage(path)
    const next = open()
    expect(written(next)).toBe(true)
    expect(next.sums(everything)?.sums).toHaveLength(1)
    expect(asideIn(folder)).toHaveLength(1)
    expect(troubles).toMatchObject([{ aside: expect.stringContaining('.unusable') }])
  })

  test('is damaged while it is open: the batch being written is in the new one', async () => {
    const { path, folder, database } = await openTest()
    written(database)
    truncateSync(`${path}-wal`)
    truncateSync(path, 5_000)
    writeFileSync(path, 'x'.repeat(5_000), { flag: 'r+' })
    expect(written(database)).toBe(true)
    expect(database.sums(everything)?.sums[0]?.counts.calls).toBeGreaterThan(0)
    expect(asideIn(folder).length).toBeLessThanOrEqual(1)
  })

  test('was removed while it was open: a new one begins', async () => {
    const { path, open, database } = await openTest()
    written(database)
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
    expect(written(database)).toBe(true)
    database[Symbol.dispose]()
    expect(open().sums(everything)?.sums[0]?.counts.calls).toBe(1)
  })

  test('is locked: batches are lost, and it is never moved, because others have it open', async () => {
    const { path, folder, troubles, database } = await openTest()
    written(database)
    using other = new DatabaseSync(path)
    other.exec('BEGIN EXCLUSIVE')
    for (let round = 0; round < 5; round++) expect(written(database)).toBe(false)
    expect(troubles).toMatchObject([{ code: 'database is locked' }])
    other.exec('ROLLBACK')
    expect(written(database)).toBe(true)
    expect(troubles.slice(1)).toEqual([undefined])
    expect(asideIn(folder)).toEqual([])
  })

  test('at most two are kept', async () => {
    const { path, folder, database } = await openTest()
    written(database)
    for (let round = 0; round < 4; round++) {
      writeFileSync(path, 'x'.repeat(10_000))
      rmSync(`${path}-wal`, { force: true })
      expect(written(database)).toBe(true)
    }
    expect(asideIn(folder).length).toBeLessThanOrEqual(2)
  })

  test('in a folder that cannot be made: nothing is stored, and nothing is thrown', async () => {
    const { folder } = await openTest()
    const troubles: unknown[] = []
    writeFileSync(folder, '')
    using database = openDatabase({
      path: join(folder, 'history.sqlite'),
      captures: captureBounds,
      ...{
        keepMs: day,
        maxBytes: 1e6,
        startedAt: start,
        clock: { now: () => start, monotonic: () => 0 },
        say: (trouble) => void troubles.push(trouble),
      },
    })
    expect([written(database), written(database), database.sums(everything)]).toEqual([false, false, undefined])
    expect(troubles).toEqual([{ code: 'EEXIST' }])
  })
})

test('V12: the history keeps at most 1 MiB of its file in memory', async () => {
  const { path } = await openTest()
  using file = openSqliteFile({ path, create() {}, version: 1, prepare() {}, say() {} })
  const setting = (name: string) => file.use((database) => database.prepare(`PRAGMA ${name}`).get()?.[name])
  expect(setting('cache_size')).toBe(-1024)
  expect(setting('mmap_size') ?? 0).toBe(0)
})
