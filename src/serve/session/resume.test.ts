import type { Readable } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import type { Membership } from '../../core/cluster.ts'
import { events, openTestServer, type RawEvent, rawEvents } from '../http/server.fixture.ts'
import { commentEveryMs, maxUnread } from '../http/sse-stream.ts'
import { absenceMs } from './resumable-streams.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const openServer = async (settings?: Parameters<typeof openTestServer>[0]) => open.use(await openTestServer(settings))
const called = (name: string, more: object = {}) => ({ id: 1, method: 'tools/call', params: { name, ...more } })
const dataOf = ({ data = '' }: RawEvent) => JSON.parse(data)
const next = async (stream: AsyncGenerator<RawEvent>) => (await stream.next()).value as RawEvent

/** Reads so many events and then loses the connection, with whatever may still have been on its way. */
async function lose(body: Readable, count: number): Promise<RawEvent[]> {
  const stream = rawEvents(body.on('error', () => {}))
  const seen: RawEvent[] = []
  while (seen.length < count) seen.push(await next(stream))
  body.destroy()
  return seen
}

describe('B2: an answer that has become a stream', () => {
  test('begins with an id, no message and a retry time; every event has its own id', async () => {
    const { session } = await openServer()
    const { send } = await session()
    const seen: RawEvent[] = []
    for (const id of [1, 2]) {
      const { body } = await send({ ...called('progress', { _meta: { progressToken: 7 } }), id })
      seen.push(...(await Array.fromAsync(rawEvents(body))))
    }
    expect(seen[0]).toEqual({ id: expect.stringMatching(/./), retry: '1000', data: '' })
    expect(seen).toHaveLength(10)
    expect(new Set(seen.map(({ id }) => id)).size).toBe(10)
  })

  test('has no retry time for clients in Java, whose SDK 1.x fails on it, on any of its streams', async () => {
    const { session } = await openServer()
    const { send, stream } = await session({}, { 'user-agent': 'Java-http-client/17.0.15' })
    const { body } = await send(called('progress', { _meta: { progressToken: 7 } }))
    const seen = await Array.fromAsync(rawEvents(body))
    const [listening] = await lose((await stream()).body, 1)
    expect([seen[0], listening]).toEqual(Array(2).fill({ id: expect.stringMatching(/./), data: '' }))
    expect(seen.filter(({ retry }) => retry !== undefined)).toEqual([])
  })

  test.each(['2025-06-18', '2025-03-26', '2024-11-05'])(
    'has no empty event for clients of %s, which might fail on it, and can be resumed nevertheless',
    async (revision) => {
      const { session, access } = await openServer()
      const { send, stream } = await session({}, {}, revision)
      const { body } = await send(called('start'))
      const [first] = await lose(body, 1)
      expect(dataOf(first as RawEvent)).toMatchObject({ params: { data: 'begun' } })
      access.release()
      const rest = (await Array.fromAsync(rawEvents((await stream(first?.id)).body))).map(dataOf)
      expect(rest).toMatchObject([{ params: { data: 'ending' } }, { id: 1, result: {} }])
    },
  )

  test('is resumed where it was lost: the call continues, nothing is lost or repeated, and the response ends it', async () => {
    const { session, access } = await openServer()
    const { send, stream } = await session()
    const seen = await lose((await send(called('start'))).body, 2)
    const { body, headers, statusCode } = await stream(seen[1]?.id)
    expect([statusCode, headers['content-type']]).toEqual([200, 'text/event-stream'])
    access.release()
    const rest = (await Array.fromAsync(rawEvents(body))).filter(({ data }) => data)
    expect(rest.map(dataOf)).toMatchObject([
      { method: 'notifications/message', params: { data: 'ending' } },
      { id: 1, result: { content: [{ text: 'finished' }] } },
    ])
    expect(access.calls[0]?.signal.aborted).toBe(false)
  })

  test('can be resumed after the response; a client that has received all of it gets a 204', async () => {
    const { session, access } = await openServer()
    const { send, stream } = await session()
    const [primed] = await lose((await send(called('start'))).body, 1)
    await until(() => access.calls.length === 1, { what: 'the call' })
    access.release()
    for (let time = 0; time < 2; time++) {
      const seen = await Array.fromAsync(rawEvents((await stream(primed?.id)).body))
      expect(seen.filter(({ data }) => data).map(dataOf)).toMatchObject([
        { params: { data: 'begun' } },
        { params: { data: 'ending' } },
        { id: 1, result: {} },
      ])
      const over = await stream(seen.at(-1)?.id)
      expect([over.statusCode, await over.body.text()]).toEqual([204, ''])
    }
  })

  test('has only its own messages: other streams of the session are not replayed on it', async () => {
    const { session, access } = await openServer()
    const { send, stream } = await session()
    const [first] = await lose((await send(called('start'))).body, 1)
    await (await send({ ...called('log'), id: 2 })).body.dump()
    access.change('tool')
    access.release()
    const seen = (await Array.fromAsync(rawEvents((await stream(first?.id)).body))).filter(({ data }) => data)
    expect(seen.map(dataOf).map(({ id, params }) => id ?? params?.data)).toEqual(['begun', 'ending', 1])
  })

  test('that began in silence can be resumed too', async () => {
    const { session, access, clock } = await openServer()
    const { send, stream } = await session()
    const pending = send(called('wait'))
    await until(() => access.calls.length === 1, { what: 'the call' })
    clock.advance(commentEveryMs)
    const [primed] = await lose((await pending).body, 1)
    access.release()
    const [answer] = await Array.fromAsync(events((await stream(primed?.id)).body))
    expect(answer).toMatchObject({ id: 1, result: { content: [{ text: 'waited' }] } })
  })

  test('keeps what a call asks of its client until it is back', async () => {
    const { session } = await openServer()
    const { send, stream } = await session({ sampling: {} })
    const [primed] = await lose((await send(called('ask'))).body, 1)
    const { body } = await stream(primed?.id)
    const heard = events(body)
    const question = (await heard.next()).value
    expect(question?.method).toBe('sampling/createMessage')
    await send({ id: question?.id, result: { model: 'm' } })
    expect((await heard.next()).value).toMatchObject({ id: 1, result: { content: [{ text: '{"model":"m"}' }] } })
  })

  test('of a cancelled call is over, also for clients that resume it', async () => {
    const { session, access } = await openServer()
    const { send, stream } = await session()
    const [, begun] = await lose((await send(called('start'))).body, 2)
    await send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    expect(access.calls[0]?.signal.aborted).toBe(true)
    expect((await stream(begun?.id)).statusCode).toBe(204)
  })

  test('B7: that was closed because it was not read continues when its client returns', async () => {
    const { session, access } = await openServer()
    const { send, stream } = await session()
    const [endings, size] = [100, 64 * 1024]
    const { body } = await send(called('start', { arguments: { endings, size } }))
    const unread = rawEvents(body.on('error', () => {}))
    await next(unread)
    const begun = await next(unread)
    access.release()
    await expect(Array.fromAsync(unread)).rejects.toThrow()
    const seen = await Array.fromAsync(events((await stream(begun.id)).body))
    expect(seen.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: 'finished' }] } })
    expect(seen.at(-2)).toMatchObject({ method: 'notifications/message' })
    // What was too much to keep is what is oldest.
    expect(seen.length).toBeLessThanOrEqual(maxUnread / size + 1)
  })

  test('whose client does not return is given up after a while, and its session may then be idle', async () => {
    const { session, access, clock } = await openServer()
    const { send } = await session()
    await lose((await send(called('start'))).body, 1)
    const over = () => {
      clock.advance(absenceMs)
      return access.calls[0]?.signal.aborted
    }
    await until(over, { what: 'the call to be given up' })
    clock.advance(2 * 3_600_000)
    expect(access.gone).toHaveLength(1)
  })

  test('B10, F12: of a replica that died is answered by the one that takes over: the outcome is unknown', async () => {
    const records = new Map<string, string>()
    const member = (self: string): Membership => ({
      self,
      addressOf: () => undefined,
      unreachable() {},
      async keep(session, record) {
        records.set(session, record)
        return true
      },
      async takeOver(session) {
        const record = records.get(session)
        return record === undefined ? undefined : { record }
      },
      forget() {},
      sign: (text) => text,
      verify: (text) => text,
    })
    const one = await openServer({ membership: member('one') })
    const other = await openServer({ membership: member('other') })
    const { send, headers } = await one.session()
    const resumed = async (message: object, event: (id: string) => string = (id) => id) => {
      const [primed] = await lose((await send({ ...called('start'), ...message })).body, 1)
      return other.fetchRaw({ method: 'GET', headers: { ...headers, 'last-event-id': event(primed?.id ?? '') } })
    }
    const answers = async ({ body }: Awaited<ReturnType<typeof resumed>>) =>
      (await Array.fromAsync(rawEvents(body))).map(dataOf)
    const result = { isError: true, _meta: { 'dev.toolway/error': { code: 'OUTCOME_UNKNOWN' } } }
    expect(await answers(await resumed({ id: 'a call' }))).toMatchObject([{ id: 'a call', result }])
    expect(await answers(await resumed({ id: 2 }))).toMatchObject([{ id: 2, result }])
    expect((await resumed({ id: 'x'.repeat(1_000) })).statusCode).toBe(400)
    expect((await resumed({ id: 4 }, (id) => `${id.split('.')[0]}.bm8`)).statusCode).toBe(400)
  })

  test('stays plain JSON where nothing had to be said before', async () => {
    const { session } = await openServer()
    const { send } = await session()
    const { headers, body } = await send(called('echo'))
    expect(headers['content-type']).toBe('application/json')
    await body.dump()
  })
})

