import { expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { postgresProgram, startPostgres } from '../../fixtures/postgres.ts'
import { rawRequest } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type Endpoint, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'
import { asking, originOf } from '../admin/people.ts'

withPart(postgresProgram(), 'V12: replicas with PostgreSQL', () => {
  test('V12: show the same charts, statistics, calls and sign-ins, through an outage of PostgreSQL and kill -9', async () => {
    await using open = new AsyncDisposableStack()
    const postgres = open.use(await startPostgres())
    const token = 'the-token-of-both-replicas'
    const config = {
      mcpServers: { probe: { ...stdioServers.probe(), readTools: ['echo'] } },
      cache: { enabled: true },
      auth: { token },
      history: {},
      stores: { path: './state', postgres: { url: await postgres.database() } },
    }
    const folders = [open.use(await temporaryFolder()), open.use(await temporaryFolder())] as const
    const start = async () => open.use(await startCommand(config, { folder: folders[0] }))
    let one: Command = await start()
    // The one that is not killed can run in this process.
    const other = open.use(await startToolway(config, { folder: folders[1] }))

    const call = async (replica: Endpoint, messages: readonly string[]) => {
      await using client = await connect('v2', { endpoint: { url: replica.url, token } })
      for (const message of messages) await client.callTool('probe__echo', { message })
    }
    const read = async (replica: Endpoint, path: string) => (await asking(originOf(replica), token)(path)).json
    const from = Date.now() - 60_000
    const range = () => `from=${from}&to=${Date.now() + 60_000}`
    /** What a replica shows: the rows of a tool, the points added up, and the calls. */
    const seen = async (replica: Endpoint) => {
      const stats = await read(replica, `stats?by=tool&${range()}`)
      const series = await read(replica, `series?${range()}`)
      const calls = await read(replica, 'calls?name=echo')
      const add = (member: 'calls' | 'cacheHits') =>
        series.points.reduce((sum: number, point: Record<typeof member, number>) => sum + point[member], 0)
      const row = stats.rows.find(({ name }: { name: string }) => name === 'probe.echo')
      return { row: row?.calls, points: add('calls'), hits: add('cacheHits'), calls: calls.length, p50: row?.p50Ms }
    }
    const both = (count: number, hits: number) =>
      until(
        async () => {
          const [here, there] = [await seen(one), await seen(other)]
          return (
            JSON.stringify(here) === JSON.stringify(there) &&
            here.row === count &&
            here.points === count &&
            here.calls === count &&
            here.hits === hits
          )
        },
        { what: `both replicas to show ${count} calls` },
      )

    await call(one, ['1', '2', '1'])
    await call(other, ['3', '4'])
    await both(5, 1)
    const [latest] = await read(other, 'calls?name=echo&limit=1')
    expect((await read(one, `calls/${latest.id}`)).steps.length).toBeGreaterThan(0)

    // A sign-in at one is known to the other, and so is that it ended.
    const { headers } = await rawRequest(originOf(one), {
      ...{ path: '/admin/api/session', method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ token }),
    })
    const id = /=([\w-]+);/.exec(headers['set-cookie']?.[0] ?? '')?.[1] as string
    const asBrowser = async (replica: Endpoint, method = 'GET') => {
      const cookie = `toolway_admin_${new URL(replica.url).port}=${id}`
      const sent = { cookie, 'toolway-admin': '1' }
      return (await rawRequest(originOf(replica), { path: '/admin/api/session', method, headers: sent })).status
    }
    expect([await asBrowser(one), await asBrowser(other)]).toEqual([200, 200])

    // Without PostgreSQL each shows its own calls, says so, and keeps the others for later.
    await postgres.stop()
    await call(one, ['5'])
    await call(other, ['6'])
    await until(async () => (await seen(one)).row === 4, { what: 'its own calls' })
    const inbox = async () => JSON.stringify(await read(one, 'inbox'))
    await until(async () => (await inbox()).includes('store:postgres'), { what: 'the inbox to say so' })
    await postgres.start()
    await both(7, 1)

    await one.stop('SIGKILL')
    one = await start()
    expect(await asBrowser(one)).toBe(200)
    await call(one, ['7'])
    await both(8, 1)
    expect(await asBrowser(one, 'DELETE')).toBe(204)
    await until(async () => (await asBrowser(other)) === 401, { what: 'the sign-in to end everywhere' })
  })
})
