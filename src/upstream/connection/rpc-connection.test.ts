import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { callOf } from '../../core/call.fixture.ts'
import type { Peer } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import { CallTurns } from '../requests/call-turns.ts'
import { LimitExceeded } from '../transports/transport-errors.ts'
import { RpcConnection } from './rpc-connection.ts'

const takingTurns = { strict: true, caughtUp: async () => {} }

const never = new AbortController().signal
const ask = (method: string, signal = never) => ({ method, params: () => Buffer.from('{}'), signal })
const open = async (...script: Parameters<typeof scriptedPeer>) => {
  const peer = scriptedPeer(...script)
  const hosts: Peer[] = []
  const options = { server: 's', owned: false, host: () => ({ calls: [], session: hosts }), log: silentLog }
  return { peer, hosts, connection: await RpcConnection.open(peer.transport, options, never) }
}
const peer = (changes: Partial<Peer>): Peer => ({ ...callOf().peer, ...changes })
const hearing = (who: string, seen: unknown[]) =>
  peer({ notify: (_, params) => seen.push([who, (params.value as { progress: number }).progress]) })
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('B2: a result is returned as the bytes that the server wrote', async () => {
  const { connection } = await open({ 'tools/call': () => ({ content: [], surprise: { deep: [1] } }) })
  expect((await connection.request(ask('tools/call'))).result.toString()).toBe('{"content":[],"surprise":{"deep":[1]}}')
})

test('T2: an error of the server keeps its code, message and data', async () => {
  const error = { code: -32042, message: 'open this page', data: { url: 'x', more: [1] } }
  const { connection } = await open({ 'tools/call': () => ({ error }) })
  const thrown = await connection.request(ask('tools/call')).catch((thrown: unknown) => thrown)
  expect(thrown).toBeInstanceOf(ServerError)
  expect((thrown as ServerError).error.value).toEqual(error)
})

describe('G2, V6: of messages with more values than can be parsed without delaying others', () => {
  const values = (count: number) => Array.from({ length: count }, () => 0)
  const openReporting = async () => {
    const found: unknown[] = []
    const exceeded = ({ kind, limit }: LimitExceeded) => void found.push({ kind, limit })
    const peer = scriptedPeer({})
    const options = { server: 's', owned: true, exceeded, log: silentLog }
    return { found, peer, connection: await RpcConnection.open(peer.transport, options, never) }
  }
  const tooMany = { kind: 'too-many-values', limit: 100_000 }

  test('a notification is dropped, and reported', async () => {
    const { found, peer: server, connection } = await openReporting()
    const heard: unknown[] = []
    const client = peer({ notify: (method) => heard.push(method) })
    void connection.request({ ...ask('tools/call'), peer: client }).catch(() => {})
    const news = (count: number) => ({
      method: 'notifications/message',
      params: { level: 'info', data: values(count) },
    })
    server.say(news(50_000), 1)
    server.say(news(100_000), 1)
    expect(heard).toEqual(['notifications/message'])
    expect(found).toEqual([tooMany])
  })

  test('a request is refused, and reported', async () => {
    const { found, peer: server } = await openReporting()
    server.say({ id: 'q', method: 'sampling/createMessage', params: { messages: values(100_000) } })
    expect(server.heard).toMatchObject([{ id: 'q', error: { code: -32602 } }])
    expect(found).toEqual([tooMany])
  })

  test('an error fails its call with the reason', async () => {
    const { peer: server, connection } = await openReporting()
    const asked = connection.request(ask('tools/call'))
    server.say({ id: 1, error: { code: -32000, message: 'no', data: values(100_000) } })
    const thrown = await asked.catch((thrown: unknown) => thrown)
    expect(thrown).toMatchObject({ code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('100,000 values') })
    expect(LimitExceeded.in(thrown)).toMatchObject(tooMany)
  })
})

test('G3: responses that arrive out of order are matched to their requests', async () => {
  const { connection, peer } = await open({})
  const first = connection.request(ask('a'))
  const second = connection.request(ask('b'))
  peer.say({ id: 2, result: { to: 'b' } })
  peer.say({ id: 1, result: { to: 'a' } })
  expect([JSON.parse(String((await first).result)), JSON.parse(String((await second).result))]).toEqual([
    { to: 'a' },
    { to: 'b' },
  ])
})

