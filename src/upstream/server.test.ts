import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { configSchema, type ServerConfig } from '../config/schema.ts'
import { callOf } from '../core/call.fixture.ts'
import { type Peer, uiExtension } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import { Json } from '../json/json.ts'
import { createStartQueue } from './connection/reconnect.ts'
import type { ScriptedPeer } from './peer.fixture.ts'
import { serverWith } from './server.fixture.ts'

test('G2/S1: nothing is started before the first request; then the tools are known', async () => {
  const { server, peers, names } = serverWith()
  await server.start()
  expect(peers).toHaveLength(0)
  expect(server.status()).toMatchObject({ health: 'stale', reason: 'not connected yet' })
  await server.ready()
  expect(names()).toEqual(['read'])
  expect(server.status()).toMatchObject({ health: 'healthy', protocolVersion: '2025-06-18', description: 'Files' })
  expect(peers[0]?.version).toBe('2025-06-18')
})

test('G2: the first connection to a server is logged, and later ones are not', async () => {
  const { server, peers, connects } = serverWith()
  await server.start()
  expect(connects).toEqual([])
  await server.ready()
  peers[0]?.die()
  await server.refresh()
  expect(peers).toHaveLength(2)
  expect(connects).toEqual([{ server: 'files', transport: 'stdio', protocolVersion: '2025-06-18' }])
})

test('B2: a server may have resources until it is known not to declare any', async () => {
  const { server } = serverWith()
  expect(server.mayHaveResources?.()).toBe(true)
  await server.ready()
  expect(server.mayHaveResources?.()).toBe(false)
})

test('V2: a server is starting until its first lists are there', async () => {
  let hangs = true
  const opened = Promise.withResolvers<void>()
  const { server, clock } = serverWith({ hangs: () => hangs, opening: () => opened.promise })
  await server.start()
  const ready = server.ready()
  await clock.pass(0)
  expect(server.status()).toMatchObject({ health: 'starting', reason: expect.stringContaining('connecting') })
  opened.resolve()
  await clock.pass(0)
  expect(server.status()).toMatchObject({ health: 'starting', reason: expect.stringContaining('lists') })
  hangs = false
  await clock.pass(30_000)
  await ready
  expect(server.status().health).toBe('degraded')
  await server.seenBy({ roots: {} }).ready()
  expect(server.status().health).not.toBe('starting')
})

test('T5, F4: a server that failed to list its tools is asked again over a new connection once it is idle', async () => {
  let listFails = true
  const { server, clock, names, peers } = serverWith({ changes: { idle: '10s' }, listFails: () => listFails })
  await server.ready()
  expect(server.status().health).toBe('degraded')
  expect(server.incomplete?.()).toEqual(['tool'])
  await clock.pass(30_000)
  await clock.pass(30_000)
  expect(peers[0]?.disposed).toBe(true)
  expect(server.status().health).toBe('degraded')
  await server.ready()
  expect(peers).toHaveLength(2)
  expect(server.status().health).toBe('degraded')
  listFails = false
  await server.ready()
  expect(names()).toEqual([])
  await clock.pass(10_001)
  await server.ready()
  expect(names()).toEqual(['read'])
  expect(server.status()).toMatchObject({ health: 'healthy' })
  expect(server.incomplete?.()).toEqual([])
})

/** Servers that share two turns to start, and whose handshakes last until they are let through. */
function startingServers(count: number) {
  const queueClock = createManualClock()
  const starts = createStartQueue(queueClock, 2)
  const begun: number[] = []
  const servers = Array.from({ length: count }, (_, number) => {
    const gate = Promise.withResolvers<void>()
    const opening = () => {
      begun.push(number)
      return gate.promise
    }
    return { ...serverWith({ starts, opening }), open: gate.resolve }
  })
  return { servers, begun, queueClock }
}

