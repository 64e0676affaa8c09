import { afterAll, beforeAll, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type RedisServer, startRedis } from '../../../tests/fixtures/redis.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { systemClock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog as log } from '../../core/log.ts'
import type { Vault } from '../../core/stores.ts'
import { connected, redisWith } from '../../stores/redis/redis.fixture.ts'
import { redisSafe } from '../../stores/redis/vault.ts'
import { startIssuer } from './issuer.fixture.ts'
import { ask, memoryVault, openOAuth, serverConfig, signIn } from './oauth.fixture.ts'
import { startResource } from './resource.fixture.ts'

const key = 'a key of all replicas, and of them only'

withPart('redis-server', 'B10: grants that replicas share', () => {
  const open = new AsyncDisposableStack()
  let server: RedisServer
  beforeAll(async () => {
    server = open.use(await startRedis())
  })
  afterAll(() => open.disposeAsync())

  /** Two replicas, each with its own connection to Redis, and one clock for tokens. */
  const replicas = async () => {
    const clock = createManualClock()
    const one = open.use(await connected(server.url))
    const other = redisWith(open.use(await connected(server.url)), { prefix: one.prefix })
    const [first, second] = [one, other].map((redis) =>
      openOAuth({ ...redisSafe({ redis, key, clock: systemClock, log }), clock }),
    )
    if (!first || !second) throw new Error('there are two')
    return { first, second, clock, one, other }
  }

  test('a sign-in at one counts for all, and one refresher renews for all, round after round', async () => {
    await using issuer = await startIssuer({ expiresIn: 100 })
    await using resource = await startResource({ issuers: [issuer] })
    const config = serverConfig(resource.url)
    const { first, second, clock } = await replicas()
    await expect(ask(second, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
    await signIn(first, config, issuer)
    expect([await ask(first, config), await ask(second, config)]).toEqual([200, 200])
    for (let round = 1; round <= 50; round++) {
      clock.advance(100_000)
      const statuses = await Promise.all([first, second, first, second].map((oauth) => ask(oauth, config)))
      expect(statuses).toEqual([200, 200, 200, 200])
      const used = issuer.tokenRequests.flatMap(({ refresh_token }) => refresh_token ?? [])
      expect([used.length, new Set(used).size, issuer.reused]).toEqual([round, round, 0])
    }
  })

  test('a grant that one replica forgets is forgotten by all', async () => {
    await using issuer = await startIssuer({ expiresIn: 100 })
    await using resource = await startResource({ issuers: [issuer] })
    const config = serverConfig(resource.url)
    const { first, second, clock } = await replicas()
    await signIn(first, config, issuer)
    expect(await ask(second, config)).toBe(200)
    expect(await second.list()).toMatchObject([{ server: 'files', issuer: issuer.url, renewable: true }])
    expect(await first.forget('files')).toBe(1)
    clock.advance(100_000)
    await expect(ask(second, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  })
})

withPart('redis-server', 'B10: grants, and Redis away', () => {
  test('without Redis, tokens are used until they expire, and a refresh waits for it without a new sign-in', async () => {
    await using server = await startRedis()
    await using redis = await connected(server.url)
    await using issuer = await startIssuer({ expiresIn: 100 })
    await using resource = await startResource({ issuers: [issuer] })
    const [clock, config] = [createManualClock(), serverConfig(resource.url)]
    const oauth = openOAuth({ ...redisSafe({ redis, key, clock: systemClock, log }), clock })
    await signIn(oauth, config, issuer)
    expect(await ask(oauth, config)).toBe(200)
    server.freeze()
    await Promise.all([1, 2, 3].map(() => redis.ask((client) => client.ping())))
    expect(redis.up).toBe(false)
    expect(await ask(oauth, config)).toBe(200)
    // The token is due for renewal, but has not expired yet.
    clock.advance(99_000)
    expect(await ask(oauth, config)).toBe(200)
    clock.advance(1_000)
    await expect(ask(oauth, config)).rejects.toMatchObject({
      code: 'OVERLOADED',
      message: expect.stringContaining('stores.redis'),
      details: { unsent: true },
    })
    expect(issuer.tokenRequests).toHaveLength(1)
    server.thaw()
    await until(() => redis.up, { what: 'the return' })
    expect(await ask(oauth, config)).toBe(200)
    expect([issuer.tokenRequests.length, issuer.reused]).toEqual([2, 0])
  })
})

test('B6: a renewed token that could not be stored is used, and its refresh token is the next one used', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using resource = await startResource({ issuers: [issuer] })
  const [clock, config, kept] = [createManualClock(), serverConfig(resource.url), memoryVault()]
  let away = false
  const vault: Vault = {
    ...kept,
    async write(name, text) {
      if (away) throw new ToolwayError('OVERLOADED', 'away')
      await kept.write(name, text)
    },
  }
  const oauth = openOAuth({ vault, clock })
  await signIn(oauth, config, issuer)
  away = true
  for (let round = 0; round < 3; round++) {
    clock.advance(100_000)
    expect(await ask(oauth, config)).toBe(200)
  }
  away = false
  clock.advance(100_000)
  expect(await ask(oauth, config)).toBe(200)
  expect(await ask(openOAuth({ vault, clock }), config)).toBe(200)
  expect([issuer.tokenRequests.length, issuer.reused]).toEqual([5, 0])
})
