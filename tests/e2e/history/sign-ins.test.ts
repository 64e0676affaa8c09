import { expect, test } from 'vitest'
import { startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { rawRequest } from '../../fixtures/raw-http.ts'
import { startRedis } from '../../fixtures/redis.ts'
import { type Endpoint, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'
import { originOf } from '../admin/people.ts'

withPart('redis-server', 'V12: replicas with Redis', () => {
  test('V12, B10: replicas share dashboard sign-ins and their end, through kill -9 and an outage of Redis', async () => {
    await using open = new AsyncDisposableStack()
    const redis = open.use(await startRedis())
    const token = 'the-token-of-both-replicas'
    const stores = { path: './state', redis: { url: redis.url } }
    const config = { mcpServers: {}, auth: { token }, history: {}, stores }
    const folder = open.use(await temporaryFolder())
    const start = async () => open.use(await startCommand(config, { folder }))
    let one = await start()
    // The one that is not killed can run in this process.
    const other = open.use(await startToolway(config))

    const session = (replica: Endpoint, method: string, more: object) =>
      rawRequest(originOf(replica), { path: '/admin/api/session', method, ...more })
    const signIn = async (replica: Endpoint) => {
      const headers = { 'content-type': 'application/json' }
      const answer = await session(replica, 'POST', { headers, body: JSON.stringify({ token }) })
      return /=([\w-]+);/.exec(answer.headers['set-cookie']?.[0] ?? '')?.[1] as string
    }
    const asBrowser = async (id: string, replica: Endpoint, method = 'GET') => {
      const cookie = `toolway_admin_${new URL(replica.url).port}=${id}`
      return (await session(replica, method, { headers: { cookie, 'toolway-admin': '1' } })).status
    }

    const id = await signIn(one)
    expect([await asBrowser(id, one), await asBrowser(id, other)]).toEqual([200, 200])
    await one.stop('SIGKILL')
    one = await start()
    expect(await asBrowser(id, one)).toBe(200)
    expect(await asBrowser(id, one, 'DELETE')).toBe(204)
    await until(async () => (await asBrowser(id, other)) === 401, { what: 'the sign-in to end everywhere' })

    await redis.stop()
    const alone = await signIn(one)
    expect([await asBrowser(alone, one), await asBrowser(alone, other)]).toEqual([200, 401])
  })
})
