import { afterAll, beforeAll, expect, test } from 'vitest'
import { connected as allConnected, pubSubContract } from '../../../tests/contract/pub-sub.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { type RedisServer, startRedis } from '../../../tests/fixtures/redis.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { silentLog } from '../../core/log.ts'
import { createSeal } from '../../lib/seal.ts'
import { redisPubSub } from './cluster.ts'
import type { SharedRedis } from './connection.ts'
import { connected } from './redis.fixture.ts'

withPart('redis-server', 'B10: a bulletin in Redis', () => {
  const open = new AsyncDisposableStack()
  let server: RedisServer
  beforeAll(async () => {
    server = open.use(await startRedis())
  })
  afterAll(() => open.disposeAsync())

  const seal = createSeal('the secret of the fleet')
  const replicas = (redis: SharedRedis, count: number) =>
    Array.from({ length: count }, (_, index) =>
      open.use(redisPubSub({ redis, self: `replica-${index}`, seal, log: silentLog })),
    )

  pubSubContract('Redis', async (count) => replicas(open.use(await connected(server.url)), count))

  test("B10: messages that were not sealed with the cluster's secret are ignored", async () => {
    const redis = open.use(await connected(server.url))
    const log = createKeptLog()
    const wary = open.use(redisPubSub({ redis, self: 'wary', seal, log }))
    const [friend] = replicas(redis, 1)
    const stranger = open.use(redisPubSub({ redis, self: 'stranger', seal: createSeal('a guess'), log: silentLog }))
    await allConnected([wary, friend!])
    const heard: string[] = []
    using _ = wary.subscribe('reload', (text) => heard.push(text))
    stranger.publish('reload', 'guessed')
    const channel = `${redis.prefix}bulletin`
    const message = JSON.stringify(['friend', 'reload', 'forged'])
    await redis.ask((client) => client.publish(channel, message))
    // A message that replicas sealed for another purpose is ignored as well.
    await redis.ask((client) => client.publish(channel, seal.close(message, 'fleet')))
    friend?.publish('reload', 'true')
    await until(() => heard.length > 0, { what: 'the friend' })
    expect(heard).toEqual(['true'])
    expect(log.lines.filter(({ level }) => level === 'debug')).toHaveLength(3)
  })
})

withPart('redis-server', 'B10: a bulletin while Redis is away', () => {
  test('without Redis messages are lost and no call waits or fails; with Redis replicas receive them again', async () => {
    await using server = await startRedis()
    await using redis = await connected(server.url)
    const options = { redis, seal: createSeal('s'), log: silentLog }
    await using one = redisPubSub({ ...options, self: 'one' })
    await using other = redisPubSub({ ...options, self: 'other' })
    await allConnected([one, other])
    const heard: string[] = []
    using _ = other.subscribe('a', (text) => heard.push(text))
    await server.stop()
    await until(() => !redis.up, { what: 'the loss' })
    one.publish('a', 'lost')
    await server.start()
    await until(
      () => {
        one.publish('a', 'found')
        return heard.length > 0
      },
      { what: 'the return' },
    )
    expect(new Set(heard)).toEqual(new Set(['found']))
  })
})
