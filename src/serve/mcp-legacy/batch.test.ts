import { setImmediate as iteration } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import type { ResponseChannel } from '../calls/operations.ts'
import { type Answer, events, openTestServer } from '../http/server.fixture.ts'
import { answerBatch } from './protocol.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

async function openSession(revision = '2025-03-26', capabilities: object = {}) {
  const server = open.use(await openTestServer())
  const session = await server.session(capabilities, {}, revision)
  const post = (...messages: unknown[]) => server.fetchRaw({ body: messages.map(whole), headers: session.headers })
  return { ...server, ...session, post }
}

const whole = (message: unknown) =>
  typeof message === 'object' && message !== null ? { jsonrpc: '2.0', ...message } : message
const called = (id: number, name: string, more: object = {}) => ({
  id,
  method: 'tools/call',
  params: { name, ...more },
})

describe('B2: batches of revision 2025-03-26', () => {
  test('are answered in one array, without entries for notifications', async () => {
    const { post, access } = await openSession()
    const { statusCode, body } = await post(
      called(1, 'echo'),
      { method: 'notifications/roots/list_changed' },
      { id: 'two', method: 'ping' },
      called(3, 'nothing'),
      { id: 4 },
      7,
    )
    expect(statusCode).toBe(200)
    expect(await body.json()).toMatchObject([
      { id: 1, result: { content: [{ text: '{}' }] } },
      { id: 'two', result: {} },
      { id: 3, error: { code: -32602 } },
      { id: 4, error: { code: -32600 } },
      { id: null, error: { code: -32600 } },
    ])
    expect(access.informed).toHaveLength(1)
  })

  test('of notifications and responses only get a 202 without a body', async () => {
    const { post, access } = await openSession()
    const { statusCode, body } = await post(
      { method: 'notifications/roots/list_changed' },
      { id: 'ask-1', result: {} },
      { method: 'notifications/initialized' },
    )
    expect([statusCode, await body.text()]).toEqual([202, ''])
    expect(access.informed).toHaveLength(1)
  })

  test('become a stream where something must be said before, with one event for each answer', async () => {
    const { post } = await openSession()
    const { body, headers } = await post(
      called(1, 'progress', { _meta: { progressToken: 'p' } }),
      { id: 2, method: 'ping' },
      { id: 3, method: 'ping' },
    )
    expect(headers['content-type']).toBe('text/event-stream')
    const seen = (await Array.fromAsync(events(body))).map(({ id, params }) => params?.progress ?? id)
    expect(seen).toEqual([1, 2, 3, 1, 2, 3])
  })

  test('can ask their client, and continue without cancelled calls', async () => {
    const { post, send, access } = await openSession('2025-03-26', { sampling: {} })
    const { body } = await post(called(1, 'ask'), called(2, 'deaf'), called(3, 'wait'))
    const heard = events(body)
    const question = (await heard.next()).value
    await send({ id: question?.id, result: { model: 'm' } })
    await send({ method: 'notifications/cancelled', params: { requestId: 2 } })
    access.release()
    expect((await heard.next()).value).toMatchObject({ id: 1, result: {} })
    expect((await heard.next()).value).toMatchObject({ id: 3, result: {} })
    expect((await heard.next()).done).toBe(true)
  })

  test('are cancelled as a whole when their client goes away before there was an answer', async () => {
    const { fetchRaw, headers, access } = await openSession()
    const leaving = new AbortController()
    const body = [called(1, 'wait'), called(2, 'wait')].map(whole)
    const pending = fetchRaw({ body, headers, signal: leaving.signal })
    await until(() => access.calls.length === 2, { what: 'the calls' })
    leaving.abort()
    await expect(pending).rejects.toThrow()
    await until(() => access.calls.every(({ signal }) => signal.aborted), { what: 'the cancellation' })
  })

  test('that are empty, too large or no JSON are refused', async () => {
    const { post, raw, headers } = await openSession()
    const pings = Array.from({ length: 101 }, (_, id) => ({ id, method: 'ping' }))
    for (const messages of [[], pings]) {
      const { statusCode, body } = await post(...messages)
      expect([statusCode, ((await body.json()) as Answer).error?.code]).toEqual([400, -32600])
    }
    const brokenString = '[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo\n"}}]'
    for (const body of ['[{"jsonrpc":"2.0"', brokenString]) {
      expect((await raw({ body, headers })).json?.error?.code).toBe(-32700)
    }
  })

  test.each(['2025-11-25', '2025-06-18', '2024-11-05'])('are refused in %s', async (revision) => {
    const { post } = await openSession(revision)
    const { statusCode, body } = await post({ id: 1, method: 'ping' })
    expect(statusCode).toBe(400)
    expect(await body.json()).toMatchObject({
      error: { code: -32600, message: expect.stringContaining('batches are not supported') },
    })
  })

  test('of a session that is over are a 404', async () => {
    const { raw } = await openSession()
    const body = [{ jsonrpc: '2.0', id: 1, method: 'ping' }]
    expect((await raw({ body, headers: { 'mcp-session-id': 'unknown' } })).status).toBe(404)
  })
})

