import { expect, test } from 'vitest'
import { startBalancer } from '../fixtures/balancer.ts'
import { connect } from '../fixtures/clients.ts'
import { startCommand } from '../fixtures/command.ts'
import { startRedis } from '../fixtures/redis.ts'
import { withPart } from '../fixtures/with-part.ts'

withPart('redis-server', 'B10: workers of a machine among other machines', () => {
  test('each is a replica of the cluster in Redis, and one of them serves the metrics of all', async () => {
    await using open = new AsyncDisposableStack()
    const redis = open.use(await startRedis())
    const token = 'the-token-of-the-whole-fleet'
    const config = { auth: { token }, stores: { redis: { url: redis.url } } }
    const [several, alone] = await Promise.all([
      startCommand(config, { words: ['--workers', '2'] }),
      startCommand(config),
    ])
    for (const one of [several, alone]) open.use(one)
    const balancer = open.use(await startBalancer([several.url, alone.url]))
    const clients = await Promise.all(
      [1, 2, 3, 4].map(async () => open.use(await connect('v1', { endpoint: { url: balancer.url, token } }))),
    )
    for (let round = 0; round < 4; round++) {
      for (const client of clients) {
        expect((await client.callTool('time', { name: 'get_time_utc' })).isError).not.toBe(true)
      }
    }
    const headers = { authorization: `Bearer ${token}`, connection: 'close' }
    const page = await (await fetch(new URL('/metrics', several.url), { headers })).text()
    expect(page.match(/^toolway_store_up\{worker="[12]",store="redis"\} 1$/gm)).toHaveLength(2)
    expect((await several.stop()).code).toBe(0)
  })
})
