import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { configSchema, type ServerConfig } from '../../config/schema.ts'
import { callOf } from '../../core/call.fixture.ts'
import type { Caller, Peer } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { type ScriptedPeer, scriptedPeer } from '../peer.fixture.ts'
import type { ConnectionScope } from './connect.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { HandshakeResult, InitializedConnection } from './handshake.ts'
import { RpcConnection } from './rpc-connection.ts'

const asking = { elicitation: {} }

/** `unsure`: the stateless protocol; the server failed to open a session, but may offer one. */
type SupportedEra = HandshakeResult['era'] | 'both' | 'unsure'

function poolWith(changes: object, spoken: SupportedEra = 'legacy', mayLog = true) {
  let era = spoken
  const peers: (ScriptedPeer & ConnectionScope)[] = []
  const clock = createManualClock()
  const config = configSchema.parse({ mcpServers: { s: changes } }).mcpServers.s as ServerConfig
  const pool = new ConnectionPool({
    server: 's',
    config,
    async connect(scope, signal): Promise<InitializedConnection> {
      const peer = scriptedPeer({ echo: () => ({}), ping: () => ({}) }, { kind: config.transport })
      peers.push(Object.assign(peer, scope))
      const connection = await RpcConnection.open(peer.transport, { ...scope, server: 's', log: silentLog }, signal)
      const isLegacy = era === 'legacy' || (era === 'both' && scope.prefersSession)
      const used: HandshakeResult['era'] = isLegacy ? 'legacy' : 'modern'
      const handshake = { era: used, protocolVersion: '1', serverInfo: {}, capabilities: {} }
      const mayOfferSession = era === 'unsure'
      return { connection, handshake, identity: { name: 'toolway', version: '1' }, mayOfferSession }
    },
    mayLog: () => mayLog,
    mayReach: () => true,
    events: { opened() {}, closed() {}, failed() {} },
    clock,
    log: silentLog,
  })
  const use = (caller: Partial<Caller>, peer: Partial<Peer> = {}) =>
    pool.use(
      callOf({ caller: { ...callOf().caller, ...caller }, peer: { ...callOf().peer, ...peer } }),
      async ({ connection }) => connection,
    )
  /** The server speaks this era from now on, and has lost its connections. */
  const become = async (now: typeof era) => {
    era = now
    await pool.interrupt(new ToolwayError('SERVER_UNAVAILABLE', 'replaced'))
  }
  return { pool, peers, use, become, clock }
}

const loud = { rounds: true, logLevel: 'info' } as const
const stdio = { command: 'x' }
const http = { url: 'http://127.0.0.1:1/mcp' }

test('G3: callers that cannot be asked share one connection', async () => {
  const { use, peers } = poolWith(stdio)
  expect(await use({ session: 'a' })).toBe(await use({ session: 'b' }))
  expect(peers).toHaveLength(1)
})

test('G3: over stdio, a caller that can be asked gets its own connection, because messages do not name a caller', async () => {
  const { use, peers } = poolWith(stdio)
  const a = await use({ session: 'a', capabilities: asking })
  const b = await use({ session: 'b', capabilities: asking })
  expect(a).not.toBe(b)
  expect(await use({ session: 'a', capabilities: asking })).toBe(a)
  expect(peers.map(({ owned, capabilities }) => [owned, capabilities])).toEqual([
    [true, asking],
    [true, asking],
  ])
})

test('G3: over stdio, a caller that wants log messages gets its own connection', async () => {
  const { use } = poolWith(stdio)
  expect(await use({ session: 'a' }, { logLevel: 'info' })).not.toBe(await use({ session: 'b' }, { logLevel: 'info' }))
})

test('G3: a server that never logs needs no own connection for callers that want log messages', async () => {
  const { use } = poolWith(stdio, 'legacy', false)
  expect(await use({ session: 'a' }, { logLevel: 'info' })).toBe(await use({ session: 'b' }, { logLevel: 'info' }))
})

test('G3: over HTTP, too, a caller that can be asked gets its own connection, and the others share one', async () => {
  const { use } = poolWith(http)
  const a = await use({ session: 'a', capabilities: asking })
  expect(await use({ session: 'a', capabilities: asking })).toBe(a)
  expect(await use({ session: 'b', capabilities: asking })).not.toBe(a)
  expect(await use({ session: 'c' })).toBe(await use({ session: 'd' }))
})