test.each<[string, object, boolean]>([
  ['has no id', { result: {} }, true],
  ['has the id null', { id: null, error: { code: -32600, message: 'Invalid request' } }, true],
  ['has the id of no request', { id: 2, result: {} }, true],
  ['has another kind of id', { id: 'abc', result: {} }, true],
  ['comes after its request was cancelled', { id: 1, result: {} }, false],
  ['is a log line', { jsonrpc: undefined, level: 'info' }, false],
])('V6: whether a response that %s is a finding', async (_, message, expected) => {
  const found: LimitExceeded[] = []
  const { transport, say } = scriptedPeer({})
  const exceeded = (limit: LimitExceeded) => void found.push(limit)
  const connection = await RpcConnection.open(transport, { server: 's', owned: false, exceeded, log: silentLog }, never)
  const cancelled = AbortSignal.abort()
  const controller = new AbortController()
  const request = connection.request(ask('a', controller.signal)).catch(() => {})
  controller.abort(cancelled.reason)
  await request
  say(message)
  expect(found).toMatchObject(expected ? [{ kind: 'unusable-response' }] : [])
})

test.each([[undefined], [1]])(
  'B2: a response may have its id as a string; on the stream of request %s',
  async (stream) => {
    const { connection, peer } = await open({})
    const first = connection.request(ask('a'))
    const second = connection.request(ask('b'))
    peer.say({ id: '1', result: { to: 'a' } }, stream)
    peer.say({ id: '2', error: { code: 1, message: 'no' } }, stream && 2)
    expect(JSON.parse(String((await first).result))).toEqual({ to: 'a' })
    await expect(second).rejects.toBeInstanceOf(ServerError)
  },
)

test.each(['01', '1.0', ' 1', '3', 'x'])('G3: a response with the id %j answers no request', async (id) => {
  const { connection, peer } = await open({})
  const first = connection.request(ask('a'))
  peer.say({ id, result: {} })
  peer.say({ id: 1, result: { to: 'a' } })
  expect(JSON.parse(String((await first).result))).toEqual({ to: 'a' })
})

test('J3: a result that exceeds a limit of ours is not a failure of the server', async () => {
  const nested = Array.from({ length: 300 }).reduce((inner) => ({ inner }), {})
  const { connection } = await open({ deep: () => nested })
  const thrown = await connection.request(ask('deep')).catch((thrown: unknown) => thrown)
  expect(thrown).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { requestOnly: true } })
})

test('V6: if a message that is too long ends a connection with several requests, none of them is blamed for it', async () => {
  const { connection } = await open({})
  const limit = new ToolwayError('OUTCOME_UNKNOWN', 'Too long.', { cause: new LimitExceeded('large-message', 1) })
  const both = [connection.request(ask('tools/call')), connection.request(ask('tools/call'))]
  connection.abandon(limit)
  for (const request of both) {
    const thrown = await request.catch((thrown: unknown) => thrown)
    expect(thrown).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { requestOnly: true } })
    expect(LimitExceeded.in(thrown)).toBeUndefined()
  }
})

test('F10: cancelling a request sends its id to the server, and a late response is dropped', async () => {
  const { connection, peer } = await open({})
  const caller = new AbortController()
  const answer = connection.request(ask('tools/call', caller.signal))
  await nextTurn()
  caller.abort(new Error('enough'))
  await expect(answer).rejects.toThrow('enough')
  expect(peer.heard.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 1 } })
  peer.say({ id: 1, result: {} })
  peer.say({ id: 'stranger', result: {} })
})

test('F12: when the connection is lost every pending request fails, later ones at once', async () => {
  const { connection, peer } = await open({})
  let closed = ''
  connection.onClosed = (error) => {
    closed = error.message
  }
  const pending = [connection.request(ask('a')), connection.request(ask('b'))]
  peer.die('The process ended with code 1.')
  for (const request of pending) await expect(request).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await expect(connection.request(ask('c'))).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  expect(closed).toBe('The process ended with code 1.')
})

test('V4: progress that only we asked for restarts the time of its request, and reaches no caller', async () => {
  const { connection, peer } = await open({})
  const seen: unknown[] = []
  let restarts = 0
  const progressed = () => void restarts++
  const asked = connection.request({ ...ask('a'), peer: hearing('a', seen), ownProgress: true, progressed })
  const wanted = connection.request({ ...ask('b'), peer: hearing('b', seen), progressed })
  peer.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
  peer.say({ method: 'notifications/progress', params: { progressToken: 2, progress: 2 } })
  peer.say({ id: 1, result: {} })
  peer.say({ id: 2, result: {} })
  await Promise.all([asked, wanted])
  expect({ restarts, seen }).toEqual({ restarts: 2, seen: [['b', 2]] })
})

