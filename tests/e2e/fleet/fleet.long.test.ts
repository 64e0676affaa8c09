import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { conversationEntry } from '../../fixtures/conversation/entry.ts'
import { connectTalkers, converseAll } from '../../fixtures/conversation/talkers.ts'
import { startCounted } from '../../fixtures/counted-server.ts'
import { type LocalFleet, startFleet } from '../../fixtures/fleet.ts'
import type { LocalToolway } from '../../fixtures/toolway.ts'
import { withPart } from '../../fixtures/with-part.ts'
import { allArrived, archiveFaults, search } from './archive.ts'
import { countAllowed } from './limits.ts'
import { startLoad } from './load.ts'
import { keptOne, looks } from './looks.ts'

withPart('redis-server', 'B10: three replicas behind a plain balancer', () => {
  const open = new AsyncDisposableStack()
  const allow = { servers: ['*'] }
  let fleet: LocalFleet

  beforeAll(async () => {
    const talks = await conversationEntry('legacy', 'stdio', open)
    const counted = { url: open.use(await startCounted()).url }
    fleet = await startFleet(open, {
      mcpServers: { talks, counted },
      agents: { usual: { allow }, other: { allow }, limited: { allow, perMinute: 100 } },
      defaults: { agent: 'usual' },
      cache: { enabled: true, tools: ['counted.look'] },
    })
  })
  afterAll(() => open.disposeAsync())

  const client = (sdk: 'v1' | 'v2' = 'v1'): Promise<TestClient> =>
    connect(sdk, { endpoint: fleet.endpoint }).then((one) => open.use(one))

  test('B10, G3: callers of both eras get only their own messages and questions, on any replica', async () => {
    const talkers = await connectTalkers(fleet.endpoint, ['v1', 'v2', 'modern', 'modern'], open)
    for (let round = 0; round < 3; round++) await converseAll(talkers, 'talks__converse', round)
    expect(Math.min(...fleet.balancer.counts)).toBeGreaterThan(10)
  })

  test('B10, F8: a limit is a limit of all together, exact within one percent', async () => {
    const perMinute = 100
    const { allowed, refused, back } = await countAllowed(fleet.endpoint, {
      agent: 'limited',
      perMinute,
      calls: 180,
      eras: 'both',
    })
    expect(allowed + refused).toBe(180)
    // How many have come back by the last call that was refused is known to a moment.
    expect(allowed).toBeGreaterThanOrEqual(0.99 * perMinute)
    expect(allowed).toBeLessThanOrEqual(1.01 * (perMinute + back))
  })

  test('B10, F13: results cached by one replica are used by the others, for the same agent and no other', async () => {
    const key = 'the same'
    expect(await looks(fleet, { key, kept: await keptOne(fleet) })).toEqual([1, 1, 1])
    expect(await looks(fleet, { key, agent: 'other', kept: await keptOne(fleet) })).toEqual([2, 2, 2])
    expect(await looks(fleet, { key })).toEqual([1, 1, 1])
  })

  test('B10, F11: any replica finds the calls of all, and their chains are intact', async () => {
    const load = await startLoad(fleet.endpoint, { callers: 6, name: 'load-found' })
    await load.more(40)
    const outcomes = await load.stop()
    expect(outcomes.filter(({ failure }) => failure !== undefined)).toEqual([])
    await allArrived(fleet.database, outcomes)
    for (const replica of fleet.replicas) {
      const { rows, source } = await search(replica, 'load-found')
      expect([rows.length, source]).toEqual([outcomes.length, 'postgres'])
    }
    const [{ configFile, folder }] = fleet.replicas as [LocalToolway]
    expect(await archiveFaults(fleet.database, configFile, folder)).toEqual([])
  })

  test('B10: a replica that leaves hands its sessions over, and clients notice nothing', async () => {
    const callers = await Promise.all([client('v1'), client('v1'), client('v2')])
    const leaving = fleet.replicas[0] as LocalToolway
    fleet.balancer.without(leaving.url)
    await leaving[Symbol.asyncDispose]()
    for (const caller of callers) {
      expect((await caller.listTools()).map(({ name }) => name)).toContain('time')
      expect((await caller.callTool('time', { name: 'get_time_utc' })).isError).not.toBe(true)
    }
  })

  test('B10, B7: a replica that leaves under load breaks no connection: all calls succeed, repeated if refused', async () => {
    const load = await startLoad(fleet.endpoint, { callers: 8, name: 'load-leaves', retry: true })
    await load.more(40)
    const leaving = fleet.replicas[1] as LocalToolway
    fleet.balancer.without(leaving.url)
    const left = leaving[Symbol.asyncDispose]()
    await load.more(40)
    const outcomes = await load.stop()
    await left
    expect(outcomes.filter(({ failure }) => failure !== undefined)).toEqual([])
  })
})
