import { afterAll, beforeAll, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { ask, type PostgresServer, postgresProgram, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { systemClock } from '../../core/clock.ts'
import type { StoredCall, Tally, TallyQuery } from '../../core/history.ts'
import { silentLog } from '../../core/log.ts'
import { addPacked, createLatencies, latencyBucket, percentile } from '../../lib/latency-histogram.ts'
import { type PostgresHistory, type PostgresHistoryOptions, postgresHistory } from './history.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const start = Math.floor(Date.now() / hour) * hour
const everything = { from: 0, to: start + 365 * day }

const tally = (changes: Partial<Tally> & { readonly ms?: number } = {}): Tally => {
  const { ms = 10, ...rest } = changes
  const none = { errors: 0, toolErrors: 0, denials: 0, cacheHits: 0, cacheMisses: 0, hitMs: 0 }
  return {
    ...{ at: start, agent: 'dev', server: 'files', operation: 'call_tool', name: 'read' },
    ...{ counts: { ...none, calls: 1, sumMs: ms }, latencies: [latencyBucket(ms), 1] },
    ...rest,
  }
}

const call = (changes: Partial<StoredCall> = {}): StoredCall => ({
  ...{ id: 'c1', parent: null, at: start + 0.5, ms: 10, agent: 'dev', principal: 'key:dev', operation: 'call_tool' },
  ...{ server: 'files', name: 'read', outcome: 'answered', code: null, cache: null },
  steps: [{ name: 'attempt', startMs: 1, ms: 9, error: null }],
  ...changes,
})

withPart(postgresProgram(), 'V12: the history in PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server[Symbol.asyncDispose]())

  const open = (url: string, changes: Partial<PostgresHistoryOptions> = {}) =>
    postgresHistory({
      ...{ url, migrate: 'auto', keepMs: 30 * day, maxBytes: 256 * 1024 * 1024, clock: systemClock, log: silentLog },
      ...changes,
    })

  /** Resolves when PostgreSQL has been reached: a busy machine may take longer than a query waits for that. */
  const reached = (history: PostgresHistory) =>
    until(async () => (await history.sums(everything)) !== undefined, { what: 'PostgreSQL' })

  /** Resolves when the batch is in PostgreSQL, for which a writer waits half a second at most. */
  const write = async (history: PostgresHistory, batch: Parameters<PostgresHistory['write']>[0]) => {
    await history.write(batch)
    await until(() => history.use().used === 0, { what: 'the batch in PostgreSQL' })
  }

  const groups = async (history: PostgresHistory, query: Partial<TallyQuery> = {}) =>
    ((await history.sums({ ...everything, ...query }))?.sums ?? [])
      .map(({ group, counts: { calls } }) => [group, calls])
      .sort()

  test('adds up what two replicas wrote, with percentiles of all calls, and has it after both have ended', async () => {
    const url = await server.database()
    {
      await using one = open(url)
      await using another = open(url)
      // Both write the same steps and keys at the same time.
      const writes = [1, 2, 3, 1_000].map((ms, n) =>
        (n % 2 === 0 ? one : another).write({
          tallies: [tally({ ms }), tally({ ms, at: start + 10_000 }), tally({ agent: 'ops', name: 'write' })],
          calls: [call({ id: `c${n}`, at: start + n })],
        }),
      )
      expect(await Promise.all(writes)).toEqual([true, true, true, true])
      await until(async () => (await groups(one)).join() === ',12', { what: 'both to write' })
    }
    await using later = open(url)
    await reached(later)
    const { sums = [], stepMs, since } = (await later.sums({ ...everything, by: 'tool' })) ?? {}
    expect([stepMs, since]).toEqual([10_000, start])
    const sum = sums.find(({ group }) => group === 'files.read')
    expect(sum?.counts).toMatchObject({ calls: 8, sumMs: 2_012 })
    const latencies = createLatencies()
    addPacked(latencies, sum?.latencies as Uint32Array)
    expect(percentile(latencies, 8, 1)).toBeGreaterThan(950)
    expect(percentile(latencies, 8, 0.5)).toBeLessThan(2.1)
    expect(await groups(later, { by: 'agent' })).toEqual([
      ['dev', 8],
      ['ops', 4],
    ])
    expect(await groups(later, { server: 'files', name: 'write', agent: 'ops' })).toEqual([['', 4]])
    const steps = (await later.sums({ from: start, to: start + minute, maxSteps: 100 }))?.sums ?? []
    expect(steps.map(({ at, counts }) => [at - start, counts.calls]).sort()).toEqual([
      [0, 8],
      [10_000, 4],
    ])
  })

  test('has calls as they were, newest first and page by page, with the calls that they caused', async () => {
    await using history = open(await server.database())
    const calls = [
      call({ id: 'a' }),
      call({ id: 'b', parent: 'a', at: start + 1, outcome: 'failed', code: 'TIMEOUT', cache: 'miss', steps: [] }),
      call({ id: 'c', at: start + 1, agent: 'x\0\ud800\\u0000', server: '"' }),
    ]
    await write(history, { tallies: [], calls })
    const [a, b, c] = calls as [StoredCall, StoredCall, StoredCall]
    const shown = { ...c, agent: 'x\ufffd\ufffd\\u0000' }
    expect(await history.calls({ ...everything, limit: 10 })).toEqual([shown, b, a])
    expect(await history.calls({ ...everything, limit: 1, before: shown })).toEqual([b])
    expect(await history.calls({ ...everything, limit: 10, agent: c.agent })).toEqual([shown])
    expect(await history.calls({ ...everything, limit: 10, outcome: 'failed', server: 'files' })).toEqual([b])
    expect(await history.call('a')).toEqual({ call: a, children: [b] })
    expect(await history.call('x')).toBeUndefined()
  })

  test('a batch whose acknowledgement was lost is not counted twice, and a rejected one does not block others', async () => {
    const url = await server.database()
    await using history = open(url)
    await write(history, { tallies: [tally()], calls: [call()] })
    // As if the first batch had not been acknowledged: PostgreSQL has a later one of this process.
    await ask(url, 'UPDATE toolway.history_writers SET seq = 2')
    await write(history, { tallies: [tally()], calls: [call()] })
    expect(await groups(history)).toEqual([['', 1]])
    await write(history, { tallies: [tally({ latencies: [2 ** 40, 1] })], calls: [call({ id: 'c3' })] })
    await write(history, { tallies: [tally()], calls: [] })
    expect(await groups(history)).toEqual([['', 2]])
    expect(history.use()).toMatchObject({ used: 0, refused: 1 })
  })

  test('an outage: batches wait up to a size, then the oldest are dropped and counted; the others are written', async () => {
    const url = await server.database()
    await using history = open(url, { maxWaitingBytes: 1_000 })
    await write(history, { tallies: [tally()], calls: [] })
    await server.stop()
    for (let n = 0; n < 20; n++) await history.write({ tallies: [tally()], calls: [call({ id: `c${n}` })] })
    expect(await history.sums(everything)).toBeUndefined()
    expect(await history.logins.find('x')).toBeUndefined()
    expect(history.trouble()).toEqual(expect.any(String))
    const { used, refused } = history.use()
    expect(used).toBeLessThanOrEqual(1_000)
    expect(refused).toBeGreaterThan(10)
    await server.start()
    await until(() => history.trouble() === undefined, { what: 'PostgreSQL to be found again' })
    expect(await groups(history)).toEqual([['', 1 + 20 - refused]])
    expect((await history.calls({ ...everything, limit: 1 }))?.[0]?.id).toBe('c19')
    expect(history.use().used).toBe(0)
  })

  test('a PostgreSQL that does not respond delays a writer for half a second at most, and a reader for seconds', async () => {
    await using history = open(await server.database())
    await write(history, { tallies: [tally()], calls: [] })
    server.freeze()
    const began = performance.now()
    await history.write({ tallies: [tally()], calls: [] })
    // Less than the 11 s after which a query fails.
    expect(performance.now() - began).toBeLessThan(8_000)
    expect(await history.sums(everything)).toBeUndefined()
    server.thaw()
    await until(() => history.trouble() === undefined, { what: 'PostgreSQL to respond again' })
    await until(async () => (await groups(history)).join() === ',2', { what: 'the batch that waited' })
  })

  test('is bounded by age and size: fine steps first, then what is older than `keep`, then the oldest calls', async () => {
    const url = await server.database()
    const clock = createManualClock(start)
    await using history = open(url, {
      clock: { ...clock, after: systemClock.after },
      pruneEveryMs: 0,
      maxBytes: 200_000,
    })
    await write(history, {
      tallies: [tally()],
      calls: Array.from({ length: 400 }, (_, n) => call({ id: `c${n}`, at: start + n })),
    })
    const rows = async (table: string) =>
      Number((await ask<{ n: string }>(url, `SELECT count(*) AS n FROM toolway.history_${table}`))[0]?.n)
    const become = (table: string, count: number) =>
      until(async () => (await rows(table)) === count, { what: `${count} ${table}` })
    await history.sums(everything)
    await become('calls', 300)
    expect((await history.calls({ ...everything, limit: 1 }))?.[0]?.id).toBe('c399')
    clock.advance(4 * hour)
    await write(history, { tallies: [tally({ at: clock.now(), name: 'later' })], calls: [] })
    await become('tallies', 5)
    clock.advance(31 * day)
    await write(history, { tallies: [tally({ at: clock.now(), name: 'latest' })], calls: [] })
    await become('tallies', 3)
    expect([await rows('calls'), await rows('keys')]).toEqual([0, 1])
  })

  test('is not removed by a replica whose clock is years ahead', async () => {
    const url = await server.database()
    const ahead = createManualClock(start + 3_650 * day)
    await using history = open(url, { clock: { ...ahead, after: systemClock.after }, pruneEveryMs: 0 })
    await write(history, { tallies: [tally()], calls: [call()] })
    for (const id of ['c2', 'c3']) {
      await write(history, { tallies: [tally({ at: ahead.now() })], calls: [call({ id, at: ahead.now() })] })
    }
    expect((await history.calls({ ...everything, limit: 10 }))?.map(({ id }) => id)).toEqual(['c1'])
  })

  test('logins: every replica knows them, until one of them ends or evicts them', async () => {
    const url = await server.database()
    await using one = open(url)
    await using another = open(url)
    await Promise.all([reached(one), reached(another)])
    const login = (n: number, until = Date.now() + n * minute) => ({ digest: `d${n}`, owner: 'o', sealed: 's', until })
    expect(await one.logins.add(login(1))).toBe(true)
    expect(await another.logins.find('d1')).toEqual({ ...login(1), until: expect.any(Number) })
    await another.logins.remove('d1')
    expect(await one.logins.find('d1')).toBeNull()
    for (let n = 1; n <= 17; n++) await one.logins.add(login(n))
    expect([await another.logins.find('d1'), (await another.logins.find('d2'))?.digest]).toEqual([null, 'd2'])
  })

  test('manual: no tables are made, and it says what to do', async () => {
    const url = await server.database()
    await using history = open(url, { migrate: 'manual' })
    await history.write({ tallies: [tally()], calls: [] })
    await until(() => history.trouble() !== undefined, { what: 'a message' })
    expect(history.trouble()).toContain('toolway migrate')
    expect(await ask(url, `SELECT to_regclass('toolway.migrations')::text AS table`)).toEqual([{ table: null }])
  })
})