test('V3: a session that asks for log messages later stays where its state is', async () => {
  const { use } = poolWith(stdio)
  const peer = callOf().peer
  const shared = await use({ session: 'a', peer })
  expect(await use({ session: 'a', peer }, { logLevel: 'info' })).toBe(shared)
  expect(await use({ session: 'b', peer }, { logLevel: 'info' })).not.toBe(shared)
})

test('V3: a client that wants log messages of some of its calls has one connection for all of them', async () => {
  const { use } = poolWith(stdio)
  const own = await use({ session: 'm' }, loud)
  expect(await use({ session: 'm' }, { rounds: true })).toBe(own)
})

test('G3: programs of one name with different capabilities do not share a connection', async () => {
  const { use } = poolWith(stdio)
  const rooted = await use({ session: 'm', capabilities: { roots: {} } }, { rounds: true })
  expect(await use({ session: 'm', capabilities: asking }, { rounds: true })).not.toBe(rooted)
})

test('G3: one connection for each session, closed when it ends', async () => {
  const { use, pool, peers, clock } = poolWith({ ...stdio, session: 'caller', spares: 0 })
  const a = await use({ session: 'a' })
  expect(await use({ session: 'b' })).not.toBe(a)
  pool.sessionEnded('a')
  await clock.pass(0)
  expect(peers[0]?.disposed).toBe(true)
  expect(peers[1]?.disposed).toBe(false)
  expect(await use({ session: 'a' })).not.toBe(a)
})

test.each([
  ['of a server that keeps state', { session: 'caller', spares: 0 }, {}],
  ['that can be asked', {}, { capabilities: asking }],
])('W1: two agents of one session %s have a connection each until the session ends', async (_, changes, client) => {
  const { use, pool, peers, clock } = poolWith({ ...stdio, ...changes })
  const as = (agent: string) => use({ session: 'a', agent, ...client })
  const alice = await as('alice')
  const bob = await as('bob')
  expect(bob).not.toBe(alice)
  expect(await as('alice')).toBe(alice)
  expect(await use({ session: 'a', agent: 'alice', principal: 'other', ...client })).not.toBe(alice)
  pool.notifyServer('a', 'notifications/roots/list_changed')
  const told = peers.map(({ heard }) => heard.filter(({ method }) => method?.endsWith('roots/list_changed')).length)
  expect(told).toEqual([1, 1, 1])
  pool.sessionEnded('a')
  await clock.pass(0)
  expect(peers.every(({ disposed }) => disposed)).toBe(true)
})

test('W1: two agents of one client with the same roots have a connection each', async () => {
  const { pool, peers, clock } = poolWith(stdio)
  const roots = Json.of({ roots: [{ uri: 'file:///srv' }] })
  const as = async (agent: string) => {
    const caller = { ...callOf().caller, session: 'm', agent, capabilities: { roots: {} } }
    const peer = { ...callOf().peer, rounds: true, ask: async () => roots }
    const used = pool.use(callOf({ caller, peer }), async ({ connection }) => {
      peers.at(-1)?.say({ id: 'q', method: 'roots/list' })
      await until(() => peers.at(-1)?.heard.some(({ result }) => result !== undefined), { what: 'the roots' })
      return connection
    })
    // The call waits until the server has had time to apply its roots.
    let isOver = false
    const over = used.finally(() => {
      isOver = true
    })
    await until(() => clock.pass(50).then(() => isOver), { what: 'the call' })
    return over
  }
  const alice = await as('alice')
  expect(await as('bob')).not.toBe(alice)
  expect(await as('alice')).toBe(alice)
})

test('G3: a new connection for each call, with a warm one ready for the next', async () => {
  const { use, peers, clock } = poolWith({ ...stdio, session: 'call', spares: 1 })
  const first = await use({ session: 'a' })
  expect(peers).toHaveLength(2)
  await clock.pass(0)
  expect(peers.filter(({ disposed }) => disposed)).toHaveLength(1)
  const second = await use({ session: 'a' })
  expect(second).not.toBe(first)
  expect(peers).toHaveLength(3)
})

