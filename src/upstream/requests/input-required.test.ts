import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { configSchema, type ServerConfig } from '../../config/schema.ts'
import { callOf } from '../../core/call.fixture.ts'
import type { Capabilities } from '../../core/call.ts'
import { ownerOf } from '../../core/cluster.ts'
import type { Entry } from '../../core/entry.ts'
import { ServerError, type ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import type { Descriptors } from '../../core/stores.ts'
import { Json } from '../../json/json.ts'
import { createSeal } from '../../lib/seal.ts'
import { RpcConnection } from '../connection/rpc-connection.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import type { ServerHost } from '../server-options.ts'
import { EntryForwarder } from './forwarded-entries.ts'
import {
  askCaller,
  checkedInputRequests,
  resultTypeOf,
  sealedResult,
  understands,
  unsealedRest,
} from './input-required.ts'
import type { UpstreamSubscriptions } from './subscriptions.ts'

const seal = createSeal('a secret for the test')
const question = { method: 'elicitation/create', params: { message: 'Who?' } }
const asking = (more: object) => Buffer.from(JSON.stringify({ resultType: 'input_required', ...more }))

test('B2: only the result type shows that a server needs input', () => {
  expect(resultTypeOf(asking({}))).toBe('input_required')
  const typeOf = (text: string) => resultTypeOf(Buffer.from(text))
  expect(typeOf('{"content":[{"text":"\\"input_required\\""}],"resultType":"complete"}')).toBe('complete')
  expect(typeOf('{"structuredContent":{"resultType":"input_required"}}')).toBe('complete')
  expect(typeOf('{"result\\u0054ype":"input\\u005frequired"}')).toBe('input_required')
  for (const type of ['5', 'null', '["complete"]']) expect(typeOf(`{"resultType":${type}}`)).toBe('')
})

test('V1, B2: a client gets only results of types that it has declared, and one with a session no others than complete ones', () => {
  const { caller, peer } = callOf()
  const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const knows = (type: string, capabilities: Capabilities, rounds = true) =>
    understands(callOf({ caller: { ...caller, capabilities }, peer: { ...peer, rounds } }), type)
  expect([knows('complete', {}), knows('complete', {}, false), knows('task', tasks)]).toEqual([true, true, true])
  expect([knows('task', {}), knows('task', tasks, false), knows('teleport', {}), knows('', tasks)]).toEqual([
    ...[false, false, false, false],
  ])
  // Only the extension itself defines its types.
  expect([knows('teleport', { extensions: { 'x/y': {} } }), knows('task', { extensions: { 'x/y': {} } })]).toEqual([
    ...[true, false],
  ])
})

test('G3: a state is sealed for its caller and restored as the server wrote it', () => {
  const text = '{"resultType":"input_required", "requestState":"st\\u00e9te","big":12345678901234567890}'
  const sealed = sealedResult(Buffer.from(text), seal, 'me').bytes.toString()
  const { requestState } = JSON.parse(sealed)
  expect(sealed).toBe(text.replace('"st\\u00e9te"', JSON.stringify(requestState)))
  expect(unsealedRest({ requestState, inputResponses: { a: 1 } }, seal, 'me')).toEqual({
    requestState: 'stéte',
    inputResponses: { a: 1 },
  })
})

test('B10: a state that only one replica can use names it in front, and is restored without the name', () => {
  const { requestState } = sealedResult(asking({ requestState: 'a.b' }), seal, 'me', 'one').value
  expect(ownerOf(String(requestState))).toBe('one')
  expect(unsealedRest({ requestState }, seal, 'me', 'one')).toEqual({ requestState: 'a.b' })
  // Another process of the server may have given the same state to another caller.
  expect(() => unsealedRest({ requestState }, seal, 'me', 'other')).toThrow(ServerError)
  const anywhere = sealedResult(asking({ requestState: 'a.b' }), seal, 'me').value
  expect(ownerOf(String(anywhere.requestState))).toBe('')
})

test('G3: a state of another caller, or none of ours, is refused as the protocol wants it', () => {
  const { requestState } = sealedResult(asking({ requestState: 'x' }), seal, 'me').value
  for (const state of [requestState, 'x', `${requestState}-TAMPERED`, 5, null]) {
    let thrown: unknown
    try {
      unsealedRest({ requestState: state }, seal, 'somebody else')
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(ServerError)
    expect((thrown as ServerError).error.value).toMatchObject({
      code: -32602,
      data: { reason: 'invalid_request_state' },
    })
  }
})

test('B2: answers without a state, and results without one, are passed on unchanged', () => {
  expect(unsealedRest(undefined, seal, 'me')).toBeUndefined()
  const rest = { inputResponses: { user_name: 12345 } }
  expect(unsealedRest(rest, seal, 'me')).toBe(rest)
  const bytes = asking({ inputRequests: { a: question } })
  expect(sealedResult(bytes, seal, 'me').bytes).toBe(bytes)
})

test('B2: a caller that cannot come again is asked everything at once, and the exact state goes back', async () => {
  const asked: string[] = []
  const peer = {
    ...callOf().peer,
    ask: async (method: string, params: Json) => {
      asked.push(`${method} ${JSON.stringify(params.value)}`)
      return Json.of({ action: 'accept', content: { name: 'Ann' } })
    },
  }
  const bytes = asking({ inputRequests: { a: question, b: { method: 'roots/list' } }, requestState: 'exactly this' })
  const answer = { action: 'accept', content: { name: 'Ann' } }
  expect(await askCaller(bytes, callOf({ peer }))).toEqual({
    inputResponses: { a: answer, b: answer },
    requestState: 'exactly this',
  })
  expect(asked).toEqual(['elicitation/create {"message":"Who?"}', 'roots/list {}'])
})

test('security: if the client cannot be asked one of several questions, the others are withdrawn', async () => {
  const open: AbortSignal[] = []
  const ask = (method: string, _: Json, signal: AbortSignal) => {
    if (method === 'roots/list') return Promise.reject(new Error('too many'))
    open.push(signal)
    return new Promise<never>(() => {})
  }
  const bytes = asking({ inputRequests: { a: question, b: { method: 'roots/list' }, c: question } })
  await expect(askCaller(bytes, callOf({ peer: { ...callOf().peer, ask } }))).rejects.toThrow('too many')
  expect(open.map(({ aborted }) => aborted)).toEqual([true, true])
})

describe('V1: input that a server asks for', () => {
  const able = callOf()
  const call = { ...able, caller: { ...able.caller, capabilities: { elicitation: {} } } }
  test.each([
    [{ a: { method: 'evil/method' } }, /evil\/method/],
    [{ a: question, b: { method: 'tools/call', params: {} } }, /tools\/call/],
    [{ a: {} }, /undefined/],
    [{ a: { method: 'roots/list' } }, /"roots"/],
    [{ a: { ...question, Method: 'roots/list' } }, /Method/],
    [{ a: { ...question, params: { message: 'a', MESSAGE: 'b' } } }, /MESSAGE/],
  ])('is refused: %j', (inputRequests, said) => {
    // The forwarded result also contains these words, so only an error counts.
    expect(() => checkedInputRequests(asking({ inputRequests }), call)).toThrow(said)
  })

  test.each<[string, object, RegExp]>([
    ['nothing', {}, /neither/],
    ['a list', { inputRequests: [question] }, /not an object/],
    ['a state that is a number', { requestState: 7 }, /not a string/],
    ['too many values', { inputRequests: { a: { ...question, _meta: Array(100_001).fill(0) } } }, /100,000 values/],
    ['a state that is too long to be sent back', { requestState: 'x'.repeat(1024 * 1024 + 1) }, /1024 KiB/],
    [
      'more questions than a client answers',
      { inputRequests: Object.fromEntries(Array.from({ length: 33 }, (_, number) => [`q${number}`, question])) },
      /more than 32/,
    ],
  ])('is refused if it is %s', (_, body, said) => {
    expect(() => checkedInputRequests(asking(body), call)).toThrow(said)
  })

  test('is passed on with what the protocol defines for it, byte by byte', () => {
    const bytes = asking({ inputRequests: { a: question }, requestState: 'x', later: 1 })
    expect(checkedInputRequests(bytes, call)).toBe(bytes)
    const more = asking({ inputRequests: { a: { ...question, more: 1, params: { message: 'Who?', extra: 1 } } } })
    expect(String(checkedInputRequests(more, call))).toBe(String(asking({ inputRequests: { a: question } })))
  })
})

describe('V1, B2: a call to a stateless server', () => {
  const config = configSchema.parse({ mcpServers: { files: { command: 'x' } } }).mcpServers.files as ServerConfig
  const answered = async (result: object, rounds: boolean, capabilities: Capabilities = { elicitation: {} }) => {
    const { transport, heard } = scriptedPeer({ 'tools/call': () => result })
    const signal = new AbortController().signal
    const connection = await RpcConnection.open(transport, { server: 's', owned: false, log: silentLog }, signal)
    const handshake = { era: 'modern', protocolVersion: '2026-07-28', serverInfo: {}, capabilities: {} } as const
    const open = { connection, handshake, identity: { name: 'toolway', version: '1' } }
    const tool = { name: 'get', inputSchema: { type: 'object' } }
    const descriptors = { ...handshake, tools: [tool], resources: [], templates: [], prompts: [], fetchedAt: 0 }
    const server = {
      ...{ name: 's', config, clock: createManualClock(), log: silentLog },
      defaults: { timeoutMs: 1_000, maxTimeoutMs: 1_000, refreshMs: 0, discovery: 'runtime' },
      host: { seal, servedUris: () => (uri: string) => uri } as unknown as ServerHost,
      connect: async () => Promise.reject(new Error('unused')),
    } as const
    const forwarder = new EntryForwarder(server, {
      use: (_, work) => work(open),
      subscriptions: { subscribe: async () => Promise.reject(new Error('unused')) } as unknown as UpstreamSubscriptions,
      answered() {},
      failed() {},
      outdated() {},
      exceeded() {},
    })
    const [entry] = forwarder.entries(descriptors as unknown as Descriptors) as [Entry]
    const { caller, peer } = callOf()
    const able = { ...peer, rounds, ask: async () => Json.of({ action: 'decline' }) }
    const run = entry.run(callOf({ entry, caller: { ...caller, capabilities }, peer: able }))
    return {
      heard,
      outcome: await run.then(
        ({ body }) => body.value,
        (error: ToolwayError) => error.code,
      ),
    }
  }

  test.each([
    ['the type of an extension that the client does not know', { resultType: 'task', taskId: 't' }],
    ['a type that does not exist', { resultType: 'teleport', content: [] }],
    ['a type that is no text', { resultType: 5, content: [] }],
  ])('fails if its result has %s, and does not look like an empty success', async (_, result) => {
    for (const rounds of [true, false]) expect((await answered(result, rounds)).outcome).toBe('OUTCOME_UNKNOWN')
  })

  test('fails if it asks a client with a session again and again', async () => {
    const result = { resultType: 'input_required', requestState: 'x' }
    const { heard, outcome } = await answered(result, false)
    expect([heard.length, outcome]).toEqual([17, 'OUTCOME_UNKNOWN'])
  })

  test('succeeds if the client knows the type', async () => {
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    const { outcome } = await answered({ resultType: 'task', taskId: 't' }, true, capabilities)
    expect(outcome).toMatchObject({ resultType: 'task', taskId: expect.any(String) })
    expect((await answered({ resultType: 'complete', content: [] }, true)).outcome).toMatchObject({ content: [] })
  })
})