test('B2: progress reaches the request whose token it carries, and no other', async () => {
  const { connection, peer } = await open({})
  const seen: unknown[] = []
  const first = connection.request({ ...ask('a'), peer: hearing('a', seen) })
  const second = connection.request({ ...ask('b'), peer: hearing('b', seen) })
  peer.say({ method: 'notifications/progress', params: { progressToken: 2, progress: 1 } })
  peer.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 2 } })
  peer.say({ method: 'notifications/progress', params: { progressToken: 99, progress: 3 } })
  peer.say({ id: 1, result: {} })
  peer.say({ id: 2, result: {} })
  await Promise.all([first, second])
  peer.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 4 } })
  expect(seen).toEqual([
    ['b', 1],
    ['a', 2],
  ])
})

test('B2: a ping of the server is answered; a request for an undeclared capability is refused', async () => {
  const { peer } = await open({})
  peer.say({ id: 'p', method: 'ping' })
  peer.say({ id: 7, method: 'sampling/createMessage', params: {} })
  expect(peer.heard).toMatchObject([
    { id: 'p', result: {} },
    { id: 7, error: { code: -32603 } },
  ])
})

test('security: the number of responses to a server that does not read them is limited', async () => {
  const taken = Promise.withResolvers<void>()
  const { connection, peer } = await open({})
  connection.transport.send = ({ body }) => {
    peer.heard.push(JSON.parse(String(body)))
    return taken.promise
  }
  for (let id = 0; id < 1_000; id++) peer.say({ id, method: id % 2 ? 'ping' : 'roots/list' })
  expect(peer.heard).toHaveLength(64)
  taken.resolve()
  await nextTurn()
  peer.say({ id: 'p', method: 'ping' })
  expect(peer.heard).toHaveLength(65)
})

test('messages that are not JSON-RPC are ignored', async () => {
  const { connection, peer } = await open({ ping: () => ({}) })
  peer.say({ nonsense: true })
  peer.say({ id: 1, method: 5 })
  await expect(connection.request(ask('ping'))).resolves.toBeDefined()
})

const named = (name: string, log: string[]) =>
  peer({
    logLevel: 'info',
    ask: async (method) => {
      log.push(`${name} asked ${method}`)
      return Json.of({ answer: name })
    },
    notify: (method) => log.push(`${name} told ${method}`),
  })

test('G3: a question reaches the only caller with a call under way, and its answer goes back', async () => {
  const { connection, peer: server } = await open({})
  const log: string[] = []
  const call = connection.request({ ...ask('tools/call'), peer: named('ann', log) })
  server.say({ id: 'q', method: 'sampling/createMessage', params: {} })
  await nextTurn()
  expect(server.heard.at(-1)).toMatchObject({ id: 'q', result: { answer: 'ann' } })
  server.say({ id: 1, result: {} })
  await call
  expect(log).toEqual(['ann asked sampling/createMessage'])
})

test('G3: a question or log message that belongs to no known call is dropped', async () => {
  const { connection, peer: server } = await open({})
  const log: string[] = []
  for (const name of ['ann', 'bob'])
    connection.request({ ...ask('tools/call'), peer: named(name, log) }).catch(() => {})
  server.say({ id: 'q', method: 'elicitation/create', params: {} })
  server.say({ method: 'notifications/message', params: { level: 'info', data: 'x' } })
  await nextTurn()
  expect(log).toEqual([])
  expect(server.heard.at(-1)).toMatchObject({ id: 'q', error: { code: -32603 } })
  await connection[Symbol.asyncDispose]()
})

test('G3: on a line of one caller everything is for that caller, also outside a call', async () => {
  const { connection, peer: server, hosts } = await open({})
  const log: string[] = []
  connection.owned = true
  hosts.push(named('ann', log))
  server.say({ id: 'q', method: 'roots/list' })
  await nextTurn()
  expect(log).toEqual(['ann asked roots/list'])
})

