import { rm } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { ask, type PostgresServer, postgresProgram, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { recordsIn } from '../../audit/audit.fixture.ts'
import { archiveRows } from '../../audit/reader.ts'
import { openReplica, type ReplicaOptions, verified } from './replica.fixture.ts'

withPart(postgresProgram(), 'B10: audit in PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server[Symbol.asyncDispose]())

  let stack = new AsyncDisposableStack()
  afterEach(async () => {
    await stack.disposeAsync()
    stack = new AsyncDisposableStack()
  })

  const folder = async (): Promise<string> => stack.use<Folder>(await temporaryFolder()).path
  const replica = async (options: ReplicaOptions) => stack.use(await openReplica(options))
  const rowsOf = (url: string) =>
    ask<{ lane: string; seq: string; line: string; position: string }>(
      url,
      `SELECT c.lane, r.seq, r.line, r.position FROM toolway.records r JOIN toolway.chains c ON c.id = r.chain
       ORDER BY r.position`,
    )

  test('F11: all records are copied as they are, in their order, also those of the log about itself', async () => {
    const [url, at] = [await server.database(), await folder()]
    const one = await replica({ url, folder: at })
    for (let n = 0; n < 700; n++) one.call(`c${n}`)
    await one.shipped()
    const rows = await rowsOf(url)
    expect(rows.length).toBeGreaterThan(1400)
    expect(rows.map(({ line }) => JSON.parse(line))).toEqual(recordsIn(at))
    expect(rows.map(({ seq }) => Number(seq))).toEqual(rows.map((_, index) => index + 1))
    expect(await verified(url)).toMatchObject({ ok: true, records: rows.length, problems: [] })
  })

  test.each(['German', 'SQL, DMY', 'Postgres'])(
    'B10: records are copied and read with the DateStyle %s',
    async (style) => {
      const url = await server.database()
      await ask(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET datestyle = '${style}'`)
      const one = await replica({ url, folder: await folder() })
      const call = { call: 'c', agent: 'dev', principal: 'test', operation: 'call_tool', write: false }
      one.audit.begin({ ...call, arguments: {} })
      await one.shipped()
      one.audit.end({ ...call, decision: 'ALLOW', is_error: false, latency_ms: 1 })
      one.call('d')
      await one.shipped()
      expect(await verified(url)).toMatchObject({ ok: true, problems: [] })
      const page = await one.postgres.ask(({ search }) => search({ limit: 1 }))
      const rest = await one.postgres.ask(({ search }) => search({ limit: 9, before: page?.next ?? '' }))
      expect([...(page?.hits ?? []), ...(rest?.hits ?? [])]).toMatchObject([
        { begin: expect.stringContaining('"d"') },
        { begin: expect.stringContaining('"c"') },
      ])
    },
  )

  test('B10: the log says that the encoding of an existing database cannot store a record', async () => {
    const url = await server.database()
    const one = await replica({ url, folder: await folder() })
    await one.shipped()
    await one[Symbol.asyncDispose]()
    // As if the database had been created with LATIN1.
    await ask(url, `UPDATE pg_database SET encoding = 8 WHERE datname = current_database()`)
    const other = await replica({ url, folder: await folder() })
    other.call('plain')
    await other.shipped()
    other.call('c', { agent: '\u{1f600}' })
    const line = await until(() => other.log.lines.find(({ level }) => level === 'warn'), { what: 'the warning' })
    expect(line.facts.why).toContain(`ENCODING 'UTF8'`)
  })

  test('down from the start: nothing waits for it, and all records are copied once it is up', async () => {
    const url = await server.database()
    await server.stop()
    const one = await replica({ url, folder: await folder() })
    for (let n = 0; n < 10; n++) one.call(`c${n}`)
    await one.audit.flushed()
    expect(one.postgres.status()).toMatchObject({ up: false, behindRecords: undefined })
    expect(await one.postgres.ask(({ chains }) => chains())).toBeUndefined()
    await server.start()
    await one.shipped()
    expect(await rowsOf(url)).toHaveLength(22)
    expect(one.postgres.status()).toEqual({ up: true, behindRecords: 0, behindSeconds: 0 })
    expect(one.log.lines.map(({ level }) => level)).toEqual(['warn', 'info'])
  })

  test('down for a while, under load: nothing is lost or copied twice', async () => {
    const [url, at] = [await server.database(), await folder()]
    const one = await replica({ url, folder: at })
    let calls = 0
    let going = true
    const load = (async () => {
      while (going) {
        one.call(`c${calls++}`)
        await new Promise((soon) => setTimeout(soon, 1))
      }
    })()
    await until(() => calls > 100, { what: 'some load' })
    await server.stop()
    await until(() => !one.postgres.status().up, { what: 'the loss to be noticed' })
    await until(() => (one.postgres.status().behindRecords ?? 0) > 100, { what: 'some lag' })
    expect(one.postgres.status().behindSeconds).toBeGreaterThan(0)
    await server.start()
    await until(() => one.postgres.status().up, { what: 'the recovery' })
    going = false
    await load
    await one.shipped()
    expect((await rowsOf(url)).map(({ line }) => JSON.parse(line))).toEqual(recordsIn(at))
    expect(await verified(url)).toMatchObject({ ok: true })
  })

  test('V4: suspended PostgreSQL: a search gives up and the local log continues', async () => {
    const url = await server.database()
    const one = await replica({ url, folder: await folder() })
    one.call('a')
    await one.shipped()
    server.freeze()
    try {
      one.call('b')
      await one.audit.flushed()
      expect(await one.postgres.ask(({ search }) => search({ limit: 1 }))).toBeUndefined()
      expect(one.postgres.status()).toMatchObject({ up: false, error: expect.stringContaining('(a fixed limit)') })
    } finally {
      server.thaw()
    }
    await one.shipped()
    expect(await rowsOf(url)).toHaveLength(6)
  })

  test('two replicas in one database: a chain each, one order over both, one search over both', async () => {
    const url = await server.database()
    const [one, two] = [
      await replica({ url, folder: await folder() }),
      await replica({ url, folder: await folder(), audit: { key: 'another secret' } }),
    ]
    for (let n = 0; n < 20; n++) {
      one.call(`one-${n}`)
      two.call(`two-${n}`)
    }
    await Promise.all([one.shipped(), two.shipped()])
    const positions = (await rowsOf(url)).map(({ position }) => position)
    expect(new Set(positions).size).toBe(84)
    const page = await one.postgres.ask(({ search }) => search({ limit: 100 }))
    const rows = archiveRows(page?.hits ?? [])
    expect(rows.map(({ call }) => call).sort()).toEqual(
      ['one', 'two'].flatMap((name) => Array.from({ length: 20 }, (_, n) => `${name}-${n}`)).sort(),
    )
    expect(new Set(rows.map(({ replica }) => replica)).size).toBe(2)
    expect(await verified(url)).toMatchObject({ ok: true, records: 84, chains: [{ lane: '1' }, { lane: '1' }] })
  })

  test('two processes share a folder: each copies its lane, and nothing is copied twice', async () => {
    const [url, at] = [await server.database(), await folder()]
    const one = await replica({ url, folder: at })
    const two = await replica({ url, folder: at })
    for (let n = 0; n < 600; n++) {
      one.call(`one-${n}`)
      two.call(`two-${n}`)
    }
    await Promise.all([one.shipped(), two.shipped()])
    const rows = await rowsOf(url)
    for (const lane of ['1', '2']) {
      expect(rows.filter((row) => row.lane === lane).map(({ line }) => JSON.parse(line))).toEqual(recordsIn(at, lane))
    }
    expect(await verified(url)).toMatchObject({ ok: true })
  })

  test('a record is found right after it was written, and the end of the process is copied, too', async () => {
    const url = await server.database()
    const one = await replica({ url, folder: await folder(), postgres: { everyMs: 60_000 } })
    one.call('a')
    await one.audit.flushed()
    const page = await one.postgres.ask(({ search }) => search({ call: 'a', limit: 1 }))
    expect(archiveRows(page?.hits ?? [])).toMatchObject([{ call: 'a', ended: true, arguments: { of: 'a' } }])
    // A made-up cursor does not count as a failure of PostgreSQL.
    const { MAX_SAFE_INTEGER: most } = Number
    const after = (before: string) => one.postgres.ask(({ search }) => search({ before, limit: 5 }))
    expect(await after(`pg.${most}.${most}.${most}`)).toMatchObject({ hits: [{}] })
    expect(await after(`pg.-${most}.-${most}.-${most}`)).toMatchObject({ hits: [] })
    await one[Symbol.asyncDispose]()
    expect((await rowsOf(url)).at(-1)?.line).toContain('"final":true')
  })

  test('a database put back to an earlier time gets again what it has lost', async () => {
    const [url, at] = [await server.database(), await folder()]
    const first = await replica({ url, folder: at })
    for (let n = 0; n < 10; n++) first.call(`c${n}`)
    await first.shipped()
    await first[Symbol.asyncDispose]()
    const { hash } = recordsIn(at)[4] as { hash: string }
    await ask(url, 'DELETE FROM toolway.records WHERE seq > 5')
    await ask(url, 'DELETE FROM toolway.checkpoints WHERE seq > 5')
    await ask(url, 'UPDATE toolway.chains SET seq = 5, hash = $1', [hash])
    const second = await replica({ url, folder: at })
    await second.shipped()
    expect((await rowsOf(url)).map(({ line }) => JSON.parse(line))).toEqual(recordsIn(at))
    expect(await verified(url)).toMatchObject({ ok: true })
  })

  test('a log whose files were replaced becomes a chain of its own, and both are kept', async () => {
    const [url, at] = [await server.database(), await folder()]
    const before = await replica({ url, folder: at })
    before.call('before')
    await before.shipped()
    await before[Symbol.asyncDispose]()
    await rm(`${at}/1`, { recursive: true })
    const later = await replica({ url, folder: at })
    for (const call of ['later', 'and later', 'still later']) later.call(call)
    await later.shipped()
    const page = await later.postgres.ask(({ search }) => search({ limit: 10 }))
    expect(archiveRows(page?.hits ?? []).map(({ call }) => call)).toHaveLength(4)
    expect(later.log.lines.map(({ level }) => level)).toContain('error')
    const { problems } = await verified(url)
    expect(problems.map(({ kind }) => kind)).toEqual(['lane'])
  })

  test('B6: neither log nor status shows the password', async () => {
    const place = new URL(await server.database())
    place.password = 'hunter2'
    place.port = '1'
    const one = await replica({ url: place.href, folder: await folder() })
    expect(JSON.stringify([one.log.lines, one.postgres.status()])).not.toContain('hunter2')
    expect(one.log.lines).toMatchObject([{ level: 'warn', facts: { postgres: `127.0.0.1:1${place.pathname}` } }])
  })
})
