import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { frozenSql } from '../../../tests/fixtures/frozen-state.ts'
import { ask, type PostgresServer, postgresProgram, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { serverProgram } from '../../../tests/fixtures/programs.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { sealLine } from '../../audit/record.ts'
import { createSeenTime } from '../../core/seen-time.ts'
import { canonical } from '../../json/canonical-json.ts'
import { createArchive } from './archive.ts'
import { connectPostgres } from './connection.ts'
import { currentSchemaVersion, migrate } from './migrations.ts'
import { openReplica, verified } from './replica.fixture.ts'
import { removeExpired } from './retention.ts'

const script = serverProgram('audit-shipper')

/** Kills a replica while it copies its records; returns the calls that it had acknowledged. */
async function killOne(folder: string, url: string, run: number): Promise<string[]> {
  const child = spawn(process.execPath, [script, folder, url, String(run)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
  })
  const closed = once(child, 'close')
  const lines = () => text.split('\n').slice(0, -1)
  await until(() => lines().length > 300 + run * 137, { what: 'some calls' })
  child.kill('SIGKILL')
  await closed
  return lines()
}

withPart(postgresProgram(), 'B10: what PostgreSQL keeps', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server[Symbol.asyncDispose]())

  /** Creates a database with the records of a replica that has ended. */
  async function filled(calls = 20): Promise<string> {
    const url = await server.database()
    await using at = await temporaryFolder()
    await using replica = await openReplica({ url, folder: at.path })
    for (let n = 0; n < calls; n++) replica.call(`c${n}`)
    await replica.shipped()
    return url
  }

  const kinds = async (url: string) => (await verified(url)).problems.map(({ kind, seq }) => `${kind} ${seq}`)

  test('F11: a record that was changed is found, also with a recomputed hash', async () => {
    const url = await filled()
    await ask(
      url,
      `UPDATE toolway.records SET agent = 'eve', line = replace(line, '"agent":"dev"', '"agent":"eve"') WHERE seq = 7`,
    )
    expect(await kinds(url)).toEqual(['changed 7'])
    const again = await filled()
    const [{ line } = { line: '' }] = await ask<{ line: string }>(
      again,
      'SELECT line FROM toolway.records WHERE seq = 7',
    )
    const { hash: _, ...record } = JSON.parse(line.replace('"agent":"dev"', '"agent":"eve"'))
    const forged = sealLine(canonical(record)).line.trim()
    await ask(again, `UPDATE toolway.records SET line = $1, agent = 'eve' WHERE seq = 7`, [forged])
    expect(await kinds(again)).toEqual(['changed 8'])
  })

  test('F11: a record that is as it was, but that searches would not find any more, is found', async () => {
    const url = await filled()
    await ask(url, `UPDATE toolway.records SET agent = 'eve' WHERE seq = 7`)
    await ask(url, `UPDATE toolway.records SET words = '' WHERE seq = 9`)
    await ask(url, 'UPDATE toolway.records SET shown = false WHERE seq = 12')
    expect(await kinds(url)).toEqual(['changed 7', 'changed 9', 'changed 12'])
  })

  test('F11: a record that was deleted is found, at the beginning and in the middle', async () => {
    const url = await filled()
    await ask(url, 'DELETE FROM toolway.records WHERE seq = 7')
    expect(await kinds(url)).toEqual(['missing 8'])
    const again = await filled()
    await ask(again, 'DELETE FROM toolway.records WHERE seq <= 3')
    expect(await kinds(again)).toContain('missing 4')
    // Claiming that retention removed them does not hide it: the copied checkpoints show which records existed.
    await ask(again, 'UPDATE toolway.chains SET removed_to = 3')
    expect(await kinds(again)).toEqual(['missing 1', 'missing 2'])
  })

  test('F11: a truncated chain is found, also if its recorded end was moved', async () => {
    const url = await filled()
    await ask(url, 'DELETE FROM toolway.records WHERE seq > 40')
    expect(await kinds(url)).toEqual(['cut 43'])
    await ask(
      url,
      `UPDATE toolway.chains SET seq = 40, hash = (
      SELECT line::json ->> 'hash' FROM toolway.records WHERE seq = 40)`,
    )
    expect(await kinds(url)).toEqual(['cut 43'])
  })

  test('old months are dropped, the month of the border is thinned out, and what is left verifies', async () => {
    const url = await server.database()
    await using at = await temporaryFolder()
    const clock = createManualClock(Date.parse('2026-01-10T00:00:00Z'))
    const seen = createSeenTime(clock, 365 * 86_400_000, 0)
    let aheadMs = 0
    await using replica = await openReplica({
      url,
      folder: at.path,
      audit: { clock: { ...clock, now: () => clock.now() + aheadMs } },
      postgres: {
        retainMs: 365 * 86_400_000,
        clock: { ...clock, after: () => ({ [Symbol.dispose]() {} }) },
      },
    })
    for (let month = 0; month < 4; month++) {
      for (let n = 0; n < 5; n++) replica.call(`${month}-${n}`)
      // One record from a clock that is two years ahead must not protect the rest of its chain from retention until
      // then.
      aheadMs = 730 * 86_400_000
      if (month === 0) replica.call('of the future')
      aheadMs = 0
      clock.advance(15 * 86_400_000)
      for (let n = 5; n < 10; n++) replica.call(`${month}-${n}`)
      await replica.audit.flushed()
      await replica.postgres.ask(async () => {})
      clock.advance(16 * 86_400_000)
    }
    const tables = async () =>
      (await ask<{ table: string }>(url, `SELECT tableoid::regclass::text AS table FROM toolway.records GROUP BY 1`))
        .map(({ table }) => table)
        .sort()
    const months = ['2026_01', '2026_02', '2026_03', '2026_04', '2028_01']
    expect(await tables()).toEqual(months.map((month) => `toolway.records_${month}`))
    await using postgres = await connectPostgres(url)
    const border = Date.parse('2026-03-20T00:00:00Z')
    const removed = await removeExpired(postgres, clock.now(), clock.now() - border, seen)
    expect(removed).toMatchObject({ partitions: ['records_2026_01', 'records_2026_02'] })
    expect(removed.records).toBeGreaterThan(0)
    expect(await tables()).toEqual(['toolway.records_2026_03', 'toolway.records_2026_04'])
    expect(await verified(url)).toMatchObject({ ok: true, problems: [] })
    // A replica whose clock is behind must not remove records that seem to be in the future.
    const none = { partitions: [], records: 0 }
    const from = async (time: string, retainMs: number) => {
      const other = createManualClock(Date.parse(time))
      return removeExpired(postgres, other.now(), retainMs, createSeenTime(other, retainMs, 0))
    }
    expect(await from('2025-01-01T00:00:00Z', 86_400_000)).toEqual(none)
    // Nor must a replica whose clock is ahead remove records that seem to be old.
    expect(await from('2037-01-01T00:00:00Z', 365 * 86_400_000)).toEqual(none)
    const [{ oldest } = { oldest: new Date(0) }] = await ask<{ oldest: Date }>(
      url,
      'SELECT min(time) AS oldest FROM toolway.records',
    )
    expect(oldest.getTime()).toBeGreaterThanOrEqual(border)
  })

  test('F11: after the clock was set back, the records from before are kept until those after them are old', async () => {
    const url = await server.database()
    await using at = await temporaryFolder()
    const clock = createManualClock(Date.parse('2026-01-10T00:00:00Z'))
    await using replica = await openReplica({ url, folder: at.path, audit: { clock } })
    replica.call('before')
    await replica.audit.flushed()
    clock.setWall(Date.parse('2026-01-09T00:00:00Z'))
    replica.call('after')
    await replica.shipped()
    await using postgres = await connectPostgres(url)
    const day = 86_400_000
    const seen = createSeenTime(clock, 90 * day, 0)
    const expired = () => removeExpired(postgres, clock.now(), 90 * day, seen)
    expect(await expired()).toEqual({ partitions: [], records: 0 })
    clock.advance(92 * day)
    const { records } = await expired()
    expect(records).toBeGreaterThanOrEqual(4)
  })

  test('V4: a search that takes too long is a TIMEOUT with the limit, because PostgreSQL is available', async () => {
    const url = await filled()
    await using postgres = await connectPostgres(url)
    const { search } = createArchive(postgres, { searchMs: 100 })
    await postgres.transaction(async (client) => {
      await client.query('LOCK TABLE toolway.replicas IN ACCESS EXCLUSIVE MODE')
      await expect(search({ limit: 1 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        message: expect.stringContaining('0.1 s (a fixed limit)'),
      })
    })
    expect((await search({ limit: 1 })).hits).toHaveLength(1)
  })

  test('migrations: once, twice and by several at a time; a dry run changes nothing', async () => {
    const url = await server.database()
    await using postgres = await connectPostgres(url)
    const all = { from: 0, to: currentSchemaVersion }
    expect(await migrate(postgres, { dryRun: true })).toMatchObject(all)
    const answers = await Promise.all(Array.from({ length: 4 }, () => migrate(postgres)))
    expect(answers.filter(({ applied }) => applied.length > 0)).toMatchObject([all])
    expect(await migrate(postgres)).toEqual({ from: currentSchemaVersion, to: currentSchemaVersion, applied: [] })
  })

  test('a migration that fails leaves nothing behind', async () => {
    const url = await server.database()
    await using postgres = await connectPostgres(url)
    const broken = [
      { number: 1, name: 'good', sql: 'CREATE TABLE toolway.good (a int)' },
      { number: 2, name: 'bad', sql: 'CREATE TABLE toolway.bad (' },
    ]
    await expect(migrate(postgres, { migrations: broken })).rejects.toThrow('syntax error')
    expect(await migrate(postgres, { dryRun: true })).toMatchObject({ from: 0 })
  })

  test('manual: only `toolway migrate` creates tables, and the status says so', async () => {
    const url = await server.database()
    await using at = await temporaryFolder()
    await using replica = await openReplica({ url, folder: at.path, postgres: { migrate: 'manual' } })
    await until(() => replica.postgres.status().error !== undefined, { what: 'a message' })
    expect(replica.postgres.status()).toMatchObject({ up: false, error: expect.stringContaining('toolway migrate') })
    await using postgres = await connectPostgres(url)
    await migrate(postgres)
    await replica.shipped()
  })

  test.each([
    { version: '0.1.0', number: 1 },
    { version: '0.2.0', number: 2 },
  ])('V25, F11: audit records are copied to the tables of $version', async ({ number }) => {
    const url = await server.database()
    await ask(url, frozenSql())
    if (number > 1) await ask(url, `INSERT INTO toolway.migrations (number, name) VALUES (${number}, 'history')`)
    await using at = await temporaryFolder()
    await using replica = await openReplica({ url, folder: at.path, postgres: { migrate: 'manual' } })
    replica.call('c1')
    await replica.shipped()
    expect(replica.postgres.status()).toMatchObject({ up: true })
    await using postgres = await connectPostgres(url)
    expect(await migrate(postgres)).toEqual({ from: number, to: number, applied: [] })
  })

  test('after two kill -9 in the middle of copying, no acknowledged record is lost or copied twice', async () => {
    await using at = await temporaryFolder()
    const url = await server.database()
    const acknowledged = [...(await killOne(at.path, url, 1)), ...(await killOne(at.path, url, 2))]
    await using last = await openReplica({ folder: at.path, url })
    await last.shipped()
    const rows = await ask<{ call: string; count: string }>(
      url,
      `SELECT call, count(*) FROM toolway.records WHERE phase = 'after' GROUP BY call`,
    )
    expect(rows.filter(({ count }) => count !== '1')).toEqual([])
    const there = new Set(rows.map(({ call }) => call))
    expect(acknowledged.filter((call) => !there.has(call))).toEqual([])
    expect(acknowledged.length).toBeGreaterThan(600)
    expect(await verified(url)).toMatchObject({ ok: true })
  }, 30_000)
})
