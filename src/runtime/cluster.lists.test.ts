import { describe, expect, test } from 'vitest'
import { serverWith } from '../upstream/server.fixture.ts'
import { createTestFleet, type TestReplica } from './cluster.fixture.ts'

type Options = Parameters<ReturnType<typeof createTestFleet>['join']>[0]

const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Replicas with a server each, all of which offer the same. */
async function replicas(...each: NonNullable<Options>[]) {
  const membership = createTestFleet()
  let tools = ['read']
  let hanging = false
  const all = each.map((options) => {
    const upstream = serverWith({ tools: () => tools, hangs: () => hanging })
    const replica: TestReplica = membership.join({ server: upstream.server, ...options })
    /** How often the server was asked what it offers. */
    const asked = () => upstream.peers.flatMap(({ heard }) => heard).filter(({ method }) => method === 'tools/list')
    return { ...upstream, replica, asked: () => asked().length }
  })
  type Replica = (typeof all)[number]
  const [one, other, third] = all as [Replica, Replica, Replica]
  const offer = (...names: string[]) => {
    tools = names
  }
  const hang = (now: boolean) => {
    hanging = now
  }
  return {
    membership,
    all,
    one,
    other,
    third,
    offer,
    hang,
    ready: () => Promise.all(all.map(({ server }) => server.ready())),
  }
}

describe('B10, F4: a list that changed at one replica', () => {
  test('is refreshed at the others, once, and not published again', async () => {
    const { membership, one, other, third, offer, ready } = await replicas({}, {}, {})
    await ready()
    expect(membership.told).toEqual([])
    offer('read', 'write')
    await one.server.refresh()
    offer('read', 'write', 'list')
    await one.server.refresh()
    expect(other.names()).toEqual(['read'])
    await membership.clock.pass(250)
    expect([other.names(), third.names()]).toEqual([
      ['read', 'write', 'list'],
      ['read', 'write', 'list'],
    ])
    expect([other.asked(), third.asked()]).toEqual([2, 2])
    await membership.clock.pass(10_000)
    expect(membership.told).toHaveLength(2)
    expect(membership.clock.pending).toBe(0)
  })

  test('is not refreshed where it is already known', async () => {
    const { membership, all, other, offer, ready } = await replicas({}, {})
    await ready()
    offer('write')
    // Each was told by the server itself.
    await Promise.all(all.map(({ server }) => server.refresh()))
    await membership.clock.pass(250)
    expect(other.asked()).toBe(2)
    expect(other.replica.log.lines).toEqual([])
  })

  test('is refreshed again if a message arrives during a refresh', async () => {
    const { membership, one, other, offer, hang, ready } = await replicas({}, {})
    await ready()
    offer('write')
    await one.server.refresh()
    hang(true)
    await membership.clock.pass(250)
    hang(false)
    offer('list')
    await one.server.refresh()
    await membership.clock.pass(250)
    expect(other.asked()).toBe(2)
    // The one who asked in vain gives up.
    await other.clock.pass(30_000)
    await membership.clock.pass(250)
    expect(other.names()).toEqual(['list'])
  })

  test('is refreshed although another server of that name changed just before', async () => {
    const { membership, one, other, third, offer, ready } = await replicas({}, { origin: 'elsewhere' }, {})
    await ready()
    offer('write')
    await other.server.refresh()
    await one.server.refresh()
    await membership.clock.pass(250)
    expect(third.names()).toEqual(['write'])
  })

  test('is refreshed for each kind of client', async () => {
    const capabilities = { roots: {} }
    const { membership, one, other, offer, ready } = await replicas({}, {})
    const seen = [one, other].map(({ server }) => server.seenBy(capabilities))
    await ready()
    await Promise.all(seen.map((source) => source.ready()))
    offer('write')
    await seen[0]?.refresh()
    await membership.clock.pass(250)
    expect(seen[1]?.entries().map(({ name }) => name)).toEqual(['write'])
    expect(other.names()).toEqual(['write'])
  })

  test.each<[string, Options]>([
    ['where the server of that name is another one', { origin: 'elsewhere' }],
    ['of a process that sleeps', { transport: 'stdio' }],
  ])('is not asked for %s', async (_, options) => {
    const { membership, one, other, offer, ready } = await replicas({}, options ?? {})
    await ready()
    if (options?.transport === 'stdio') other.peers[0]?.die()
    offer('write')
    await one.server.refresh()
    await membership.clock.pass(250)
    expect(other.asked()).toBe(1)
  })

  test.each<[string, Options]>([
    ['a process that runs', { transport: 'stdio' }],
    ['what runs elsewhere, whether or not it is connected', { transport: 'http' }],
  ])('is asked for of %s', async (_, options) => {
    const { membership, one, other, offer, ready } = await replicas({}, options ?? {})
    await ready()
    if (options?.transport === 'http') other.peers[0]?.die()
    offer('write')
    await one.server.refresh()
    await membership.clock.pass(250)
    expect(other.names()).toEqual(['write'])
  })

  test('G2: does not start a server that is not in use', async () => {
    const { membership, one, other, offer } = await replicas({}, {})
    await one.server.ready()
    offer('write')
    await one.server.refresh()
    await membership.clock.pass(250)
    expect(other.peers).toHaveLength(0)
  })
})

test('B10: first lists, and servers paused or resumed by an operator, are not published', async () => {
  const { membership, one, ready } = await replicas({}, {})
  await ready()
  await one.server.control.pause()
  one.server.control.resume()
  await one.server.refresh()
  await settled()
  expect(membership.told).toEqual([])
})

test('B10, G8: a server that a reload has replaced publishes nothing', async () => {
  const { membership, one, offer, ready } = await replicas({}, {})
  const before = serverWith({ tools: () => [String(Math.random())] })
  one.replica.watch('files', before.server)
  await ready()
  await before.server.ready()
  await before.server.refresh()
  expect(membership.told).toEqual([])
  offer('write')
  await one.server.refresh()
  expect(membership.told).toHaveLength(1)
})
