import { afterAll, beforeAll, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { ask, type PostgresServer, postgresProgram, startPostgres } from '../../../tests/fixtures/postgres.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { openSpool } from '../../audit/archive/spool.ts'
import { endOf, openLog } from '../../audit/audit.fixture.ts'
import type { AuditLog } from '../../audit/write/audit-log.ts'
import type { Spool } from '../../core/audit-archive.ts'
import { connectPostgres } from './connection.ts'
import { migrate } from './migrations.ts'
import { Shipper, type ShipperOptions } from './shipper.ts'

withPart(postgresProgram(), 'B10: copying', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server[Symbol.asyncDispose]())

  const ends = (url: string) =>
    ask<{ lane: string; seq: string }>(url, 'SELECT lane, seq FROM toolway.chains WHERE seq > 0 ORDER BY lane')

  test('a process copies its own lane, and that of another only if no other process does', async () => {
    const url = await server.database()
    await using at = await temporaryFolder()
    {
      await using one = await openLog(at.path)
      await using two = await openLog(at.path)
      await Promise.all([one, two].map((log) => log.end(endOf({ write: true }))))
    }
    await using postgres = await connectPostgres(url)
    await migrate(postgres)
    const clock = createManualClock()
    const options: ShipperOptions = { postgres, spool: openSpool(at.path), clock, log: createKeptLog() }
    const shipper = new Shipper({ ...options, lane: () => '1' })
    await shipper.ship()
    expect((await ends(url)).map(({ lane }) => lane)).toEqual(['1'])
    expect([shipper.waiting(), shipper.shipped('1'), shipper.shipped('2')]).toEqual([0, 4, undefined])
    // Setting the wall clock does not make the other process late.
    clock.setWall(clock.now() + 86_400_000)
    await shipper.ship()
    expect((await ends(url)).map(({ lane }) => lane)).toEqual(['1'])
    clock.setWall(clock.now() - 2 * 86_400_000)
    clock.advance(5_000)
    await shipper.ship()
    expect(await ends(url)).toMatchObject([
      { lane: '1', seq: '4' },
      { lane: '2', seq: '4' },
    ])
  })

  test('F11: a lane that two processes copy at the same time stays one chain', async () => {
    const url = await server.database()
    await using at = await temporaryFolder()
    await using one = await openLog(at.path)
    await using two = await openLog(at.path)
    const record = async (log: AuditLog) => log.end(endOf({ write: true }))
    await Promise.all([record(one), record(two)])
    await using postgres = await connectPostgres(url)
    await migrate(postgres)
    const log = createKeptLog()
    const [spool, clock] = [openSpool(at.path), createManualClock()]
    const common = { postgres, clock, log }
    const other = new Shipper({ ...common, spool: openSpool(at.path) })
    // As at the end of both: each copies all lanes. While this one reads its first lane, the other one copies both.
    let busy = false
    const slow: Spool = {
      ...spool,
      replica: spool.replica,
      async read(...what) {
        const records = await spool.read(...what)
        if (busy) return records
        busy = true
        await Promise.all([record(one), record(two)])
        await other.ship()
        return records
      },
    }
    await new Shipper({ ...common, spool: slow }).ship()
    expect(log.lines.filter(({ message }) => message.includes('copied as a new chain'))).toEqual([])
    const chains = await ask<{ lane: string; epoch: number }>(
      url,
      'SELECT lane, epoch FROM toolway.chains ORDER BY lane',
    )
    expect(chains).toEqual([
      { lane: '1', epoch: 1 },
      { lane: '2', epoch: 1 },
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
    const log = createKeptLog()
    const shipper = new Shipper({
      ...{ postgres, spool: openSpool(at.path), clock: createManualClock(), log },
    })
    await shipper.ship()
    expect(log.lines).toMatchObject([{ level: 'warn', facts: { table: 'records_2027_01' } }])
    expect(await ask(url, 'SELECT count(*)::integer AS records FROM toolway.records_other')).toEqual([{ records: 4 }])
  })
})
