import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Balancer, startBalancer } from '../../fixtures/balancer.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { conversationEntry } from '../../fixtures/conversation/entry.ts'
import { connectTalkers, converseAll } from '../../fixtures/conversation/talkers.ts'
import { type RedisServer, startRedis } from '../../fixtures/redis.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'

withPart('redis-server', 'B10: three replicas behind a plain balancer', () => {
  const open = new AsyncDisposableStack()
  const replicas: LocalToolway[] = []
  const token = 'the-token-of-the-whole-fleet'
  let redis: RedisServer
  let balancer: Balancer

  const start = async () => {
    const talks = await conversationEntry('legacy', 'stdio', open)
    const replica = await startToolway({
      auth: { token },
      mcpServers: { talks },
      stores: { redis: { url: redis.url } },
      limits: { tools: { 'native.hash': 50 } },
    })
    replicas.push(open.use(replica))
    return replica
  }
  beforeAll(async () => {
    redis = open.use(await startRedis())
    for (let number = 0; number < 3; number++) await start()
    balancer = open.use(await startBalancer(replicas.map(({ url }) => url)))
  })
  afterAll(() => open.disposeAsync())

  const client = (sdk: 'v1' | 'v2' = 'v1'): Promise<TestClient> =>
    connect(sdk, { endpoint: { url: balancer.url, token } }).then((one) => open.use(one))
  /** How many of a hundred calls are refused, and how many of the fifty of a minute have come back meanwhile. */
  const refusals = async (caller: TestClient) => {
    const begun = performance.now()
    const calls = Array.from({ length: 100 }, (_, n) => caller.callTool('hash', { data: `${n}` }))
    const refused = (await Promise.all(calls)).filter(({ isError }) => isError).length
    return { refused, back: Math.ceil(((performance.now() - begun) * 50) / 60_000) }
  }

  test('B10, G3: callers of both eras hear and are asked what is their own, whichever replica they come to', async () => {
    const talkers = await connectTalkers({ url: balancer.url, token }, ['v1', 'v2', 'modern', 'modern'], open)
    for (let round = 0; round < 5; round++) await converseAll(talkers, 'talks__converse', round)
    expect(Math.min(...balancer.counts)).toBeGreaterThan(10)
  })

  test('B10, F8: a limit is a limit of all together', async () => {
    const { refused, back } = await refusals(await client())
    expect(refused).toBeLessThanOrEqual(50)
    expect(refused).toBeGreaterThanOrEqual(50 - back)
  })

  test('B10: a replica that leaves hands its sessions over, and clients notice nothing', async () => {
    const callers = await Promise.all([client('v1'), client('v1'), client('v2')])
    const leaving = replicas[0] as LocalToolway
    balancer.without(leaving.url)
    await leaving[Symbol.asyncDispose]()
    for (const caller of callers) {
      expect((await caller.listTools()).map(({ name }) => name)).toContain('time')
      expect((await caller.callTool('time', { name: 'get_time_utc' })).isError).not.toBe(true)
    }
  })

  test('B10: without Redis each replica goes on alone, and with it all are one again', async () => {
    const stored = async (replica: LocalToolway) => {
      const page = await fetch(new URL('/metrics', replica.url), { headers: { authorization: `Bearer ${token}` } })
      return /toolway_store_up\{store="redis"\} (\d)/.exec(await page.text())?.[1]
    }
    const [one, other] = replicas.slice(1) as [LocalToolway, LocalToolway]
    const caller = await client()
    await redis.stop()
    await until(async () => (await stored(one)) === '0' && (await stored(other)) === '0', { what: 'the loss' })
    // Sessions are still found: who is where was known before.
    expect((await caller.callTool('time', { name: 'get_time_utc' })).isError).not.toBe(true)
    expect((await refusals(caller)).refused).toBeLessThanOrEqual(50)
    await redis.start()
    await until(async () => (await stored(one)) === '1' && (await stored(other)) === '1', { what: 'the return' })
    expect((await caller.callTool('time', { name: 'get_time_utc' })).isError).not.toBe(true)
    const { refused, back } = await refusals(await client())
    expect(refused).toBeGreaterThanOrEqual(50 - back)
  })
})