test.each(['legacy', 'modern'] as const)(
  'V3: however many calls of one client run at once, one process of a %s server serves them',
  async (era) => {
    const { pool, peers } = poolWith(stdio, era)
    const caller = { ...callOf().caller, session: 'm', capabilities: asking }
    const done = Promise.withResolvers<void>()
    const busy = Array.from({ length: 20 }, () =>
      pool.use(callOf({ caller, peer: { ...callOf().peer, ...loud } }), async ({ connection }) => {
        await done.promise
        return connection
      }),
    )
    await expect.poll(() => peers.length).toBe(1)
    done.resolve()
    expect(new Set(await Promise.all(busy)).size).toBe(1)
    expect(peers).toHaveLength(1)
  },
)

test.each(['legacy', 'modern'] as const)(
  'G3: what a client follows of a %s server and what it calls is one process',
  async (era) => {
    const { pool, use } = poolWith(stdio, era)
    const peer = { ...callOf().peer, logLevel: 'info' as const }
    const caller = { ...callOf().caller, session: 'a', capabilities: asking, peer }
    const line = pool.forCaller(caller)
    using _ = line.hold()
    const { connection } = await line.open(new AbortController().signal)
    expect(await use(caller, peer)).toBe(connection)
    expect(await use({ ...caller, session: 'b' }, peer)).not.toBe(connection)
  },
)

test('G3: a connection that is held for a subscription can be used by a call', async () => {
  const { pool, use, peers } = poolWith(stdio)
  const caller = { ...callOf().caller, session: 'm', capabilities: asking }
  using _ = pool.forCaller(caller).hold()
  await use(caller, { rounds: true })
  expect(peers).toHaveLength(1)
})

test('G3: a connection on which a caller gets log messages is not shared', async () => {
  const { use } = poolWith(stdio, 'modern')
  const own = await use({ session: 'a' }, loud)
  expect(own.owned).toBe(true)
  expect(await use({ session: 'b' })).not.toBe(own)
})

test('B2: a server of the stateless era needs one connection, which stays when a caller leaves', async () => {
  const { use, pool, peers } = poolWith(stdio, 'modern')
  const a = await use({ session: 'a', capabilities: asking })
  pool.sessionEnded('a')
  expect(await use({ session: 'b' })).toBe(a)
  expect(a.owned).toBe(false)
  expect(peers).toHaveLength(1)
})

test.each([
  ['that the server may ask', {}, { capabilities: asking }],
  ['whose state is to be kept', { session: 'caller', spares: 0 }, {}],
])('B2, G3: with a server of both eras, a client in a session %s gets its own session', async (_, changes, client) => {
  const { pool, use, peers } = poolWith({ ...http, ...changes }, 'both')
  const { peer } = callOf()
  const stateless = await use({ session: 'x' })
  const a = await use({ session: 'a', peer, ...client })
  expect(await use({ session: 'a', peer, ...client })).toBe(a)
  expect(await use({ session: 'b', peer, ...client })).not.toBe(a)
  expect(peers.map(({ prefersSession }) => prefersSession)).toEqual([false, true, true])
  expect(pool.latest?.connection).toBe(stateless)
  expect(await use({ session: 'x' })).toBe(stateless)
})

test('B2: with a server of both eras, a client without sessions uses none', async () => {
  const { use, peers } = poolWith(http, 'both')
  expect(await use({ session: 'a', capabilities: asking })).toBe(await use({ session: 'b' }))
  expect(peers.map(({ prefersSession }) => prefersSession)).toEqual([false])
})

test('B2: a stateless server is asked for a session once, and again after a reconnect', async () => {
  const { pool, use, peers, become } = poolWith(http, 'modern')
  const { peer } = callOf()
  const stateless = await use({})
  const own = await use({ session: 'a', peer, capabilities: asking })
  expect(await use({ session: 'a', peer, capabilities: asking })).toBe(own)
  expect(await use({ session: 'b', peer, capabilities: asking })).toBe(stateless)
  await become('both')
  await use({})
  expect(await use({ session: 'c', peer, capabilities: asking })).not.toBe(pool.latest?.connection)
  expect(peers.map(({ prefersSession }) => prefersSession)).toEqual([false, true, false, true])
})

