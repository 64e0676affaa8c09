import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { until } from '../../tests/fixtures/until.ts'
import { callOf } from '../core/call.fixture.ts'
import { maxMessage } from '../wire/message.ts'
import { createTestAccess, verbatim } from './access.fixture.ts'
import { type Event, info, initializeWith } from './http/server.fixture.ts'
import { metaOf } from './mcp-stateless/stateless.fixture.ts'
import { serveStdio } from './stdio.ts'

function start() {
  const input = new PassThrough()
  const output = new PassThrough({ highWaterMark: 16 * 1024 })
  const access = createTestAccess()
  const clock = createManualClock()
  const { caller } = callOf()
  const served = serveStdio({ input, output, access, info, caller, clock, log: createKeptLog() })
  const lines = linesOf(output)
  return {
    input,
    output,
    access,
    clock,
    served,
    lines,
    send: (message: object) => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    next: async () => JSON.parse((await lines.next()).value ?? '') as Event,
    async initialize(capabilities: object = {}) {
      input.write(`${JSON.stringify(initializeWith(capabilities))}\n`)
      return JSON.parse((await lines.next()).value ?? '') as Event
    },
  }
}

async function* linesOf(output: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let text = ''
  for await (const chunk of output) {
    text += chunk
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      yield text.slice(0, end)
      text = text.slice(end + 1)
    }
  }
}

const called = (id: number, name: string, more: object = {}) => ({
  id,
  method: 'tools/call',
  params: { name, ...more },
})

describe('B2: the legacy era over stdio', () => {
  test('initialises, lists and calls; each answer is one line', async () => {
    const { initialize, send, next, lines, access, input, served } = start()
    expect((await initialize()).result).toMatchObject({
      protocolVersion: '2025-11-25',
      serverInfo: { name: 'toolway' },
    })
    send({ method: 'notifications/initialized' })
    send({ id: 1, method: 'tools/list' })
    expect((await next()).result.tools[0].name).toBe('echo')
    send(called(2, 'verbatim'))
    expect((await lines.next()).value).toBe(`{"jsonrpc":"2.0","id":2,"result":${verbatim}}`)
    send(called(3, 'pretty'))
    expect((await lines.next()).value).toBe('{"jsonrpc":"2.0","id":3,"result":{   "content": []  }}')
    expect(access.calls[0]?.caller).toMatchObject(callOf().caller)
    input.end()
    await served
  })

  test.each([
    ['initialize', initializeWith({})],
    ['server/discover', { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: metaOf() } }],
  ])('V2: %s is answered at once, before servers are ready', async (_, request) => {
    const { access, input, next, served } = start()
    const { view } = access
    let started = false
    const ready = () => {
      started = true
      return new Promise<void>(() => {})
    }
    access.view = (caller) => ({ ...view(caller), ready })
    input.write(`${JSON.stringify(request)}\n`)
    expect((await next()).result).toHaveProperty('capabilities')
    expect(started).toBe(true)
    input.end()
    await served
  })

  test('answers come as they are ready, not as they were asked', async () => {
    const { initialize, send, next, access } = start()
    await initialize()
    send(called(1, 'wait'))
    send(called(2, 'echo'))
    expect((await next()).id).toBe(2)
    access.release()
    expect((await next()).id).toBe(1)
  })

  test('progress comes before the result, and a cancelled call gets no answer', async () => {
    const { initialize, send, next, access } = start()
    await initialize()
    send(called(1, 'wait'))
    send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    send(called(2, 'progress', { _meta: { progressToken: 'p' } }))
    const seen = []
    for (let count = 0; count < 4; count++) seen.push(await next())
    expect(seen.map(({ id, params }) => params?.progress ?? id)).toEqual([1, 2, 3, 2])
    expect(access.calls[0]?.signal.aborted).toBe(true)
  })

  test('the client can be asked, and is notified of changed lists', async () => {
    const { initialize, send, next, access } = start()
    await initialize({ sampling: {} })
    send(called(1, 'ask'))
    const question = await next()
    expect(question.method).toBe('sampling/createMessage')
    send({ id: question.id, result: { model: 'm' } })
    expect((await next()).result.content[0].text).toBe('{"model":"m"}')
    access.change('resource', 'template')
    expect((await next()).method).toBe('notifications/resources/list_changed')
    access.changeFor('of another client', 'tool')
    access.changeFor(access.calls[0]?.caller.session ?? '', 'prompt')
    expect((await next()).method).toBe('notifications/prompts/list_changed')
  })
})