test('G3, F10: while an owner is asked for one of several calls, the times of all of them are paused', async () => {
  const { connection, peer: server, hosts } = await open({})
  connection.owned = true
  const answer = Promise.withResolvers<Json>()
  hosts.push(peer({ ask: () => answer.promise }))
  let paused = 0
  const patient = peer({
    paused: async (work, signal) => {
      paused++
      return await work(signal).finally(() => paused--)
    },
  })
  const calls = [patient, patient, peer({})].map((peer) => connection.request({ ...ask('tools/call'), peer }))
  server.say({ id: 'q', method: 'elicitation/create', params: {} })
  await nextTurn()
  expect(paused).toBe(2)
  answer.resolve(Json.of({ action: 'accept' }))
  await nextTurn()
  expect(paused).toBe(0)
  for (const id of [1, 2, 3]) server.say({ id, result: {} })
  await Promise.all(calls)
})

test('F10: a single call that cannot be asked itself is not paused while its session is asked', async () => {
  const { connection, peer: server, hosts } = await open({})
  connection.owned = true
  let asked = false
  hosts.push(
    peer({
      ask: () => {
        asked = true
        return new Promise(() => {})
      },
    }),
  )
  const gone = () => Promise.reject(new ToolwayError('CANCELLED', 'disconnected'))
  const only = peer({ ask: gone, paused: () => expect.unreachable() })
  const call = connection.request({ ...ask('tools/call'), peer: only })
  server.say({ id: 'q', method: 'elicitation/create', params: {} })
  await nextTurn()
  expect(asked).toBe(true)
  server.say({ id: 1, result: {} })
  await call
})

test('G3: a caller that wants no log messages does not stop those of another', async () => {
  const { connection, peer: server } = await open({})
  const log: string[] = []
  connection.logsByRequest = true
  for (const who of [named('ann', log), { ...named('bob', log), logLevel: undefined }]) {
    connection.request({ ...ask('tools/call'), peer: who }).catch(() => {})
  }
  server.say({ method: 'notifications/message', params: { level: 'info', data: 'x' } })
  expect(log).toEqual(['ann told notifications/message'])
  await connection[Symbol.asyncDispose]()
})

test('G3, V3: calls of a stateless owner take turns, so that each question reaches the call that asks it', async () => {
  const { connection, peer: server } = await open({})
  const clock = createManualClock()
  const log: string[] = []
  connection.owned = true
  connection.turns = new CallTurns(clock, new Map(), takingTurns)
  const answer = Promise.withResolvers<void>()
  const asking = (name: string): Peer => ({
    ...named(name, log),
    rounds: true,
    async ask() {
      log.push(`${name} asked`)
      await answer.promise
      return Json.of({ answer: name })
    },
  })
  const calls = ['ann', 'bob'].map((name) =>
    connection.request({ ...ask('tools/call'), name: 't', peer: asking(name) }),
  )
  await nextTurn()
  expect(server.heard).toHaveLength(1)
  server.say({ id: 'q1', method: 'elicitation/create', params: {} })
  // Ann's call waits for a response to its question, so the next question comes from Bob's call.
  await nextTurn()
  expect(server.heard).toHaveLength(2)
  server.say({ id: 'q2', method: 'elicitation/create', params: {} })
  await nextTurn()
  expect(log).toEqual(['ann asked', 'bob asked'])
  answer.resolve()
  await nextTurn()
  // Only one call continues at a time: the second response is sent when the first call has ended.
  expect(server.heard.slice(2)).toMatchObject([{ id: 'q1', result: { answer: 'ann' } }])
  server.say({ id: 1, result: {} })
  await nextTurn()
  expect(server.heard.slice(3)).toMatchObject([{ id: 'q2', result: { answer: 'bob' } }])
  server.say({ id: 2, result: {} })
  await Promise.all(calls)
  expect(clock.pending).toBe(0)
})

test('V3: a cancelled call does not affect other calls of the same owner', async () => {
  const { connection, peer: server } = await open({})
  const log: string[] = []
  connection.owned = true
  connection.turns = new CallTurns(createManualClock(), new Map(), takingTurns)
  const gone = new AbortController()
  const rounds = (name: string) => ({ ...named(name, log), rounds: true })
  const cancelled = { ...ask('tools/call', gone.signal), name: 't', peer: rounds('ann') }
  connection.request(cancelled).catch(() => {})
  connection.request({ ...ask('tools/call'), name: 't', peer: rounds('bob') }).catch(() => {})
  await nextTurn()
  gone.abort(new Error('enough'))
  await nextTurn()
  server.say({ id: 'q', method: 'elicitation/create', params: {} })
  await nextTurn()
  expect(log).toEqual(['bob asked elicitation/create'])
  expect(server.heard.at(-1)).toMatchObject({ id: 'q', result: { answer: 'bob' } })
  await connection[Symbol.asyncDispose]()
})