describe('B2: the stream for what belongs to no request', () => {
  test('is resumed with what was missed, each once', async () => {
    const { session, access } = await openServer()
    const { stream } = await session()
    const first = await stream()
    access.change('tool')
    const [, tools] = await lose(first.body, 2)
    expect(dataOf(tools as RawEvent).method).toBe('notifications/tools/list_changed')
    access.change('prompt')
    access.change('resource')
    const { body } = await stream(tools?.id)
    const heard = events(body)
    expect((await heard.next()).value?.method).toBe('notifications/prompts/list_changed')
    expect((await heard.next()).value?.method).toBe('notifications/resources/list_changed')
    access.change('tool')
    expect((await heard.next()).value?.method).toBe('notifications/tools/list_changed')
    body.destroy()
  })

  test('opened without an id begins with an empty event, then pending notifications', async () => {
    const { session, access } = await openServer()
    const { stream } = await session()
    access.change('tool')
    const [primed, tools] = await lose((await stream()).body, 2)
    expect(primed?.data).toBe('')
    expect(dataOf(tools as RawEvent).method).toBe('notifications/tools/list_changed')
  })
})

describe('E1: streams that cannot be resumed', () => {
  test.each(['nonsense', 'p1-0', 'p7-1', 'g1-99', '0', '__proto__'])('%s is a 400 that says what to do', async (id) => {
    const { session } = await openServer()
    const { stream } = await session()
    const { statusCode, body } = await stream(id)
    expect(statusCode).toBe(400)
    expect(await body.json()).toMatchObject({
      id: null,
      error: { code: -32600, message: expect.stringContaining('Last-Event-ID') },
    })
  })

  test('G3: to another session or principal a stream does not exist', async () => {
    const { session, fetchRaw } = await openServer({ people: true })
    const anna = await session({}, { authorization: 'Bearer anna-token' })
    const bert = await session({}, { authorization: 'Bearer bert-token' })
    const [primed] = await lose((await anna.send(called('start'))).body, 2)
    expect((await bert.stream(primed?.id)).statusCode).toBe(400)
    const headers = { ...anna.headers, authorization: 'Bearer bert-token', 'last-event-id': primed?.id }
    expect((await fetchRaw({ method: 'GET', headers })).statusCode).toBe(404)
  })

  test('a session that is over, or from before a restart, is a 404 in JSON that says what to do', async () => {
    const { session, raw } = await openServer()
    const { send, headers } = await session()
    const [primed] = await lose((await send(called('start'))).body, 1)
    await raw({ method: 'DELETE', headers })
    const { status, json } = await raw({ method: 'GET', headers: { ...headers, 'last-event-id': primed?.id } })
    expect([status, json?.error?.message]).toEqual([404, expect.stringMatching(/^Session not found: .*initialize/)])
  })
})

test('a session that ends closes what was resumed, and leaves no timer', async () => {
  const { session, access, clock, raw } = await openServer()
  const before = clock.pending
  const { send, stream, headers } = await session()
  const [primed] = await lose((await send(called('start'))).body, 1)
  const { body } = await stream(primed?.id)
  await raw({ method: 'DELETE', headers })
  await body.dump()
  expect(access.calls[0]?.signal.aborted).toBe(true)
  await until(() => clock.pending === before, { what: 'the timers to go' })
})