test('V2: as many servers start at a time as there are turns, and one that a call waits for goes first', async () => {
  const { servers, begun, queueClock } = startingServers(5)
  const ready = servers.map(({ server }) => server.ready())
  servers[4]?.server.expedite?.()
  await queueClock.pass(0)
  expect(begun).toEqual([0, 1])
  servers[1]?.open()
  await ready[1]
  await queueClock.pass(0)
  expect(begun).toEqual([0, 1, 4])
  for (const { open } of servers) open()
  await Promise.all(ready)
  expect(begun).toEqual([0, 1, 4, 2, 3])
})

test('V2, G2: a server whose start takes long keeps others waiting for a limited time only', async () => {
  const { servers, begun, queueClock } = startingServers(4)
  const ready = servers.map(({ server }) => server.ready())
  await queueClock.pass(0)
  expect(begun).toEqual([0, 1])
  await queueClock.pass(10_000)
  expect(begun).toEqual([0, 1, 2, 3])
  for (const { open } of servers) open()
  await Promise.all(ready)
})

test('V2: the time in the queue does not count as part of the handshake, and who leaves it takes no turn', async () => {
  const { servers, begun, queueClock } = startingServers(4)
  const [first, second, third, last] = servers.map(({ server }) => server)
  const ready = [first, second, third, last].map((server) => server?.ready())
  await queueClock.pass(0)
  await servers[3]?.clock.pass(120_000)
  expect(last?.status().health).toBe('starting')
  await third?.[Symbol.asyncDispose]()
  for (const { open } of servers) open()
  await Promise.all(ready)
  expect(begun).toEqual([0, 1, 3])
  expect(last?.status().health).toBe('healthy')
})

test('V2: a server that failed to list its tools for some client is not starting, and says why', async () => {
  const { server, clock } = serverWith({ hangs: () => true })
  const ready = server.seenBy({ sampling: {} }).ready()
  await clock.pass(20_000)
  expect(server.status().health).toBe('starting')
  await clock.pass(10_000)
  await ready
  expect(server.status()).toMatchObject({
    health: 'degraded',
    reason: expect.stringContaining('did not return its lists within 30 s'),
  })
  // So a name that is not known may still be one of its tools.
  expect(server.seenBy({ sampling: {} }).incomplete?.()).toContain('tool')
})

test.each(['shared', 'caller', 'call'])(
  'V2: with session %s, a server is opening while calls wait for a connection to it',
  async (session) => {
    const gates = [0, 1, 2].map(() => Promise.withResolvers<void>())
    const opening = (connection: number) => gates[connection]?.promise ?? Promise.resolve()
    const { server } = serverWith({ changes: { session, spares: 1 }, opening })
    gates[0]?.resolve()
    await server.ready()
    const entry = server.entries()[0] as Entry
    // The first call uses the connection that fetched the lists. A spare that is opened for the next one does not count.
    await entry.run(callOf({ entry }))
    expect(server.opening()).toBe(false)
    const capable = { ...callOf().caller, session: 's2', capabilities: { elicitation: {} } }
    const later = entry.run(callOf({ entry, caller: capable }))
    expect(server.opening()).toBe(true)
    for (const gate of gates) gate.resolve()
    await later
    expect(server.opening()).toBe(false)
  },
)

test('V6: server listings: clients that differ in unknown capabilities or in details share one', async () => {
  const { server } = serverWith()
  const known = async (capabilities: object) => {
    await server.seenBy?.(capabilities as Record<string, unknown>).ready?.()
    return server.kinds?.().size
  }
  await server.ready()
  for (let kind = 0; kind < 40; kind++) expect(await known({ experimental: { [kind]: {} } })).toBe(1)
  for (const sampling of [{}, { tools: {} }, { context: {} }]) expect(await known({ sampling })).toBe(2)
  expect(await known({ sampling: {}, extensions: { [uiExtension]: {} } })).toBe(3)
})
test('S1: a second start knows the tools at once, marked stale, without starting the server', async () => {
  const { store, server: first } = serverWith()
  await first.ready()
  const { server, names, peers } = serverWith({ store })
  await server.start()
  await server.ready()
  expect(names()).toEqual(['read'])
  expect(peers).toHaveLength(0)
  expect(server.status().health).toBe('stale')
})

