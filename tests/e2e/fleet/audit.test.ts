import pg from 'pg'
import { expect, test } from 'vitest'
import { openGateway } from '../../../src/admin/gateway.ts'
import { toolway } from '../../../src/cli/kit.fixture.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { createManualClock } from '../../fixtures/clock.ts'
import { startCommand } from '../../fixtures/command.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { startPostgres } from '../../fixtures/postgres.ts'
import { startRedis } from '../../fixtures/redis.ts'
import { type Endpoint, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'

withPart('redis-server', 'B10, F11: the audit of a fleet', () => {
  test('every call that was answered is in PostgreSQL, whatever was stopped or killed meanwhile, for as long as audit.retain says', async () => {
    await using open = new AsyncDisposableStack()
    const redis = open.use(await startRedis())
    const postgres = open.use(await startPostgres())
    const url = await postgres.database()
    const token = 'the-token-of-the-whole-fleet'
    const stores = { redis: { url: redis.url }, postgres: { url } }
    const config = { auth: { token }, stores, audit: { path: './audit', sync: 'all' } }
    const folders = [open.use(await temporaryFolder()), open.use(await temporaryFolder())] as const
    const startDoomed = async () => open.use(await startCommand(config, { folder: folders[0] }))
    const doomed = await startDoomed()
    // The one that is not killed can run in this process.
    const other = open.use(await startToolway(config, { folder: folders[1] }))
    const clientOf = async ({ url }: Endpoint) => open.use(await connect('v1', { endpoint: { url, token } }))
    const clients = await Promise.all([clientOf(doomed), clientOf(other)])
    const answered: string[] = []
    const call = async (client: TestClient, mark: string) => {
      const { isError } = await client.callTool('hash', { data: mark })
      if (!isError) answered.push(mark)
    }
    const everybody = (name: string) =>
      Promise.all(clients.flatMap((client, who) => [1, 2, 3].map((n) => call(client, `${name}-${who}-${n}`))))

    await everybody('together')
    await postgres.stop()
    await everybody('without')
    // Killed while it has records that nobody else has: they are on its disk, and are copied when it is back.
    await call(clients[0] as TestClient, 'last words')
    await doomed.stop('SIGKILL')
    await postgres.start()
    clients[0] = await clientOf(await startDoomed())
    await everybody('again')

    const query = async (text: string) => {
      const client = new pg.Client(url)
      await client.connect()
      try {
        return (await client.query(text)).rows
      } finally {
        await client.end()
      }
    }
    const kept = async () => JSON.stringify(await query('select * from toolway.records'))
    const missing = async () => {
      const text = await kept().catch(() => '')
      return answered.filter((mark) => !text.includes(mark))
    }
    expect(answered).toHaveLength(19)
    await until(async () => (await missing()).length === 0, { what: 'all records' })
    const { stdout } = await toolway(['audit', 'verify', '--postgres', '--json', '--config', other.configFile], {
      cwd: folders[1].path,
      env: process.env,
    })
    expect(JSON.parse(stdout)).toMatchObject({ ok: true })

    // A replica that runs for three months removes what is older than it should be, whoever has recorded it.
    const late = open.use(await temporaryFolder())
    const clock = createManualClock(Date.now())
    for (const [retain, gone] of [
      ['200d', 0],
      ['90d', answered.length],
    ] as const) {
      const file = await writeConfig(
        late.path,
        { stores: { path: './state', postgres: { url } }, audit: { retain } },
        'nobody',
      )
      const loaded = await loadConfig({ paths: [file], env: process.env, cwd: late.path })
      await using _gateway = await openGateway(loaded, { log: createKeptLog(), clock })
      clock.pause(91 * 86_400_000)
      const left = () => clock.pass(1_000).then(async () => (await missing()).length === gone)
      await until(left, { what: `what audit.retain: ${retain} leaves` })
    }
  })
})
