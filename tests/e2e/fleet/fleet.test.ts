import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Balancer, startBalancer } from '../../fixtures/balancer.ts'
import { conversationEntry } from '../../fixtures/conversation/entry.ts'
import { connectTalkers, converseAll, type Talker } from '../../fixtures/conversation/talkers.ts'
import { type RedisServer, startRedis } from '../../fixtures/redis.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { withPart } from '../../fixtures/with-part.ts'

withPart('redis-server', 'B10: three replicas behind a plain balancer', () => {
  const open = new AsyncDisposableStack()
  const replicas: LocalToolway[] = []
  const talkers: Talker[] = []
  let redis: RedisServer
  let balancer: Balancer

  beforeAll(async () => {
    redis = open.use(await startRedis())
    const talks = await conversationEntry('legacy', 'stdio', open)
    for (let number = 0; number < 3; number++) {
      const auth = { token: 'the-token-of-the-whole-fleet' }
      replicas.push(
        open.use(await startToolway({ auth, mcpServers: { talks }, stores: { redis: { url: redis.url } } })),
      )
    }
    balancer = open.use(await startBalancer(replicas.map(({ url }) => url)))
    const [first] = replicas
    talkers.push(
      ...(await connectTalkers(
        { url: balancer.url, token: first?.token ?? '' },
        ['v1', 'v2', 'modern', 'modern'],
        open,
      )),
    )
  })
  afterAll(() => open.disposeAsync())

  test('B10, G3: callers of both eras hear and are asked what is their own, whichever replica they come to', async () => {
    for (let round = 0; round < 10; round++) await converseAll(talkers, 'talks__converse', round)
    expect(Math.min(...balancer.counts)).toBeGreaterThan(20)
  })
})
