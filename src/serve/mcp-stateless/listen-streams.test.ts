import { afterEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { callOf } from '../../core/call.fixture.ts'
import { Budget, createBudgets } from '../../core/limits/budget.ts'
import { silentLog } from '../../core/log.ts'
import { type Event, events } from '../http/server.fixture.ts'
import { ListenStreams } from './listen-streams.ts'
import { createModernAccess, openStatelessServer, prefix, type Sending } from './stateless.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

const openServer = async () => open.use(await openStatelessServer())
type TestServer = Awaited<ReturnType<typeof openServer>>

async function listen(server: TestServer, notifications: object, sending: Sending = {}) {
  const { body, headers } = await server.post('subscriptions/listen', { notifications }, sending)
  open.defer(() => void body.on('error', () => {}).destroy())
  const stream = events(body)
  const next = async () => (await stream.next()).value as Event
  return { body, headers, next, ended: async () => (await stream.next()).done }
}

const tagged = (id: unknown) => ({ _meta: { [`${prefix}subscriptionId`]: id } })

describe('B2: subscriptions/listen', () => {
  test('the first message lists the subscriptions, and every change follows, tagged with the id of the request', async () => {
    const server = await openServer()
    const wanted = {
      toolsListChanged: true,
      promptsListChanged: true,
      resourcesListChanged: true,
      resourceSubscriptions: ['test://static', 'test://7', 'test://static'],
    }
    const { next, headers } = await listen(server, wanted, { id: 'listen:0' })
    expect(headers).toMatchObject({ 'content-type': 'text/event-stream', connection: 'close' })
    expect(await next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: {
        notifications: { ...wanted, resourceSubscriptions: ['test://static', 'test://7'] },
        ...tagged('listen:0'),
      },
    })
    server.access.change('tool', 'template', 'resource')
    server.access.change('prompt')
    server.access.update('test://7')
    const heard = [await next(), await next(), await next(), await next()]
    expect(heard.map(({ method }) => method)).toEqual([
      'notifications/tools/list_changed',
      'notifications/resources/list_changed',
      'notifications/prompts/list_changed',
      'notifications/resources/updated',
    ])
    expect(heard.map(({ params }) => params)).toEqual([
      tagged('listen:0'),
      tagged('listen:0'),
      tagged('listen:0'),
      { uri: 'test://7', ...tagged('listen:0') },
    ])
  })

  test('only requested changes are sent; several streams are independent', async () => {
    const server = await openServer()
    const tools = await listen(server, { toolsListChanged: true, promptsListChanged: false }, { id: 7 })
    const prompts = await listen(server, { promptsListChanged: true }, { id: '7' })
    expect((await tools.next()).params.notifications).toEqual({ toolsListChanged: true })
    await prompts.next()
    server.access.change('prompt', 'resource')
    server.access.change('tool')
    expect(await tools.next()).toMatchObject({ method: 'notifications/tools/list_changed', params: tagged(7) })
    expect(await prompts.next()).toMatchObject({ method: 'notifications/prompts/list_changed', params: tagged('7') })
  })

  test('G3: a stream does not report changes of lists that only another session sees', async () => {
    const server = await openServer()
    const notifications = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['test://7'] }
    const { next } = await listen(server, notifications)
    await next()
    server.access.changeFor('of another client', 'tool')
    server.access.changeFor(server.access.followed[0]?.caller.session ?? '', 'prompt')
    expect(await next()).toMatchObject({ method: 'notifications/prompts/list_changed' })
  })

  test('only what can be followed is honoured, as the caller that asks for it', async () => {
    const server = await openServer()
    const resourceSubscriptions = ['nothing://here', 'test://refused', 'test://static', 'x'.repeat(9_000)]
    const { next } = await listen(server, { resourceSubscriptions, taskIds: ['t'] }, { capabilities: { roots: {} } })
    expect((await next()).params.notifications).toEqual({ resourceSubscriptions: ['test://static'] })
    const [followed, ...others] = server.access.followed
    expect(others).toEqual([])
    expect(followed).toMatchObject({
      uri: 'test://static',
      caller: { principal: 'token', capabilities: { roots: {} } },
    })
  })

  test('a stream on which nothing will come ends at once', async () => {
    const server = await openServer()
    for (const wanted of [{}, { toolsListChanged: false }, { resourceSubscriptions: ['nothing://here'] }]) {
      const { next, ended } = await listen(server, wanted, { id: 3 })
      expect((await next()).params.notifications).toEqual({})
      expect(await next()).toMatchObject({ id: 3, result: { resultType: 'complete' } })
      expect(await ended()).toBe(true)
    }
    // One stays: the server's own, for the other era.
    expect(server.access.listeners).toBe(1)
  })

  test('the response is always a stream, whatever the client accepts, and is kept alive', async () => {
    const server = await openServer()
    const { next } = await listen(server, { toolsListChanged: true }, { headers: { accept: 'application/json' } })
    await next()
    server.clock.advance(15_000)
    expect((await next()).jsonrpc).toBe(': keep-alive')
  })

  test('a client that goes away leaves nothing behind', async () => {
    const server = await openServer()
    const before = server.clock.pending
    const { body, next } = await listen(server, { toolsListChanged: true, resourceSubscriptions: ['test://static'] })
    await next()
    expect([server.access.followed.length, server.access.listeners]).toEqual([1, 2])
    body.destroy()
    await until(() => server.access.followed.length === 0, { what: 'the end of following' })
    expect([server.access.listeners, server.clock.pending]).toEqual([1, before])
  })

  test('a server that closes says so', async () => {
    const server = await openServer()
    const { next, ended } = await listen(server, { toolsListChanged: true }, { id: 'l' })
    await next()
    const closed = server.server[Symbol.asyncDispose]()
    expect(await next()).toEqual({
      jsonrpc: '2.0',
      id: 'l',
      result: {
        resultType: 'complete',
        _meta: { ...tagged('l')._meta, [`${prefix}serverInfo`]: { name: 'toolway', version: '0.0.0' } },
      },
    })
    expect(await ended()).toBe(true)
    await closed
    expect(server.access.listeners).toBe(0)
  })

  const overloaded = expect.objectContaining({ code: 'OVERLOADED' })
  const start = (limit = 100) => {
    const streamBudget = new Budget('streams', { what: 'streams', limit, perCaller: limit / 2 })
    const budgets = { ...createBudgets(), streams: streamBudget }
    const access = createModernAccess()
    const clock = createManualClock()
    const streams = new ListenStreams({ access, serverInfo: {}, budgets, clock, log: silentLog })
    const heard: string[] = []
    const sink = {
      send: (message: Buffer) => heard.push(JSON.parse(String(message)).method) > 0,
      end: (message: Buffer) => void heard.push(JSON.parse(String(message)).result.resultType),
    }
    const begin = (notifications: object, principal = 'anna') =>
      streams.open({ id: 1, params: { notifications } }, { ...callOf().caller, principal }, sink)
    return { access, clock, streams, heard, begin }
  }

  test('a slow server does not delay the others, and changes in the meantime are sent afterwards', async () => {
    const { access, clock, heard, begin } = start()
    const stuck = Promise.withResolvers<AsyncDisposable>()
    let disposed = 0
    access.subscribe = async (_caller, { uri }, updated) => {
      updated()
      return uri === 'test://static' ? stuck.promise : { [Symbol.asyncDispose]: async () => {} }
    }
    begin({ toolsListChanged: true, resourceSubscriptions: ['test://static', 'test://7'] })
    await new Promise((resolve) => setImmediate(resolve))
    access.change('tool')
    access.change('tool')
    expect(heard).toEqual([])
    await clock.pass(5_000)
    expect(heard).toEqual([
      'notifications/subscriptions/acknowledged',
      'notifications/resources/updated',
      'notifications/tools/list_changed',
    ])
    stuck.resolve({ [Symbol.asyncDispose]: async () => void disposed++ })
    await new Promise((resolve) => setImmediate(resolve))
    expect(disposed).toBe(1)
  })

  test('after the end nothing more is sent', async () => {
    const { access, heard, begin, streams } = start()
    const listening = begin({ toolsListChanged: true })
    listening.cancel()
    await new Promise((resolve) => setImmediate(resolve))
    access.change('tool')
    streams.end()
    expect([heard, access.listeners]).toEqual([[], 0])
  })

  test('B7: one principal holds at most half of the streams, so that others always get theirs', () => {
    const { begin, streams } = start(6)
    const wanted = { toolsListChanged: true }
    const [first] = [begin(wanted), begin(wanted), begin(wanted)]
    expect(() => begin(wanted)).toThrow(overloaded)
    for (let count = 0; count < 3; count++) begin(wanted, 'bert')
    // What ends gives its place back, once.
    first?.cancel()
    first?.cancel()
    begin(wanted)
    expect(() => begin(wanted)).toThrow(overloaded)
    streams.end()
    for (let count = 0; count < 3; count++) begin(wanted)
    expect(() => begin(wanted)).toThrow(overloaded)
  })

  test('B7: an invalid request for a stream does not count towards the limit', () => {
    const { begin } = start(2)
    expect(() => begin({ resourceSubscriptions: 'all' })).toThrow()
    begin({ toolsListChanged: true })
  })

  test('streams are bounded', () => {
    const { begin } = start(2)
    begin({ toolsListChanged: true })
    const second = begin({ toolsListChanged: true }, 'bert')
    expect(() => begin({ toolsListChanged: true }, 'cleo')).toThrow(overloaded)
    second.cancel()
    begin({ toolsListChanged: true }, 'cleo')
    const many = Array.from({ length: 1_001 }, (_, number) => `test://${number}`)
    second.cancel()
    const { begin: beginAnother } = start()
    expect(() => beginAnother({ resourceSubscriptions: many })).toThrow('1000')
  })
})
