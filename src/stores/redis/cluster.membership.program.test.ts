import { afterAll, beforeAll, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type RedisServer, startRedis } from '../../../tests/fixtures/redis.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { createSeal } from '../../lib/seal.ts'
import { RedisMembership } from './cluster.ts'
import type { SharedRedis } from './connection.ts'
import { connected, redisWith } from './redis.fixture.ts'

const seal = createSeal('the secret of this fleet')

withPart('redis-server', 'B10: replicas that know one another through Redis', () => {
  const open = new AsyncDisposableStack()
  let server: RedisServer
  beforeAll(async () => {
    server = open.use(await startRedis())
  })
  afterAll(() => open.disposeAsync())

  /** Starts replicas under one prefix that know each other; each has its own clock. */
  const replicas = async (...addresses: string[]) => {
    const redis = open.use(await connected(server.url))
    const all = addresses.map((address) => {
      const clock = createManualClock()
      const membership = open.use(new RedisMembership({ redis, clock, seal }))
      /** Sends a heartbeat and reads which other replicas exist. */
      const beat = () => membership.join(address)
      return { clock, membership, self: membership.self, beat }
    })
    for (const { beat } of [...all, ...all]) await beat()
    return { redis, all }
  }

  test('a replica that restarts at the same address does not forward to itself, and takes over its sessions', async () => {
    const { all } = await replicas('http://a', 'http://b', 'http://a')
    const [before, other, after] = all as [(typeof all)[0], (typeof all)[0], (typeof all)[0]]
    await before.membership.keep(`${before.self}.1`, 'its record')
    await after.beat()
    expect(after.membership.addressOf(before.self)).toBeUndefined()
    expect(await after.membership.takeOver(`${before.self}.1`)).toEqual({ record: 'its record' })
    await other.beat()
    expect(other.membership.addressOf(after.self)).toBe('http://a')
  })

  test('after a pause of the process, replicas that it missed meanwhile do not count as gone', async () => {
    const { redis, all } = await replicas('http://a', 'http://b')
    const [one, other] = all as [(typeof all)[0], (typeof all)[0]]
    await one.clock.pass(4_000)
    await one.beat()
    await redis.ask((client) => client.del(`${redis.prefix}{fleet}:replica:${other.self}`))
    const looked = new Promise<void>((resolve) => one.membership.onReturn?.(resolve))
    one.clock.pause(60_000)
    await looked
    expect(one.membership.addressOf(other.self)).toBe('http://b')
    expect(one.membership.isGone?.(other.self)).toBe(false)
    await one.clock.pass(4_000)
    await one.beat()
    expect(one.membership.addressOf(other.self)).toBeUndefined()
    expect(one.membership.isGone?.(other.self)).toBe(true)
  })

  test('a replica that was unreachable learns that another one took over its session', async () => {
    const { all } = await replicas('http://a', 'http://b')
    const [one, other] = all as [(typeof all)[0], (typeof all)[0]]
    expect(await one.membership.keep('a.1', 'first')).toBe(true)
    expect(await one.membership.keep('a.1', 'second')).toBe(true)
    expect(await other.membership.takeOver('a.1', one.self)).toEqual({ record: 'second' })
    expect(await one.membership.keep('a.1', 'third')).toBe(false)
    expect(await other.membership.keep('a.1', 'fourth')).toBe(true)
  })

  test('a replica that joined later is known from its first record on, before the next poll', async () => {
    const { redis, all } = await replicas('http://a')
    const [one] = all as [(typeof all)[0]]
    await using newcomer = new RedisMembership({ redis, clock: createManualClock(), seal })
    await newcomer.join('http://b')
    await newcomer.keep(`${newcomer.self}.1`, 'its record')
    const held = { heldBy: newcomer.self, address: 'http://b' }
    expect(await one.membership.takeOver(`${newcomer.self}.1`)).toEqual(held)
    expect(one.membership.addressOf(newcomer.self)).toBe('http://b')
  })

  test('a session whose record is not in Redis yet is held by the replica that its id names', async () => {
    const { all } = await replicas('http://a', 'http://b')
    const [one, other] = all as [(typeof all)[0], (typeof all)[0]]
    const session = `${other.self}.1`
    expect(await one.membership.takeOver(session)).toEqual({ heldBy: other.self, address: 'http://b' })
    expect(await other.membership.takeOver(session)).toBeUndefined()
    expect(await one.membership.takeOver(session, other.self)).toBeUndefined()
    expect(await one.membership.takeOver('unknown.1')).toBeUndefined()
  })

  test('a session is found even if the first responses of Redis are too late', async () => {
    const { redis, all } = await replicas('http://a')
    const [{ membership, self }] = all as [(typeof all)[0]]
    await membership.keep(`${self}.1`, 'its record')
    let late = 0
    const ask: SharedRedis['ask'] = async (command) => (late-- > 0 ? undefined : redis.ask(command))
    await using other = new RedisMembership({
      redis: redisWith(redis, { up: true, ask }),
      clock: createManualClock(),
      seal,
    })
    await other.join('http://b')
    late = 2
    expect(await other.takeOver(`${self}.1`)).toEqual({ heldBy: self, address: 'http://a' })
    late = 1_000
    expect(await other.takeOver(`${self}.1`)).toBeUndefined()
    late = 0
  })

  test('workers know one another through the primary until Redis has answered for long enough to decide', async () => {
    const redis = open.use(await connected(server.url))
    const clock = createManualClock()
    let members = new Map([['other', 'http://b']])
    const workers = {
      self: 'one',
      addressOf: (name: string) => members.get(name),
      unreachable: (name: string) => void members.delete(name),
    }
    await using one = new RedisMembership({ redis, clock, seal, workers })
    expect(one.self).toBe('one')
    expect(one.addressOf('other')).toBe('http://b')
    await one.join('http://a')
    expect(one.addressOf('other')).toBe('http://b')
    one.unreachable('other')
    expect(one.addressOf('other')).toBeUndefined()
    members = new Map([['other', 'http://b']])
    expect(one.addressOf('other')).toBe('http://b')
    // A worker that is paused sends no heartbeat, so others take over its sessions.
    await clock.pass(4_000)
    await until(() => one.addressOf('other') === undefined, { what: 'the decision' })
  })

  test('after Redis was away, known replicas stay known until they have had time to return', async () => {
    await using own = await startRedis()
    await using redis = await connected(own.url)
    const clock = createManualClock()
    await using one = new RedisMembership({ redis, clock, seal })
    await using other = new RedisMembership({ redis, clock: createManualClock(), seal })
    await other.join('http://b')
    await one.join('http://a')
    let returns = 0
    using _ = one.onReturn?.(() => returns++)
    await own.stop()
    await until(() => !redis.up, { what: 'the loss' })
    await own.start()
    await until(() => returns === 1, { what: 'the return' })
    expect(one.addressOf(other.self)).toBe('http://b')
    // The clock of the other replica stands still, so that replica sends no further heartbeat.
    await redis.ask((client) => client.del(`${redis.prefix}{fleet}:replica:${other.self}`))
    await clock.pass(3_500)
    await one.join('http://a')
    expect(one.addressOf(other.self)).toBe('http://b')
    await clock.pass(1_000)
    await until(() => one.addressOf(other.self) === undefined, { what: 'its end' })
  })

  test('after Redis has lost its data, known replicas stay known until they have had time to register again', async () => {
    const { redis, all } = await replicas('http://a', 'http://b')
    const [one, other] = all as [(typeof all)[0], (typeof all)[0]]
    await one.clock.pass(4_000)
    await one.beat()
    let returns = 0
    using _ = one.membership.onReturn?.(() => returns++)
    // Another replica at the same address only removes the name.
    await redis.ask((client) => client.srem(`${redis.prefix}{fleet}:replicas`, one.self))
    await one.beat()
    expect(returns).toBe(0)
    await redis.ask(async (client) => client.del(await client.keys(`${redis.prefix}*`)))
    await one.beat()
    expect(one.membership.addressOf(other.self)).toBe('http://b')
    expect(one.membership.isGone?.(other.self)).toBe(false)
    expect(returns, 'its sessions have to be registered again').toBe(1)
    await one.beat()
    expect(returns).toBe(1)
    await one.clock.pass(4_000)
    await one.beat()
    expect(one.membership.addressOf(other.self)).toBeUndefined()
  })

  test('a replica that cannot be reached while Redis is away is asked again', async () => {
    await using own = await startRedis()
    await using redis = await connected(own.url)
    await using one = new RedisMembership({ redis, clock: createManualClock(), seal })
    await using other = new RedisMembership({ redis, clock: createManualClock(), seal })
    await other.join('http://b')
    await one.join('http://a')
    await own.stop()
    await until(() => !redis.up, { what: 'the loss' })
    one.unreachable(other.self)
    expect(one.addressOf(other.self)).toBe('http://b')
    await own.start()
    await until(() => redis.up, { what: 'the return' })
    one.unreachable(other.self)
    expect(one.addressOf(other.self)).toBeUndefined()
  })

  test('a session that ended while Redis was away is not continued afterwards', async () => {
    const { redis, all } = await replicas('http://a')
    const [other] = all as [(typeof all)[0]]
    let away = false
    let changed = (_up: boolean) => {}
    const ask: SharedRedis['ask'] = async (command) => (away ? undefined : redis.ask(command))
    const onChange: SharedRedis['onChange'] = (listener) => {
      changed = listener
      return { [Symbol.dispose]() {} }
    }
    await using one = new RedisMembership({
      redis: redisWith(redis, { ask, onChange }),
      clock: createManualClock(),
      seal,
    })
    await one.join('http://b')
    const session = `${one.self}.1`
    await one.keep(session, 'its record')
    away = true
    one.forget(session)
    away = false
    expect(await one.takeOver(session)).toBeUndefined()
    changed(true)
    expect(await other.membership.takeOver(session, one.self)).toBeUndefined()
  })
})