test('B2: the next session is tried again if a server failed to open one for a reason that may not last', async () => {
  const { use, peers, pool } = poolWith({ ...http, session: 'caller', spares: 0 }, 'unsure')
  const { peer } = callOf()
  const own = await use({ session: 'a', peer })
  expect(await use({ session: 'a', peer })).toBe(own)
  await use({ session: 'b', peer })
  expect(peers.map(({ prefersSession }) => prefersSession)).toEqual([true, true])
  expect(pool.all).toHaveLength(2)
})

test('B2: a server that was restarted is asked for sessions again, also if no connection is shared', async () => {
  const { use, peers, become } = poolWith({ ...http, session: 'caller', spares: 0 }, 'modern')
  const { peer } = callOf()
  await use({ session: 'a', peer })
  await use({ session: 'b', peer })
  await become('both')
  await use({ session: 'a', peer })
  expect(peers.map(({ prefersSession }) => prefersSession)).toEqual([true, false, true])
})

test('B2: what is known about a server is up to date after it was replaced by one of the older era', async () => {
  const { use, pool, become } = poolWith(http, 'modern')
  await use({ session: 'a', peer: callOf().peer, capabilities: asking })
  await become('legacy')
  await use({})
  expect(pool.latest?.handshake.era).toBe('legacy')
})

test('B2, G3: with a server of both eras, too, a warm connection is ready for the next session', async () => {
  const { use, peers, pool } = poolWith({ ...stdio, session: 'caller', spares: 1 }, 'both')
  const { peer } = callOf()
  await use({ session: 'a', peer })
  await use({ session: 'b', peer })
  const open = peers.length
  await use({ session: 'c', peer })
  expect(peers).toHaveLength(open + 1)
  // Lists are fetched without a session.
  const { handshake } = await pool.forListing({}).open(new AbortController().signal)
  expect(handshake.era).toBe('modern')
  expect(peers.map(({ prefersSession }) => prefersSession)).toEqual([false, true, true, true, true])
})

test('B2, G3: with a server of both eras, the lists for all clients come over the stateless protocol', async () => {
  const { pool } = poolWith({ ...http, session: 'caller', spares: 0 }, 'both')
  const { signal } = new AbortController()
  const { handshake } = await pool.forListing({}).open(signal)
  const caller = { ...callOf().caller, session: 'a', peer: callOf().peer }
  expect((await pool.forCaller(caller).open(signal)).handshake.era).toBe('legacy')
  expect(pool.current(caller.capabilities)?.handshake).toBe(handshake)
})

test('G3: a warm connection that was closed as idle is taken by the next session, and replaced', async () => {
  const { use, pool, clock } = poolWith({ ...stdio, session: 'caller', spares: 1, idle: '10s' })
  const { peer } = callOf()
  await use({ session: 'a', peer })
  await clock.pass(20_000)
  expect(pool.describe(9).map(({ scope }) => scope)).toEqual(['session'])
  await use({ session: 'b', peer })
  await clock.pass(0)
  expect(pool.describe(9).map(({ scope }) => scope)).toEqual(['session', 'session', 'spare'])
})

test('B2: era: modern opens no sessions beside the stateless protocol', async () => {
  const { use, peers } = poolWith({ ...http, era: 'modern' }, 'both')
  await use({ session: 'a', peer: callOf().peer, capabilities: asking })
  expect(peers.map(({ prefersSession }) => prefersSession)).toEqual([false])
})

test('T5: calls continue when a server of the stateless era is replaced by one with sessions', async () => {
  const { use, become, peers } = poolWith(http, 'modern')
  await use({ session: 'a' })
  await become('legacy')
  const shared = await use({ session: 'a' })
  expect(await use({ session: 'b' })).toBe(shared)
  expect(await use({ session: 'c', capabilities: asking })).not.toBe(shared)
  expect(peers.slice(1).some(({ disposed }) => disposed)).toBe(false)
})

