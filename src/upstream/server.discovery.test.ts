import { expect, test } from 'vitest'
import { callOf } from '../core/call.fixture.ts'
import type { Entry } from '../core/entry.ts'
import { serverWith } from './server.fixture.ts'

/** A server that has been listed once, has a new tool since then, and counts how often it is listed. */
async function changedServer(setup: Parameters<typeof serverWith>[0] = {}) {
  const tools = ['read']
  let lists = 0
  const counted = () => {
    lists++
    return tools
  }
  const made = serverWith({ tools: counted, ...setup })
  await made.server.start()
  await made.server.ready()
  tools.push('write')
  return { ...made, tools, lists: () => lists }
}

test.each([{}, { session: 'caller' }])(
  'S1: in mode startup, neither time, a change notification nor a reconnect lists %j again',
  async (changes) => {
    const { server, clock, names, peers, lists } = await changedServer({ discovery: 'startup', changes })
    const entry = server.entries()[0] as Entry
    await entry.run(callOf({ entry }))
    await clock.pass(600_000)
    peers.at(-1)?.say({ method: 'notifications/tools/list_changed' })
    await clock.pass(60_000)
    for (const peer of peers) peer.die()
    await clock.pass(60_000)
    await server.ready()
    await entry.run(callOf({ entry }))
    await clock.pass(60_000)
    expect(peers.length).toBeGreaterThan(1)
    expect(names()).toEqual(['read'])
    expect(lists()).toBe(1)
    await server.refresh()
    expect(names()).toEqual(['read', 'write'])
  },
)

test('S1: in mode startup, a server that could not be listed at the start is listed once it can be', async () => {
  let listFails = true
  const { server, clock, names, peers } = await changedServer({ discovery: 'startup', listFails: () => listFails })
  expect(names()).toEqual([])
  listFails = false
  peers[0]?.die()
  await clock.pass(60_000)
  await server.ready()
  expect(names()).toEqual(['read', 'write'])
})

test.each(['startup', 'runtime'] as const)(
  'S1: in mode %s, a server that is down when Toolway starts keeps the tools of the last run, until it can be listed',
  async (discovery) => {
    const { store } = await changedServer({ discovery })
    let isDown = true
    const down = () => isDown
    const { server, clock, names } = serverWith({ discovery, store, down, tools: () => ['write'] })
    await server.start()
    await server.ready()
    expect(server.status().health).toBe('unhealthy')
    expect(names()).toEqual(['read'])
    expect(server.incomplete()).toEqual([])
    isDown = false
    await clock.pass(60_000)
    await server.ready()
    await clock.pass(0)
    expect(names()).toEqual(['write'])
  },
)

test.each(['startup', 'runtime'] as const)(
  'S1: in mode %s, lists wait for the listing of this run, and have that of the last one if it fails',
  async (discovery) => {
    const { store } = await changedServer({ discovery })
    const fresh = serverWith({ discovery, store, tools: () => ['write'] })
    await fresh.server.start()
    await fresh.server.ready()
    expect(fresh.names()).toEqual(['write'])
    const silent = serverWith({ discovery, store, hangs: () => true })
    await silent.server.start()
    const listed = silent.server.ready()
    await silent.clock.pass(30_000)
    await listed
    expect(silent.names()).toEqual(['write'])
  },
)

test.each(['startup', 'hybrid'] as const)(
  'S1: in mode %s, a new conversation does not list again',
  async (discovery) => {
    const { server, lists } = await changedServer({ discovery })
    expect(server.renew?.()).toBeUndefined()
    expect(lists()).toBe(1)
  },
)

test('S1: in mode runtime, new conversations see a fresh list, and those that begin together share one', async () => {
  const { server, names, lists } = await changedServer({ discovery: 'runtime' })
  await Promise.all(Array.from({ length: 20 }, () => server.renew?.()))
  expect(names()).toEqual(['read', 'write'])
  // The first one's, and one that was requested after the others had begun.
  expect(lists()).toBe(3)
})

test('S1: in mode runtime, conversations that begin while the server is being listed share the next list', async () => {
  const { server, clock, names, tools, lists, peers } = await changedServer({ discovery: 'runtime' })
  peers[0]?.say({ method: 'notifications/tools/list_changed' })
  const renewed = Array.from({ length: 20 }, () => server.renew?.())
  tools.push('delete')
  await Promise.all(renewed)
  await clock.pass(0)
  expect(names()).toEqual(['read', 'write', 'delete'])
  expect(lists()).toBe(3)
})

test.each(['startup', 'runtime', 'hybrid'] as const)(
  'S1, T1: in mode %s, calls of unknown names list the server again, together at most every 5 s',
  async (discovery) => {
    const { server, clock, names, tools, lists } = await changedServer({ discovery })
    await Promise.all(Array.from({ length: 20 }, () => server.relist?.('wake')))
    expect(names()).toEqual(['read', 'write'])
    expect(lists()).toBe(2)
    tools.push('delete')
    const other = server.seenBy({ roots: {} })
    await other.ready()
    const before = lists()
    for (let second = 0; second < 4; second++) {
      await server.relist?.('wake')
      await other.relist?.('wake')
      await clock.pass(1_000)
    }
    expect(lists()).toBe(before)
    await clock.pass(1_000)
    await server.relist?.('wake')
    expect(lists()).toBe(before + 1)
    expect(names()).toEqual(['read', 'write', 'delete'])
  },
)

test('S1, G2: an unknown name wakes an idle server only if it names that server', async () => {
  const { server, clock, peers } = await changedServer({ changes: { idle: '10s' } })
  await clock.pass(30_000)
  expect(peers[0]?.disposed).toBe(true)
  await server.relist?.()
  expect(peers).toHaveLength(1)
  await server.relist?.('wake')
  expect(peers).toHaveLength(2)
})

test('S1: a server that does not return its only list is named in a warning', async () => {
  const { server, clock, warnings } = serverWith({ hangs: () => true })
  await server.start()
  const listed = server.ready()
  await clock.pass(30_000)
  await listed
  expect(server.status()).toMatchObject({ health: 'degraded', reason: expect.stringContaining('within 30 s') })
  expect(warnings).toEqual(['the server failed to return a list'])
})

test('S1, V2: an unknown name does not list a server that is down, disabled or paused', async () => {
  let down = false
  const { server, lists } = await changedServer({ down: () => down })
  await server.control.pause()
  await server.relist?.('wake')
  server.control.resume()
  down = true
  await server.refresh()
  expect(server.status().health).toBe('unhealthy')
  const before = lists()
  await server.relist?.('wake')
  expect(lists()).toBe(before)
})