test('S1, B2: a second start knows the capabilities, also if all clients of the first had some of their own', async () => {
  const { store, server: first } = serverWith()
  await first.seenBy({ roots: {} }).ready()
  const { server, peers } = serverWith({ store })
  await server.start()
  await server.seenBy({ roots: {} }).ready()
  expect(server.capabilities).toHaveProperty('tools')
  expect(peers).toHaveLength(0)
})

test('V25, B5: a listing saved by an earlier version offers no tool whose name has hidden characters', async () => {
  const { store, server: first } = serverWith({ tools: () => ['read', 'write'] })
  await first.ready()
  const load = async (server: string, fingerprint: string) => {
    const saved = await store.load(server, fingerprint)
    return (
      saved && {
        ...saved,
        tools: saved.tools.map((tool) => (tool.name === 'read' ? { ...tool, name: 're\u200bad' } : tool)),
      }
    )
  }
  const { server, names, peers } = serverWith({ store: { ...store, load } })
  await server.start()
  await server.ready()
  expect(names()).toEqual(['write'])
  expect(peers).toHaveLength(0)
})

test('S1: a stored list that is too old is used, and refreshed in the background', async () => {
  const { store, server: first } = serverWith()
  await first.ready()
  const { server, names, clock } = serverWith({ store, tools: () => ['read', 'write'] })
  await server.start()
  clock.advance(61_000)
  await server.ready()
  expect(names()).toEqual(['read'])
  await clock.pass(0)
  await clock.pass(0)
  expect(names()).toEqual(['read', 'write'])
})

test('S1: a server that is down still shows its last known tools, and says why it is unhealthy', async () => {
  const { store, server: first } = serverWith()
  await first.ready()
  const { server, names } = serverWith({ store, down: () => true })
  await server.start()
  await server.refresh()
  expect(names()).toEqual(['read'])
  expect(server.status()).toMatchObject({
    health: 'unhealthy',
    reason: expect.stringMatching(/^files is down\./),
    lastError: 'files is down.',
  })
})

test('S1: a kind of client whose lists are not fetched yet gets the common ones', async () => {
  let hangs = false
  const { server } = serverWith({ tools: () => ['read'], hangs: () => hangs })
  await server.ready()
  hangs = true
  const rich = server.seenBy({ roots: {} })
  const listed = rich.ready()
  expect(rich.entries().map(({ name }) => name)).toEqual(['read'])
  await server[Symbol.asyncDispose]()
  await listed
})

test.each([
  ['startup', 1],
  ['runtime', 0],
  ['hybrid', 0],
] as const)('S1: in mode %s, a start opens %i connections', async (discovery, count) => {
  const { server, clock, peers } = serverWith({ discovery })
  await server.start()
  await clock.pass(0)
  expect(peers).toHaveLength(count)
})

test('F4: a list is read again every minute while the server is up, and at once when it says so', async () => {
  const tools = ['a']
  const { server, clock, names, peers } = serverWith({ tools: () => tools })
  await server.ready()
  let changes = 0
  server.onChange(() => changes++)
  tools.push('b')
  await clock.pass(60_000)
  expect(names()).toEqual(['a', 'b'])
  tools.push('c')
  peers[0]?.say({ method: 'notifications/tools/list_changed' })
  await clock.pass(0)
  expect(names()).toEqual(['a', 'b', 'c'])
  expect(changes).toBeGreaterThan(0)
  changes = 0
  await clock.pass(60_000)
  expect(changes).toBe(0)
})

