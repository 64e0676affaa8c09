import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { descriptorStore } from '../../src/catalog/descriptor-store.ts'
import { configSchema, type ServerConfig } from '../../src/config/schema.ts'
import { callOf } from '../../src/core/call.fixture.ts'
import type { Caller, Peer } from '../../src/core/call.ts'
import { systemClock } from '../../src/core/clock.ts'
import { ServerError } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { Json } from '../../src/json/json.ts'
import { createSeal } from '../../src/lib/seal.ts'
import { createConnector } from '../../src/upstream/connection/connect.ts'
import { UpstreamServer } from '../../src/upstream/server.ts'
import { type HttpFixture, startFixture } from '../conformance/fixture/http.ts'
import { temporaryFolder } from '../fixtures/folders.ts'
import { serverProgram } from '../fixtures/programs.ts'
import { until } from '../fixtures/until.ts'

const program = serverProgram('conformance')
const able = { elicitation: {}, sampling: {}, roots: {} }

describe.each([
  { era: 'legacy', kind: 'http' },
  { era: 'modern', kind: 'http' },
  { era: 'legacy', kind: 'stdio' },
  { era: 'modern', kind: 'stdio' },
] as const)('a server of the $era era over $kind', ({ era, kind }) => {
  let fixture: HttpFixture | undefined
  /** For tests that leave it as it was. */
  let shared: Opened

  beforeAll(async () => {
    if (kind === 'http') fixture = await startFixture({ eras: era })
    shared = await open()
  })
  afterAll(async () => {
    await shared[Symbol.asyncDispose]()
    await fixture?.[Symbol.asyncDispose]()
  })

  async function open(): Promise<Opened> {
    const folder = await temporaryFolder()
    const how = fixture
      ? { url: fixture.url }
      : { command: process.execPath, args: [program, '--stdio', '--eras', era] }
    const config = configSchema.parse({ mcpServers: { s: how } }).mcpServers.s as ServerConfig
    const common = { name: 's', config, clock: systemClock, log: silentLog }
    const server = new UpstreamServer({
      ...common,
      defaults: { timeoutMs: 10_000, refreshMs: 60_000, discovery: 'hybrid' },
      host: {
        store: descriptorStore(folder.path),
        servedUris: () => (uri) => `served+${uri}`,
        seal: createSeal('a secret for the test'),
      },
      connect: createConnector({ ...common, identity: { name: 'toolway', version: '1' } }),
    })
    await server.start()
    return {
      server,
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]()
        await folder[Symbol.asyncDispose]()
      },
    }
  }
  interface Opened extends AsyncDisposable {
    readonly server: UpstreamServer
  }

  const find = (kind: string, name: string, { capabilities = {}, server = shared.server } = {}) => {
    const entry = server
      .seenBy(capabilities)
      .entries()
      .find((entry) => entry.kind === kind && entry.name === name)
    if (!entry) throw new Error(`no ${kind} ${name}`)
    return entry
  }

  async function call(name: string, setup: CallSetup = {}) {
    const { args = {}, caller = {}, peer = {}, rest = {}, meta = {}, server = shared.server } = setup
    const capabilities = caller.capabilities ?? {}
    await server.seenBy(capabilities).ready()
    const entry = find('tool', name, { capabilities, server })
    const input = { arguments: Json.of(args), meta, rest }
    const whole = { ...callOf().caller, ...caller }
    return entry.run(callOf({ entry, input, caller: whole, peer: { ...callOf().peer, ...peer } }))
  }
  interface CallSetup {
    args?: Record<string, unknown>
    caller?: Partial<Caller>
    peer?: Partial<Peer>
    rest?: Record<string, unknown>
    meta?: Record<string, unknown>
    server?: UpstreamServer
  }

  test('B2/F5: its era is detected, its lists are read, its tools run', async () => {
    const { server } = shared
    await server.ready()
    expect(server.status()).toMatchObject({ health: 'healthy', era, transport: kind })
    expect(server.status().protocolVersion).toBe(era === 'modern' ? '2026-07-28' : '2025-11-25')
    const { body } = await call('test_simple_text')
    expect(body.value.content?.[0]).toMatchObject({ type: 'text' })
    expect(server.entries().map(({ kind }) => kind)).toEqual(expect.arrayContaining(['resource', 'template', 'prompt']))
  })

  test('B2: URIs in results are served ones, resources are read by their own', async () => {
    await shared.server.ready()
    const { body } = await call('test_embedded_resource')
    expect(JSON.stringify(body.value)).toContain('"uri":"served+test://')
    const entry = find('resource', 'test://static-text')
    const read = await entry.run(callOf({ entry, input: { arguments: Json.of({}), uri: entry.name, meta: {} } }))
    expect(read.body.value.contents).toMatchObject([{ uri: 'served+test://static-text' }])
  })

  test('B2: a question in mid-call reaches a caller that can be asked there', async () => {
    const asked: string[] = []
    const ask = async (method: string) => {
      asked.push(method)
      return Json.of({ action: 'accept', content: { username: 'ann', email: 'ann@example.com', name: 'ann' } })
    }
    const caller = { capabilities: able }
    const { body } = await call('test_elicitation', { args: { message: 'Who are you?' }, caller, peer: { ask } })
    expect(asked).toEqual(['elicitation/create'])
    expect(JSON.stringify(body.value)).toContain('ann')
  })

  if (era === 'modern')
    test('B2/G3: a caller that answers in rounds gets the question as a result', async () => {
      const rounds = { rounds: true }
      const caller = { capabilities: able, principal: 'ann' }
      const first = await call('test_input_required_result_multi_round', { caller, peer: rounds })
      const { resultType, inputRequests, requestState } = first.body.value
      expect(resultType).toBe('input_required')
      const key = Object.keys(inputRequests as object)[0] as string
      const inputResponses = { [key]: { action: 'accept', content: { name: 'ann', username: 'ann', value: 'x' } } }
      const setup = { peer: rounds, rest: { inputResponses, requestState } }
      const second = await call('test_input_required_result_multi_round', { ...setup, caller })
      expect(second.body.value.resultType).toBe('input_required')
      const stolen = call('test_input_required_result_multi_round', {
        ...setup,
        caller: { ...caller, principal: 'eve' },
      })
      await expect(stolen).rejects.toBeInstanceOf(ServerError)
    })

  test('B2: progress and log messages on the way reach the caller', async () => {
    const heard: string[] = []
    const peer = { notify: (method: string) => heard.push(method), logLevel: 'debug' as const }
    await call('test_tool_with_progress', { peer, meta: { progressToken: 'mine' } })
    expect(heard.filter((method) => method === 'notifications/progress').length).toBeGreaterThanOrEqual(3)
    await call('test_tool_with_logging', { peer })
    await until(() => heard.filter((method) => method === 'notifications/message').length >= 3, {
      what: 'log messages',
    })
  })

  test('F4: a list that changes is read again', async () => {
    // As the caller sees it: by now, it may have a connection of its own.
    const seen = shared.server.seenBy({}, callOf().caller)
    await seen.ready()
    const before = seen.entries().length
    await call('test_trigger_tool_change')
    await until(() => seen.entries().length !== before, { what: 'the changed list' })
    await call('test_trigger_tool_change')
    await until(() => seen.entries().length === before, { what: 'the list of before' })
  })

  test('B2: subscribers get every update of a resource until they unsubscribe', async () => {
    // Its own, with one connection: over stdio, each further one has a process that knows nothing of the others.
    await using own = await open()
    const { server } = own
    await server.ready()
    const entry = find('resource', 'test://watched-resource', { server })
    let ann = 0
    let bob = 0
    const { caller } = callOf()
    const first = await entry.subscribe?.(caller, entry.name, () => ann++)
    const second = await entry.subscribe?.({ ...caller, session: 's2' }, entry.name, () => bob++)
    const change = () => call('test_trigger_resource_update', { args: { uri: 'test://watched-resource' }, server })
    // A server of the stateless era is told in the background, so the first change may come before it listens.
    await until(
      async () => {
        await change()
        return ann > 0 && bob > 0
      },
      { what: 'both to hear of a change' },
    )
    await first?.[Symbol.asyncDispose]()
    const before = ann
    const heard = bob
    await until(
      async () => {
        await change()
        return bob > heard
      },
      { what: 'the one left to hear of a change' },
    )
    expect(ann).toBe(before)
    await second?.[Symbol.asyncDispose]()
  })

  test('F10: a cancelled call ends at once and leaves the connection usable', async () => {
    await shared.server.ready()
    const entry = find('tool', 'test_tool_with_progress')
    const controller = new AbortController()
    const running = entry.run(callOf({ entry, signal: controller.signal, input: { arguments: Json.of({}), meta: {} } }))
    controller.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
    await expect(call('test_simple_text')).resolves.toBeDefined()
  })
})
