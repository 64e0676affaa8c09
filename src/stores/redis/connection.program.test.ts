import { expect, test } from 'vitest'
import { startRedis, startRedisProxy } from '../../../tests/fixtures/redis.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { connected } from './redis.fixture.ts'

withPart('redis-server', 'B10: a connection to Redis', () => {
  test('B10: a connection whose packets are dropped is replaced, also while it is being opened', async () => {
    await using server = await startRedis()
    await using proxy = await startRedisProxy(server)
    await using redis = await connected(proxy.url)
    const ask = () => redis.ask((client) => client.get('a'))
    proxy.drop({ next: 1 })
    await Promise.all([ask(), ask(), ask()])
    expect(redis.up).toBe(false)
    await until(() => redis.up, { what: 'the connection after the next' })
    expect(await ask()).toBeNull()
  })
})
