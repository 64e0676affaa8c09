import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { ask, type PostgresServer, postgresProgram, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { openSpool } from '../../audit/archive/spool.ts'
import { endOf, openLog } from '../../audit/audit.fixture.ts'
import { connectPostgres } from './connection.ts'
import { migrate } from './migrations.ts'
import { createShipper, type ShipperOptions } from './shipper.ts'

const quiet = { diverged() {}, missing() {}, unpartitioned() {} }

withPart(postgresProgram(), 'B10: copying', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server[Symbol.asyncDispose]())

  const ends = (url: string) =>
    ask<{ lane: string; seq: string }>(url, 'SELECT lane, seq FROM toolway.chains WHERE seq > 0 ORDER BY lane')

  test('a process copies its own lane, and that of another only when nobody else does', async () => {
    const url = await server.database()
    await using at = await temporaryFolder()
    {
      await using one = await openLog(at.path)
      await using two = await openLog(at.path)
      await Promise.all([one, two].map((log) => log.end(endOf({ write: true }))))
    }
    await using postgres = await connectPostgres(url)
    await migrate(postgres)
    let now = 1_800_000_000_000
    const options: ShipperOptions = { postgres, spool: openSpool(at.path), now: () => now, ...quiet }
    const shipper = createShipper({ ...options, lane: () => '1' })
    await shipper.ship()
    expect((await ends(url)).map(({ lane }) => lane)).toEqual(['1'])
    expect([shipper.waiting(), shipper.shipped('1'), shipper.shipped('2')]).toEqual([0, 4, undefined])
    now += 5_000
    await shipper.ship()
    expect(await ends(url)).toMatchObject([
      { lane: '1', seq: '4' },
      { lane: '2', seq: '4' },
    ])
  })

  test('a user that may not make tables still copies everything, and says so', async () => {
    const url = await server.database()
    await using at = await temporaryFolder()
    {
      await using log = await openLog(at.path)
      await log.end(endOf({ write: true }))
    }
    await using owner = await connectPostgres(url)
    await migrate(owner)
    await ask(url, 'CREATE ROLE plain LOGIN')
    await ask(url, 'GRANT USAGE ON SCHEMA toolway TO plain')
    await ask(url, 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA toolway TO plain')
    await ask(url, 'GRANT USAGE ON ALL SEQUENCES IN SCHEMA toolway TO plain')
    const as = new URL(url)
    as.username = 'plain'
    await using postgres = await connectPostgres(as.href)
    const told: unknown[] = []
    const shipper = createShipper({
      ...{ postgres, spool: openSpool(at.path), now: () => 1_800_000_000_000, ...quiet },
      unpartitioned: (facts) => told.push(facts),
    })
    await shipper.ship()
    expect(told).toMatchObject([{ table: 'records_2027_01' }])
    expect(await ask(url, 'SELECT count(*)::integer AS records FROM toolway.records_other')).toEqual([{ records: 4 }])
  })
})
