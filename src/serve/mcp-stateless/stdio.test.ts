import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { callOf } from '../../core/call.fixture.ts'
import { createLineReader } from '../../wire/bytes.ts'
import { verbatim } from '../access.fixture.ts'
import { type Event, info, initializeWith } from '../http/server.fixture.ts'
import { serveStdio } from '../stdio.ts'
import { createModernAccess, type Envelope, metaOf, prefix } from './stateless.fixture.ts'

function start() {
  const input = new PassThrough()
  const output = new PassThrough()
  const access = createModernAccess()
  const clock = createManualClock()
  const { caller } = callOf()
  const served = serveStdio({ input, output, access, info, caller, clock, log: createKeptLog() })
  const lines: string[] = []
  const reader = createLineReader({ maxLength: 1e6, line: (bytes) => void lines.push(String(bytes)), tooLong() {} })
  output.on('data', (chunk: Buffer) => reader.push(chunk))
  const write = (message: object) => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const next = () => until(() => lines.shift(), { what: 'a line' })
  return {
    access,
    clock,
    lines,
    write,
    send: (id: number | string, method: string, params: object = {}, envelope?: Envelope) =>
      write({ id, method, params: { ...params, _meta: metaOf(envelope) } }),
    call: (id: number | string, name: string, envelope?: Envelope, more: object = {}) =>
      write({ id, method: 'tools/call', params: { name, ...more, _meta: metaOf(envelope) } }),
    cancel: (requestId: unknown, claimed = true) =>
      write({ method: 'notifications/cancelled', params: { requestId, ...(claimed && { _meta: metaOf() }) } }),
    line: next,
    next: async () => JSON.parse(await next()) as Event,
    async end() {
      input.end()
      await served
    },
  }
}

describe('B2: the stateless era over stdio', () => {
  test('needs no initialize; each answer is one line', async () => {
    const { send, call, next, line, end, access } = start()
    send('d', 'server/discover')
    expect(await next()).toMatchObject({ id: 'd', result: { supportedVersions: ['2026-07-28'] } })
    call(1, 'verbatim')
    expect(await line()).toBe(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",${verbatim.slice(1)}}`)
    expect(access.calls[0]?.caller).toEqual({
      ...callOf().caller,
      session: expect.stringMatching(/^modern-/),
      capabilities: {},
      client: 'by hand',
    })
    await end()
    expect(access.gone).toMatchObject([{ session: access.calls[0]?.caller.session }])
  })

  test('each message is of its own era', async () => {
    const { send, write, next, end } = start()
    send(1, 'tools/list')
    expect((await next()).result.resultType).toBe('complete')
    write({ id: 2, method: 'tools/list' })
    expect((await next()).error?.code).toBe(-32600)
    write(initializeWith())
    expect((await next()).result.protocolVersion).toBe('2025-11-25')
    write({ id: 3, method: 'tools/list' })
    expect((await next()).result).not.toHaveProperty('resultType')
    send(4, 'tools/list')
    expect((await next()).result.resultType).toBe('complete')
    await end()
  })

  test.each([
    ['a claim without capabilities', 'tools/list', { [`${prefix}clientCapabilities`]: undefined }, -32602],
    ['a claim that is no text', 'tools/list', { [`${prefix}protocolVersion`]: {} }, -32602],
    ['an unknown version', 'tools/list', { [`${prefix}protocolVersion`]: '2099-01-01' }, -32022],
    ['a method of the other era', 'initialize', {}, -32601],
    ['a method nobody knows', 'unknown/method', {}, -32601],
    ['a stream without a filter', 'subscriptions/listen', {}, -32602],
  ])('%s is refused', async (_what, method, meta, code) => {
    const { send, next, end } = start()
    send('x', method, {}, { meta })
    expect(await next()).toMatchObject({ id: 'x', error: { code } })
    await end()
  })

  test('an id in flight cannot be used again; number and string differ', async () => {
    const { call, next, access, end } = start()
    call(1, 'wait')
    call(1, 'echo')
    expect(await next()).toMatchObject({ id: 1, error: { code: -32600 } })
    call('1', 'echo')
    expect((await next()).id).toBe('1')
    access.release()
    expect(await next()).toMatchObject({ id: 1, result: { resultType: 'complete' } })
    await end()
  })

  test.each([true, false])(
    'a cancelled call is not answered, and its id is free again (claimed: %s)',
    async (claimed) => {
      const { call, cancel, next, access, end, lines } = start()
      call(7, 'wait')
      await until(() => access.calls[0], { what: 'the call' })
      cancel(7, claimed)
      await until(() => access.calls[0]?.signal.aborted, { what: 'the cancellation' })
      call(7, 'echo')
      expect(await next()).toMatchObject({ id: 7, result: { content: [{ text: '{}' }] } })
      await end()
      expect(lines).toEqual([])
    },
  )

  test('progress has the token of its request', async () => {
    const { call, next, end } = start()
    call(1, 'progress', { progressToken: 't' }, { arguments: { steps: 1 } })
    expect(await next()).toMatchObject({ method: 'notifications/progress', params: { progressToken: 't' } })
    expect((await next()).id).toBe(1)
    await end()
  })

  test('a question in mid-call is answered by the next request', async () => {
    const { call, next, end } = start()
    const capable = { capabilities: { roots: {} } }
    const args = { arguments: { questions: [{ method: 'roots/list' }] } }
    call(1, 'ask_all', capable, args)
    const { requestState } = (await next()).result
    call(2, 'ask_all', capable, { ...args, requestState, inputResponses: { q1: { roots: [] } } })
    expect(await next()).toMatchObject({ id: 2, result: { content: [{ text: '[{"roots":[]}]' }] } })
    call(3, 'ask_all', {}, args)
    expect(await next()).toMatchObject({ id: 3, error: { code: -32021 } })
    await end()
  })

  test('listens until it is cancelled, or the line ends', async () => {
    const { send, cancel, next, access, end } = start()
    send('a', 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    send('b', 'subscriptions/listen', {
      notifications: { toolsListChanged: true, resourceSubscriptions: ['test://1'] },
    })
    const acknowledged = [await next(), await next()]
    expect(acknowledged.map(({ params }) => params._meta[`${prefix}subscriptionId`])).toEqual(['a', 'b'])
    access.change('tool')
    expect([(await next()).params, (await next()).params]).toMatchObject([
      { _meta: { [`${prefix}subscriptionId`]: 'a' } },
      { _meta: { [`${prefix}subscriptionId`]: 'b' } },
    ])
    send('a', 'subscriptions/listen', { notifications: {} })
    expect((await next()).error?.code).toBe(-32600)
    cancel('a')
    send('after', 'server/discover')
    expect((await next()).id).toBe('after')
    access.change('tool')
    expect((await next()).params._meta[`${prefix}subscriptionId`]).toBe('b')
    await end()
    expect(await next()).toMatchObject({ id: 'b', result: { resultType: 'complete' } })
    await until(() => access.followed.length === 0, { what: 'the end of following' })
    expect(access.listeners).toBe(0)
  })

  test('when the input ends, calls that wait for an answer are cancelled', async () => {
    const { call, next, access, clock, end } = start()
    call(1, 'ask_all', { capabilities: { roots: {} } }, { arguments: { questions: [{ method: 'roots/list' }] } })
    await next()
    await end()
    expect([access.calls[0]?.signal.aborted, clock.pending]).toEqual([true, 0])
  })
})