test('security: a server that announces a change at every request is asked less and less often, and its last change is seen', async () => {
  const tools = ['a']
  let asked = 0
  const { server, clock, names, peers } = serverWith({
    tools: () => {
      if (++asked < 1_000) queueMicrotask(() => peers[0]?.say({ method: 'notifications/tools/list_changed' }))
      return tools
    },
  })
  await server.ready()
  await clock.pass(60_000)
  expect(asked).toBeLessThan(20)
  tools.push('b')
  await clock.pass(60_000)
  expect(asked).toBeLessThan(25)
  expect(names()).toEqual(['a', 'b'])
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('F4: after many changes, the next one is seen at once', async () => {
  const tools = ['a']
  const { server, clock, names, peers } = serverWith({ tools: () => tools })
  const change = async (name: string) => {
    tools.push(name)
    peers[0]?.say({ method: 'notifications/tools/list_changed' })
    await clock.pass(0)
  }
  await server.ready()
  for (let at = 0; at < 80; at++) {
    await change(`loaded ${at}`)
    await clock.pass(500)
  }
  await clock.pass(90_000)
  await change('later')
  expect(names()).toContain('later')
  // The listing is refreshed every minute meanwhile, which does not count as a change.
  await clock.pass(400_000)
  for (const name of ['first', 'second', 'third']) {
    await change(name)
    expect(names()).toContain(name)
  }
  await server[Symbol.asyncDispose]()
})

test('F5: an unknown protocol version is a warning with both versions, not a failure, and not healthy', async () => {
  const { server, warnings, peers } = serverWith({ version: '2099-01-01' })
  await server.ready()
  const strange = { health: 'degraded', reason: expect.stringMatching(/2099-01-01.*2025-11-25/) }
  expect(server.status()).toMatchObject({ ...strange, protocolVersion: '2099-01-01' })
  const [entry] = server.entries()
  if (!entry) throw new Error('no entry')
  await entry.run(callOf({ entry }))
  expect(peers[0]?.heard.at(-1)?.method).toBe('tools/call')
  expect(server.status()).toMatchObject(strange)
  expect(warnings.join()).toMatch(/2099-01-01.*2025-11-25/)
})

describe('B5: a server that returns with another definition', () => {
  const methods = (peer: { heard: { method?: string }[] } | undefined) =>
    peer?.heard.map(({ method }) => method).filter((method) => method?.startsWith('tools/'))

  test.each([
    ['a crash', (peer?: ScriptedPeer) => peer?.die()],
    ['a connection that turns out to be dead', (peer?: ScriptedPeer) => peer?.failSilently()],
  ])('after %s: the definitions are read first, and what policy refuses now is not run', async (_, end) => {
    let description = 'Reads.'
    const refusal = { allowed: false, code: 'QUARANTINED', rule: 'policy.pins', reason: 'It changed.' } as const
    const allowed = { allowed: true, rule: 'any' } as const
    const { server, peers } = serverWith({
      description: () => description,
      decide: (_, { definition }) => (definition.description === 'Reads.' ? allowed : refusal),
    })
    await server.ready()
    const [entry] = server.entries()
    if (!entry) throw new Error('no entry')
    await entry.run(callOf({ entry }))
    end(peers[0])
    await entry.run(callOf({ entry }))
    expect(methods(peers[1])).toEqual(['tools/list', 'tools/call'])
    description = 'Reads, and sends it away.'
    end(peers[1])
    await expect(entry.run(callOf({ entry }))).rejects.toMatchObject({ code: 'QUARANTINED' })
    expect(methods(peers[2])).toEqual(['tools/list'])
    // The lists have been fetched, so the next call does not fetch them again.
    description = 'Reads.'
    await entry.run(callOf({ entry }))
    expect(methods(peers[2])).toEqual(['tools/list', 'tools/call'])
  })

  test('one that does not answer a list is called nevertheless, after a while', async () => {
    let hangs = false
    const { server, peers, clock } = serverWith({ hangs: () => hangs })
    await server.ready()
    const [entry] = server.entries()
    if (!entry) throw new Error('no entry')
    hangs = true
    peers[0]?.die()
    const answer = entry.run(callOf({ entry }))
    await clock.pass(9_999)
    expect(methods(peers[1])).toEqual(['tools/list'])
    await clock.pass(1)
    await answer
    expect(methods(peers[1])).toEqual(['tools/list', 'tools/call'])
  })
})

test('F1: a call carries the name, the arguments and the foreign `_meta`, and nothing of ours', async () => {
  const { server } = serverWith()
  await server.ready()
  const [entry] = server.entries()
  if (!entry) throw new Error('no entry')
  const meta = { 'dev.toolway/agent': 'me', traceparent: '00-1', progressToken: 'mine' }
  const { body } = await entry.run(callOf({ entry, input: { arguments: Json.of({ path: '/x' }), meta } }))
  expect(body.value.echo).toEqual({
    name: 'read',
    arguments: { path: '/x' },
    _meta: { traceparent: '00-1', progressToken: expect.any(Number) },
  })
})

test('W1: the state of a question to one agent is refused from another agent of its session', async () => {
  const asks = { resultType: 'input_required', inputRequests: {}, requestState: 'own' }
  const { server } = serverWith({ called: () => asks })
  await server.ready()
  const [entry] = server.entries() as [Entry]
  const call = callOf({ entry, peer: { ...callOf().peer, rounds: true } })
  const { requestState } = (await entry.run(call)).body.value as { requestState: string }
  const input = { ...call.input, rest: { requestState } }
  expect((await entry.run({ ...call, input })).body.value).toMatchObject({ resultType: 'input_required' })
  await expect(entry.run({ ...call, input, caller: { ...call.caller, agent: 'bob' } })).rejects.toMatchObject({
    error: { value: { code: -32602 } },
  })
})

test('V4: a server is asked for progress where that gives the call more time, whether or not the caller wants any', async () => {
  const { server } = serverWith()
  await server.ready()
  const [entry] = server.entries()
  if (!entry) throw new Error('no entry')
  const metaOf = async (call: object) => {
    const { body } = await entry.run(callOf({ entry, ...call }))
    return (body.value.echo as { _meta?: object })._meta
  }
  expect(await metaOf({ progressed: () => {} })).toEqual({ progressToken: expect.any(Number) })
  expect(await metaOf({})).toBeUndefined()
})

test('J2/F12: traits come from the operator', async () => {
  const changes = { readTools: ['read*'], idempotentTools: ['put'], toolTimeouts: { slow: '2m' }, timeout: '5s' }
  const { server } = serverWith({ tools: () => ['read_it', 'put', 'slow'], changes })
  await server.ready()
  expect(server.entries().map(({ traits }) => traits)).toMatchObject([
    { readOnly: true, idempotent: true, timeoutMs: 5_000 },
    { readOnly: false, idempotent: true, timeoutMs: 5_000 },
    { readOnly: false, idempotent: false, timeoutMs: 120_000 },
  ])
})

test.each([
  [{}, { readOnly: false, idempotent: false }],
  [{ trustAnnotations: true }, { readOnly: true, idempotent: true }],
])(
  'J2/F12: a tool is treated as read-only or idempotent only if its annotations are trusted: %j',
  async (changes, traits) => {
    const { server } = serverWith({ changes, annotations: { readOnlyHint: true, idempotentHint: true } })
    await server.ready()
    expect(server.entries()).toMatchObject([{ traits }])
  },
)

test('J2: the status of a read-only server without known reads says why none of its tools can be used', async () => {
  const { server } = serverWith({ changes: { readOnly: true } })
  await server.ready()
  expect(server.status()).toMatchObject({ health: 'healthy', reason: expect.stringContaining('readTools') })
})

test('V4: each time limit knows the setting that it comes from', async () => {
  const limitsOf = async (changes: object) => {
    const { server } = serverWith({ tools: () => ['read', 'slow', 'constructor'], changes })
    await server.ready()
    return server.entries().map(({ traits: { timeoutKey, maxTimeout } }) => ({ timeoutKey, ...maxTimeout }))
  }
  const common = { ms: 600_000, key: 'defaults.maxTimeout' }
  expect(await limitsOf({ toolTimeouts: { slow: '20m' } })).toEqual([
    { timeoutKey: 'defaults.timeout', ...common },
    { timeoutKey: 'mcpServers.files.toolTimeouts.slow', ...common, ms: 1_200_000 },
    { timeoutKey: 'defaults.timeout', ...common },
  ])
  const [read] = await limitsOf({ timeout: '1m', maxTimeout: '1h' })
  expect(read).toEqual({ timeoutKey: 'mcpServers.files.timeout', ms: 3_600_000, key: 'mcpServers.files.maxTimeout' })
})

test('F2: tools that the operator excludes are not in the catalog', async () => {
  const { server, names } = serverWith({
    tools: () => ['read', 'edit_file', 'edit'],
    changes: { tools: { include: ['*'], exclude: ['edit_*'] } },
  })
  await server.ready()
  expect(names()).toEqual(['read', 'edit'])
})

test('V15, G8: other overrides change the entries and keep the connection', async () => {
  const override = { description: 'Reads.', annotations: { readOnlyHint: true, idempotentHint: false } }
  const { server, peers, warnings } = serverWith({
    tools: () => ['read', 'edit'],
    changes: { tools: { read: override } },
  })
  await server.ready()
  const [read] = server.entries()
  expect(read?.definition).toMatchObject({ name: 'read', description: 'Reads.', annotations: { readOnlyHint: true } })
  expect(read?.traits).toMatchObject({ readOnly: true, idempotent: true })
  expect(read?.verbatim?.description).toBeUndefined()
  let changes = 0
  server.onChange(() => changes++)
  const selectionOf = (tools: object) => {
    const { mcpServers } = configSchema.parse({ mcpServers: { files: { command: 'x', tools } } })
    return (mcpServers.files as ServerConfig).tools
  }
  server.selectTools(selectionOf({ read: override }))
  expect(changes).toBe(0)
  server.selectTools(selectionOf({ exclude: ['edit'], read: { annotations: { readOnlyHint: false } }, gone: {} }))
  expect(changes).toBe(1)
  expect(server.entries().map(({ name, traits }) => [name, traits.readOnly])).toEqual([['read', false]])
  expect(warnings).toEqual(['an override of a tool has no effect'])
  expect(peers).toHaveLength(1)
})

test("V15: an operator's annotation counts instead of a server's that is trusted, and of readTools", async () => {
  const { server } = serverWith({
    annotations: { readOnlyHint: true },
    tools: () => ['read', 'edit', 'look'],
    changes: {
      ...{ trustAnnotations: true, readTools: ['look'] },
      tools: { edit: { annotations: { readOnlyHint: false } }, look: { annotations: { readOnlyHint: false } } },
    },
  })
  await server.ready()
  expect(server.entries().map(({ traits }) => traits.readOnly)).toEqual([true, false, false])
})

test('a disabled server is never started', async () => {
  const { server, peers } = serverWith({ changes: { disabled: true } })
  await server.start()
  await server.ready()
  await server.refresh()
  expect(peers).toHaveLength(0)
  expect(server.status().health).toBe('disabled')
})

test('B7: disposal leaves no timer and no open connection', async () => {
  const { server, clock, peers } = serverWith()
  await server.ready()
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
  expect(peers[0]?.disposed).toBe(true)
})

test('T5: closing a server waits until its listing is stored, and leaves no timer', async () => {
  const stored = Promise.withResolvers<void>()
  const { server, clock } = serverWith({
    store: { load: async () => undefined, save: () => stored.promise },
  })
  await server.start()
  const ready = server.ready()
  await clock.pass(0)
  let closed = false
  const closing = server[Symbol.asyncDispose]().then(() => {
    closed = true
  })
  await clock.pass(0)
  expect(closed).toBe(false)
  stored.resolve()
  await Promise.allSettled([closing, ready])
  expect(clock.pending).toBe(0)
})

test('G6, G8: a server that is denied to a session can neither question its client nor log to it', async () => {
  let allowed = true
  const { server, peers } = serverWith({ mayUseSome: () => allowed })
  await server.ready()
  const asked: string[] = []
  const logged: string[] = []
  const answers: PromiseWithResolvers<Json>[] = []
  const peer = {
    ...callOf().peer,
    notify: (method: string) => void logged.push(method),
    ask(method: string) {
      asked.push(method)
      answers.push(Promise.withResolvers<Json>())
      return (answers.at(-1) as PromiseWithResolvers<Json>).promise
    },
  }
  const caller = { ...callOf().caller, capabilities: { elicitation: {} }, peer }
  const [entry] = server.entries()
  await entry?.run(callOf({ caller, entry }))
  const own = peers.at(-1) as ScriptedPeer
  const params = { message: 'Your password?', requestedSchema: { type: 'object', properties: {} } }
  const speak = async (id: number) => {
    own.say({ id, method: 'elicitation/create', params })
    own.say({ method: 'notifications/message', params: { level: 'error', data: 'x' } })
    await new Promise(setImmediate)
  }
  const heard = (id: number) => own.heard.find((message) => message.id === id && message.method === undefined)
  await speak(1001)
  await speak(1002)
  answers[0]?.resolve(Json.of({ action: 'accept', content: {} }))
  await new Promise(setImmediate)
  expect(heard(1001)).toMatchObject({ result: { action: 'accept' } })
  allowed = false
  // An answer to a question from before the change is withheld as well.
  answers[1]?.resolve(Json.of({ action: 'accept', content: {} }))
  await speak(1003)
  for (const id of [1002, 1003]) expect(heard(id)).toMatchObject({ error: {} })
  expect(asked).toHaveLength(2)
  expect(logged).toHaveLength(2)
  allowed = true
  await speak(1004)
  expect(asked).toHaveLength(3)
})

test('G3: calls wait once, and for at most 5 s, for roots that the client does not provide, and progress says so', async () => {
  const { server, clock, peers } = serverWith({ changes: { session: 'caller', spares: 0 } })
  await server.ready()
  const [entry] = server.entries()
  if (!entry) throw new Error('no entry')
  const asked: string[] = []
  const progress: unknown[] = []
  const silent: Peer = {
    ...callOf().peer,
    notify: (_, params) => progress.push((params.value as { message?: string }).message),
    ask: (method) => {
      asked.push(method)
      return new Promise(() => {})
    },
  }
  const caller = { ...callOf().caller, capabilities: { roots: {} }, peer: silent }
  const input = { arguments: Json.of({}), meta: { progressToken: 1 } }
  let answers = 0
  const call = () => entry.run(callOf({ entry, caller, peer: silent, input })).then(() => answers++)
  const first = call()
  await clock.pass(100)
  await first
  peers.at(-1)?.say({ id: 'r1', method: 'roots/list' })
  await clock.pass(60_000)
  expect(asked).toEqual(['roots/list'])
  const waiting = [call()]
  await clock.pass(3_000)
  waiting.push(call())
  await clock.pass(1_900)
  expect(answers).toBe(1)
  await clock.pass(200)
  await Promise.all(waiting)
  expect(new Set(progress.map((message) => String(message).replace(/ \(.*/, '')))).toEqual(
    new Set(["Waiting for the client's roots"]),
  )
  await call()
  expect(answers).toBe(4)
})