test('G3: connections of callers that never end their session are bounded', async () => {
  const { use, peers, clock } = poolWith({ ...stdio, session: 'caller', spares: 0 })
  for (let caller = 0; caller < 260; caller++) await use({ session: `s${caller}`, principal: `p${caller % 5}` })
  await clock.pass(0)
  expect(peers.filter(({ disposed }) => disposed)).toHaveLength(4)
})

test('V6: one caller has at most a quarter of the connections of a server, and closes only its own', async () => {
  const { use, pool, peers, clock } = poolWith({ ...stdio, session: 'caller', spares: 0 })
  await use({ session: 'quiet', principal: 'bert' })
  for (let session = 0; session < 70; session++) await use({ session: `s${session}`, principal: 'mallory' })
  await clock.pass(0)
  expect(peers.filter(({ disposed }) => disposed)).toHaveLength(6)
  expect(peers[0]?.disposed).toBe(false)
  // Those that are in use stay, so that there is no room for another.
  for (const managed of pool.all) managed.hold()
  const another = async () => use({ session: 'one more', principal: 'mallory' })
  await expect(another()).rejects.toMatchObject({ code: 'OVERLOADED' })
  await use({ session: 'loud', principal: 'bert' })
})

test('B7: disposal closes shared, owned, short-lived and spare connections', async () => {
  const { use, pool, peers, clock } = poolWith({ ...stdio, session: 'caller', spares: 2 })
  await use({ session: 'a' })
  await pool[Symbol.asyncDispose]()
  expect(peers).toHaveLength(3)
  expect(peers.every(({ disposed }) => disposed)).toBe(true)
  expect(clock.pending).toBe(0)
})

test('B7: however many kinds of clients come, the number of spare connections is limited', async () => {
  const { use, pool, peers, clock } = poolWith({ ...stdio, session: 'caller', spares: 1 })
  for (let kind = 0; kind < 40; kind++) {
    await use({ session: `s${kind}`, capabilities: { experimental: { [kind]: {} } } })
    pool.sessionEnded(`s${kind}`)
  }
  await clock.pass(0)
  expect(peers.filter(({ disposed }) => !disposed)).toHaveLength(1)
  expect(pool.all).toHaveLength(1)
  await use({ session: 'again', capabilities: { experimental: { 39: {} } } })
  expect(peers).toHaveLength(42)
})

test.each(['shared', 'caller'])(
  'G2: with session %s, unused connections and spares stop; one that an open session has used stays until the session ends',
  async (session) => {
    const { use, pool, peers, clock } = poolWith({ ...stdio, session, idle: '1m', spares: 1 })
    const kept = await use({ session: 'a', capabilities: asking, peer: callOf().peer })
    await use({ session: 'nobody to reach' })
    await clock.pass(0)
    const left = () => peers.filter(({ disposed }) => !disposed).map(({ transport }) => transport)
    expect(left().length).toBeGreaterThan(1)
    await clock.pass(120_000)
    expect(left()).toEqual([kept.transport])
    pool.sessionEnded('a')
    await clock.pass(120_000)
    expect(left()).toEqual([])
    await pool[Symbol.asyncDispose]()
    expect(clock.pending).toBe(0)
  },
)

test('G2: a shared connection stays as long as one of the sessions that have used it is open', async () => {
  const { use, pool, peers, clock } = poolWith({ ...stdio, idle: '1m' })
  for (const session of ['a', 'b']) await use({ session, peer: callOf().peer })
  pool.sessionEnded('a')
  await clock.pass(600_000)
  expect(peers[0]?.disposed).toBe(false)
  pool.sessionEnded('b')
  await clock.pass(120_000)
  expect(peers[0]?.disposed).toBe(true)
})

test('B7: disposal closes the connection of a call in flight', async () => {
  const { pool, peers } = poolWith({ ...stdio, session: 'call', spares: 0 })
  const call = pool
    .use(callOf(), ({ connection }) =>
      connection.request({ method: 'never answered', params: () => undefined, signal: new AbortController().signal }),
    )
    .catch((error) => error)
  await expect.poll(() => peers[0]?.heard.length).toBe(1)
  await pool[Symbol.asyncDispose]()
  expect(peers[0]?.disposed).toBe(true)
  expect(await call).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})