test('G3: a question that the server cancels is cancelled at the client', async () => {
  const { connection, peer: server } = await open({})
  let signal: AbortSignal | undefined
  const asked = peer({
    ask: (_, __, given) => {
      signal = given
      return new Promise(() => {})
    },
  })
  connection.request({ ...ask('tools/call'), peer: asked }).catch(() => {})
  server.say({ id: 9, method: 'elicitation/create', params: {} })
  server.say({ method: 'notifications/cancelled', params: { requestId: 9 } })
  expect(signal?.aborted).toBe(true)
  await connection[Symbol.asyncDispose]()
})

test("T2: a client's own error reaches the server unchanged", async () => {
  const { connection, peer: server } = await open({})
  const error = { code: -1, message: 'User rejected', data: { why: 1 } }
  const refusing = peer({ ask: () => Promise.reject(new ServerError(Json.of(error))) })
  connection.request({ ...ask('tools/call'), peer: refusing }).catch(() => {})
  server.say({ id: 9, method: 'sampling/createMessage', params: {} })
  await nextTurn()
  expect(server.heard.at(-1)).toMatchObject({ id: 9, error })
  await connection[Symbol.asyncDispose]()
})

test('B2: notifications with the id of a listen request go to its listener', async () => {
  const { connection, peer: server } = await open({})
  const heard: string[] = []
  const listening = connection.request({
    ...ask('subscriptions/listen'),
    onStreamNotification: (method) => heard.push(method),
  })
  const other: string[] = []
  connection.onNotification = (method) => other.push(method)
  const tagged = (id: unknown) => ({ _meta: { 'io.modelcontextprotocol/subscriptionId': id } })
  server.say({ method: 'notifications/tools/list_changed', params: tagged(1) })
  server.say({ method: 'notifications/tools/list_changed', params: tagged(99) })
  server.say({ method: 'notifications/prompts/list_changed' })
  server.say({ id: 1, result: {} })
  await listening
  expect(heard).toEqual(['notifications/tools/list_changed'])
  expect(other).toEqual(['notifications/tools/list_changed', 'notifications/prompts/list_changed'])
})

test('G3: a question of a cancelled call is not sent to another caller', async () => {
  const { connection, peer: server } = await open({})
  const log: string[] = []
  const gone = new AbortController()
  connection.request({ ...ask('tools/call', gone.signal), peer: named('ann', log) }).catch(() => {})
  await nextTurn()
  gone.abort(new Error('too late'))
  connection.request({ ...ask('tools/call'), peer: named('bob', log) }).catch(() => {})
  server.say({ id: 'q', method: 'elicitation/create', params: {} })
  await nextTurn()
  expect(log).toEqual([])
  server.say({ id: 1, result: {} })
  server.say({ id: 'r', method: 'elicitation/create', params: {} })
  await nextTurn()
  expect(log).toEqual(['bob asked elicitation/create'])
  await connection[Symbol.asyncDispose]()
})

test('V6: at most a thousand cancelled calls without a response are remembered, the latest ones', async () => {
  const { connection, peer: server } = await open({})
  const log: string[] = []
  const gone = new AbortController()
  for (let call = 1; call <= 1_001; call++) {
    connection.request({ ...ask('tools/call', gone.signal), peer: named('ann', log) }).catch(() => {})
  }
  await nextTurn()
  gone.abort(new Error('too late'))
  connection.request({ ...ask('tools/call'), peer: named('bob', log) }).catch(() => {})
  for (let id = 2; id <= 1_001; id++) server.say({ id, result: {} })
  server.say({ id: 'q', method: 'elicitation/create', params: {} })
  await nextTurn()
  expect(log).toEqual(['bob asked elicitation/create'])
  await connection[Symbol.asyncDispose]()
})

test('G3: a question is asked again where the call it was asked through ends first', async () => {
  const { connection, peer: server } = await open({})
  connection.owned = true
  const log: string[] = []
  const over = Promise.withResolvers<Json>()
  connection.request({ ...ask('tools/call'), peer: named('first', log) }).catch(() => {})
  const ends = peer({ ask: () => over.promise })
  connection.request({ ...ask('tools/call'), peer: ends }).catch(() => {})
  server.say({ id: 'q', method: 'elicitation/create', params: {} })
  server.say({ id: 2, result: {} })
  over.reject(new ToolwayError('CANCELLED', 'The call is over.'))
  await nextTurn()
  expect(log).toEqual(['first asked elicitation/create'])
  expect(server.heard.at(-1)).toMatchObject({ id: 'q', result: { answer: 'first' } })
  await connection[Symbol.asyncDispose]()
})