test.each([
  [0, 'at least one'],
  [101, 'at most 100'],
])('B2: the refusal of a batch of %i messages says that it may have %s', async (count, limit) => {
  const { post } = await openSession()
  const { statusCode, body } = await post(...Array.from({ length: count }, (_, id) => ({ id, method: 'ping' })))
  expect([statusCode, await body.json()]).toMatchObject([
    400,
    { id: null, error: { code: -32600, message: expect.stringContaining(limit) } },
  ])
})

describe('V6: of a batch of a hundred requests', () => {
  const outlet: ResponseChannel = { owner: undefined, send: () => true, abandon() {} }

  /** Begins a batch whose requests are answered with so many bytes, or never. `begun` lists their ids. */
  function begin(size?: number) {
    const begun: unknown[] = []
    const protocol = {
      request: (_session: unknown, { id }: { id: unknown }) => {
        begun.push(id)
        return size === undefined ? new Promise(() => {}) : Promise.resolve({ message: [Buffer.alloc(size, 'x')] })
      },
      leftOut: ({ id }: { id: unknown }) => ({ message: [Buffer.from(`left out ${id}`)] }),
    }
    const batch = Array.from({ length: 100 }, (_, id) => ({ kind: 'request', id, method: 'ping', params: {} }))
    const end = new AbortController()
    const turn = () => iteration()
    const options = { protocol, session: { ended: end.signal }, batch, outlet, caller: {}, turn, malformed() {} }
    return { begun, end, answers: answerBatch(options as never) }
  }

  test('each begins in a turn of its caller', async () => {
    const { begun, answers } = begin(1)
    expect(begun).toHaveLength(0)
    while (begun.length < 100) {
      const before = begun.length
      await iteration()
      expect(begun.length - before).toBeLessThanOrEqual(1)
    }
    expect(await answers).toHaveLength(100)
  })

  test('no more begin after the end of their session', async () => {
    const { begun, end } = begin()
    await iteration()
    end.abort()
    const count = begun.length
    for (let turn = 0; turn < 5; turn++) await iteration()
    expect(begun).toHaveLength(count)
  })

  test('no more begin after it was cancelled', async () => {
    const { begun } = begin()
    await iteration()
    outlet.owner?.cancel()
    const count = begun.length
    expect(count).toBeLessThan(100)
    for (let turn = 0; turn < 5; turn++) await iteration()
    expect(begun).toHaveLength(count)
  })

  test('responses beyond 16 MiB in total are replaced with errors', async () => {
    const MiB = 1024 * 1024
    const answers = await begin(MiB).answers
    expect(answers.filter(({ length }) => length === MiB)).toHaveLength(16)
    expect(answers.filter((answer) => answer.includes('left out'))).toHaveLength(84)
  })
})

test('V6: a request whose response is too large for its batch may have run', async () => {
  const { post } = await openSession()
  const size = 9 * 1024 * 1024
  const { body } = await post(...[1, 2].map((id) => called(id, 'large', { arguments: { size } })))
  const [first, second] = (await body.json()) as Answer[]
  expect(first?.result).not.toHaveProperty('isError')
  expect(second?.result).toMatchObject({ isError: true, _meta: { 'dev.toolway/error': { code: 'OUTCOME_UNKNOWN' } } })
})