describe('B2: what a legacy session has beside calls, over stdio', () => {
  test('log levels, subscriptions and roots; servers are notified when the client leaves', async () => {
    const { initialize, send, next, access, input, served } = start()
    await initialize({ roots: {} })
    send({ id: 1, method: 'logging/setLevel', params: { level: 'emergency' } })
    expect((await next()).result).toEqual({})
    send(called(2, 'log_all'))
    const heard = [await next(), await next(), await next()]
    expect(heard.map(({ id, params }) => id ?? params.level)).toEqual(['emergency', 'unheard-of', 2])
    send({ id: 3, method: 'resources/subscribe', params: { uri: 'test://7' } })
    expect((await next()).result).toEqual({})
    access.update('test://7')
    expect(await next()).toMatchObject({ method: 'notifications/resources/updated', params: { uri: 'test://7' } })
    send({ method: 'notifications/roots/list_changed' })
    await until(() => access.informed.length === 1, { what: 'the news of the roots' })
    input.end()
    await served
    expect(access.gone).toMatchObject([{ capabilities: { roots: {} } }])
    expect(access.followed).toEqual([])
  })

  test('batches in revision 2025-03-26 alone', async () => {
    for (const [revision, answer] of [
      ['2025-03-26', [{ id: 1, result: {} }, { id: 2 }]],
      ['2025-06-18', { id: null, error: { code: -32600 } }],
    ] as const) {
      const { input, next } = start()
      input.write(`${JSON.stringify(initializeWith({}, revision))}\n`)
      await next()
      const batch = [{ id: 1, method: 'ping' }, { method: 'notifications/initialized' }, called(2, 'echo')]
      input.write(`${JSON.stringify(batch.map((message) => ({ jsonrpc: '2.0', ...message })))}\n`)
      expect(await next()).toMatchObject(answer)
    }
  })
})

describe('E1: bad input over stdio', () => {
  test('gets a clear error and harms nothing that follows', async () => {
    const { initialize, input, next, send } = start()
    await initialize()
    for (const [line, code] of [
      ['{"jsonrpc":', -32700],
      ['garbage', -32700],
      ['[]', -32600],
      ['{"id":1}', -32600],
    ] as const) {
      input.write(`${line}\n`)
      expect(await next()).toMatchObject({ jsonrpc: '2.0', error: { code } })
    }
    input.write('\r\n  \n')
    send({ id: 9, method: 'ping' })
    expect(await next()).toEqual({ jsonrpc: '2.0', id: 9, result: {} })
    send({ id: 10, method: 'tools/nothing' })
    expect((await next()).error?.code).toBe(-32601)
  })

  test('a line over the limit is dropped and answered with id null', async () => {
    const { initialize, input, next, send } = start()
    await initialize()
    const piece = Buffer.alloc(1024 * 1024, 0x78)
    for (let written = 0; written <= maxMessage; written += piece.length) input.write(piece)
    input.write('\n')
    expect(await next()).toMatchObject({
      id: null,
      error: { code: -32600, message: expect.stringContaining('longer') },
    })
    send({ id: 2, method: 'ping' })
    expect((await next()).id).toBe(2)
  })

  test('before initialize only a ping is answered, and a second initialize is refused', async () => {
    const { initialize, next, send } = start()
    send({ id: 1, method: 'tools/list' })
    expect((await next()).error).toMatchObject({ code: -32600, message: expect.stringContaining('initialize') })
    send({ id: 2, method: 'ping' })
    expect((await next()).result).toEqual({})
    send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    send({ id: 3, method: 'initialize', params: {} })
    expect((await next()).error?.code).toBe(-32602)
    expect((await initialize()).result).toBeDefined()
    expect((await initialize()).error?.code).toBe(-32600)
  })
})

describe('the end of a stdio client', () => {
  test('calls in flight may finish when the input ends', async () => {
    const { initialize, send, input, access, next, served, clock } = start()
    await initialize()
    send(called(1, 'wait'))
    await until(() => access.calls.length === 1, { what: 'the call' })
    input.end()
    await clock.pass(1_000)
    access.release()
    expect((await next()).result.content[0].text).toBe('waited')
    await served
    expect([clock.pending, access.listeners]).toEqual([0, 0])
  })

  test('after the grace time they are cancelled, even if they do not listen', async () => {
    const { initialize, send, input, access, served, clock } = start()
    await initialize()
    send(called(1, 'wait'))
    send(called(2, 'deaf'))
    await until(() => access.calls.length === 2, { what: 'the calls' })
    input.end()
    await clock.pass(1_999)
    expect(access.calls[0]?.signal.aborted).toBe(false)
    await clock.pass(1)
    await served
    expect(access.calls.map(({ signal }) => signal.aborted)).toEqual([true, true])
    expect([clock.pending, access.listeners]).toEqual([0, 0])
  })

  test('a reader that goes away ends it at once', async () => {
    const { initialize, send, output, access, served } = start()
    await initialize()
    send(called(1, 'wait'))
    await until(() => access.calls.length === 1, { what: 'the call' })
    output.destroy()
    await served
    expect(access.calls[0]?.signal.aborted).toBe(true)
  })

  test('the last line is read even without a line break', async () => {
    const { initialize, input, next, served } = start()
    await initialize()
    input.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }))
    expect((await next()).id).toBe(1)
    await served
  })

  test('B7: while responses are not read, no more requests are read', async () => {
    const { initialize, send, input, access, next } = start()
    await initialize()
    send(called(1, 'large', { arguments: { size: 1024 * 1024 } }))
    await until(() => access.calls.length === 1 && input.isPaused(), { what: 'the input to pause' })
    send(called(2, 'echo'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(access.calls).toHaveLength(1)
    expect((await next()).id).toBe(1)
    expect((await next()).id).toBe(2)
  })
})