test('F12: calls in flight when the connection is closed may have run', async () => {
  const { connection } = await open({})
  const under = connection.request(ask('tools/call'))
  await connection[Symbol.asyncDispose]()
  await expect(under).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await expect(connection.request(ask('tools/call'))).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
})

const endings: Record<string, (given: Awaited<ReturnType<typeof open>>) => unknown> = {
  'its process ends': ({ peer }) => peer.die(),
  'its connection is abandoned': ({ connection }) =>
    connection.abandon(new ToolwayError('SERVER_UNHEALTHY', 'It hangs.', { unsent: true })),
  'its connection is closed': ({ connection }) => connection[Symbol.asyncDispose](),
  'its response is invalid': ({ peer }) => peer.say({ id: 1, result: null }),
  'its response is lost': ({ peer }) => peer.fail(1),
}

describe.each(Object.entries(endings))('if %s', (_, end) => {
  const outcomeOf = async (method: string) => {
    const given = await open({})
    const failed = given.connection.request(ask(method)).catch((thrown: unknown) => thrown as ToolwayError)
    await end(given)
    const { code, message, details } = (await failed) as ToolwayError
    return { code, mayHaveRun: message.includes('may have taken effect'), unsent: details.unsent }
  }

  test.each(['tools/call', 'tasks/cancel', 'tasks/update'])('F12: %s may have taken effect', async (method) => {
    expect(await outcomeOf(method)).toEqual({ code: 'OUTCOME_UNKNOWN', mayHaveRun: true, unsent: undefined })
  })

  test.each([
    ...['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'resources/read', 'prompts/get'],
    ...['initialize', 'server/discover', 'ping', 'completion/complete', 'resources/subscribe', 'tasks/get'],
  ])('F12: %s has no effect, so its outcome is not unknown', async (method) => {
    expect(await outcomeOf(method)).toEqual({ code: 'SERVER_UNAVAILABLE', mayHaveRun: false, unsent: undefined })
  })
})

test('an invalid response ends its request instead of letting it wait', async () => {
  const { connection, peer: server } = await open({})
  const answer = connection.request(ask('tools/call'))
  server.say({ id: 1, result: null })
  await expect(answer).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})

test('G3: on the stream of one request, a response to another request is rejected; a malformed notification is ignored', async () => {
  const { connection, peer } = await open({}, { kind: 'http' })
  const first = connection.request(ask('a'))
  const second = connection.request(ask('b'))
  peer.say({ method: 'notifications/message', params: null }, 2)
  peer.say({ id: 2, result: { to: 'b' } }, 1)
  await expect(first).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('another') })
  peer.say({ id: 2, result: { to: 'b', truly: true } }, 2)
  expect(JSON.parse(String((await second).result))).toEqual({ to: 'b', truly: true })
})

test('V1: a notification that MCP does not define is dropped, and a defined one keeps only its members', async () => {
  const { connection, peer: server } = await open({}, { kind: 'http' })
  const seen: unknown[] = []
  const request = connection.request({
    ...ask('tools/call'),
    peer: peer({ notify: (method, params) => seen.push([method, String(params.bytes)]) }),
  })
  server.say({ method: 'notifications/evil', params: { a: 1 } }, 1)
  server.say({ method: 'notifications/message', params: { level: 'info', Level: 'error', data: 1 } }, 1)
  server.say({ method: 'notifications/message', params: { level: 'info', data: 1, later: 2 } }, 1)
  server.say({ id: 1, result: {} }, 1)
  await request
  expect(seen).toEqual([['notifications/message', '{"level":"info","data":1}']])
})

test('V1: a response with two spellings of a member reaches no other call, and fails its own if that is unambiguous', async () => {
  const { connection, peer: server } = await open({})
  const [first, second] = [connection.request(ask('a')), connection.request(ask('b'))]
  server.say({ id: 1, ID: 2, result: { for: 'whom' } })
  server.say({ id: 1, result: { to: 'a' } })
  server.say({ id: 2, result: {}, Result: { to: 'b' } })
  expect(String((await first).result)).toBe('{"to":"a"}')
  await expect(second).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})
