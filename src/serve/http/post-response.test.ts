import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { readAccept } from './response.ts'
import { events, openTestServer, token } from './server.fixture.ts'
import { commentEveryMs, maxUnread } from './sse-stream.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const openServer = async () => open.use(await openTestServer())
const called = (name: string, more: object = {}) => ({ id: 1, method: 'tools/call', params: { name, ...more } })

test('a stream must be asked for by name', () => {
  expect(readAccept('application/json, text/event-stream')).toEqual({ json: true, stream: true })
  expect(readAccept('Text/Event-Stream')).toEqual({ json: false, stream: true })
  expect(readAccept('*/*')).toEqual({ json: true, stream: false })
  expect(readAccept(undefined)).toEqual({ json: true, stream: false })
  expect(readAccept('text/html')).toEqual({ json: false, stream: false })
})

describe('B2: progress', () => {
  test("comes before the result, in order, on the call's own stream, under the caller's own token", async () => {
    const { session } = await openServer()
    const { send, stream } = await session()
    const aside = await stream()
    const { body, headers } = await send(called('progress', { _meta: { progressToken: 7 } }))
    expect(headers['content-type']).toBe('text/event-stream')
    const seen = []
    for await (const event of events(body))
      seen.push(event.params ? [event.params.progressToken, event.params.progress] : event.id)
    expect(seen).toEqual([[7, 1], [7, 2], [7, 3], 1])
    aside.body.destroy()
  })

  test('is not sent to a caller that did not ask for it, nor to one that takes no stream', async () => {
    const { session } = await openServer()
    const { send } = await session()
    const unasked = await send(called('progress'))
    expect(unasked.headers['content-type']).toBe('application/json')
    await unasked.body.dump()
    const plain = await send(called('progress', { _meta: { progressToken: 7 } }), {
      headers: { accept: 'application/json' },
    })
    expect(await plain.body.json()).toMatchObject({ id: 1, result: {} })
  })

  test('other notifications of a call go the same way, each on one line', async () => {
    const { session } = await openServer()
    const { send } = await session()
    const { body } = await send(called('log'))
    const [first, second] = await Array.fromAsync(events(body))
    expect(first).toMatchObject({ method: 'notifications/message', params: { data: 'hi' } })
    expect(second).toMatchObject({ id: 1, result: {} })
  })
})

describe('keep-alive', () => {
  test('a call that takes long becomes a stream with comments in it', async () => {
    const { session, clock, access } = await openServer()
    const { send } = await session()
    const pending = send(called('wait'))
    await until(() => access.calls.length === 1, { what: 'the call' })
    clock.advance(commentEveryMs)
    const { body, headers } = await pending
    expect(headers['content-type']).toBe('text/event-stream')
    const stream = events(body)
    for (let tick = 0; tick < 2; tick++) {
      clock.advance(commentEveryMs)
      expect((await stream.next()).value?.jsonrpc).toBe(': keep-alive')
    }
    access.release()
    expect((await stream.next()).value).toMatchObject({ id: 1, result: { content: [{ text: 'waited' }] } })
    expect((await stream.next()).done).toBe(true)
  })

  test('a client that takes no stream waits for its JSON', async () => {
    const { session, clock, access } = await openServer()
    const { send } = await session()
    const pending = send(called('wait'), { headers: { accept: 'application/json' } })
    await until(() => access.calls.length === 1, { what: 'the call' })
    clock.advance(10 * commentEveryMs)
    access.release()
    expect(await (await pending).body.json()).toMatchObject({ id: 1, result: {} })
  })

  test('answered requests leave no timer behind', async () => {
    const { session, clock } = await openServer()
    const { ask } = await session()
    const before = clock.pending
    await ask('tools/call', { name: 'echo' })
    await ask('ping')
    expect(clock.pending).toBe(before)
  })
})

describe('B2: cancellation', () => {
  const cancelled = { method: 'notifications/cancelled', params: { requestId: 1, reason: 'enough' } }

  test.each(['wait', 'deaf'])('reaches the call %s, which then gets no answer', async (name) => {
    const { session, access, clock } = await openServer()
    const { send, ask } = await session()
    const before = clock.pending
    const pending = send(called(name))
    await until(() => access.calls.length === 1, { what: 'the call' })
    expect((await send(cancelled)).statusCode).toBe(202)
    expect(access.calls[0]?.signal.aborted).toBe(true)
    expect(access.calls[0]?.signal.reason).toMatchObject({ code: 'CANCELLED' })
    const { body, statusCode } = await pending
    expect([statusCode, await body.text()]).toEqual([200, ''])
    expect((await ask('ping', {}, 1)).result).toEqual({})
    expect(clock.pending).toBe(before)
  })

  test("of something unknown, answered or another session's is ignored", async () => {
    const { session, access } = await openServer()
    const { send } = await session()
    const other = await session()
    const pending = send(called('wait'))
    await until(() => access.calls.length === 1, { what: 'the call' })
    for (const requestId of [2, '1', null, {}, undefined]) {
      expect((await send({ ...cancelled, params: { requestId } })).statusCode).toBe(202)
    }
    await other.send(cancelled)
    expect(access.calls[0]?.signal.aborted).toBe(false)
    access.release()
    expect(await (await pending).body.json()).toMatchObject({ id: 1, result: {} })
  })

  test('a client that disconnects before its response, with no event to resume from, cancels its call', async () => {
    const { session, access } = await openServer()
    const { send } = await session()
    const leaving = new AbortController()
    const pending = send(called('wait'), { signal: leaving.signal })
    await until(() => access.calls.length === 1, { what: 'the call' })
    leaving.abort()
    await expect(pending).rejects.toThrow()
    await until(() => access.calls[0]?.signal.aborted, { what: 'the cancellation' })
  })
})

describe('B7: slow readers', () => {
  test('one that does not read is dropped once it is owed more than the bound', async () => {
    const { server, session, access } = await openServer()
    const { id } = await session()
    const size = 64 * 1024
    const steps = 400
    const params = { name: 'progress', arguments: { steps, size }, _meta: { progressToken: 1 } }
    const { socket, closed } = postWithoutReading(server.port, id, {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params,
    })
    await until(() => access.calls.length === 1, { what: 'the call' })
    socket.resume()
    await closed
    expect(steps * size).toBeGreaterThan(20 * maxUnread)
    expect(socket.bytesRead).toBeLessThan(10 * maxUnread)
  })

  test("a single large answer is not a slow reader's fault", async () => {
    const { session } = await openServer()
    const { ask } = await session()
    const { result } = await ask('tools/call', { name: 'large', arguments: { size: 8 * maxUnread } })
    expect(result.content[0].text).toHaveLength(8 * maxUnread)
  })
})

describe('F4: list_changed on the GET stream', () => {
  test('names the changed lists; templates count as resources', async () => {
    const { session, access } = await openServer()
    const { stream } = await session()
    const { body, statusCode, headers } = await stream()
    expect([statusCode, headers['content-type']]).toEqual([200, 'text/event-stream'])
    const heard = events(body)
    access.change('tool', 'template', 'resource', 'prompt')
    const methods = []
    for (let count = 0; count < 3; count++) methods.push((await heard.next()).value?.method)
    expect(methods).toEqual([
      'notifications/tools/list_changed',
      'notifications/resources/list_changed',
      'notifications/prompts/list_changed',
    ])
    body.destroy()
  })

  test('goes to one stream of a session only, and to every session', async () => {
    const { session, access } = await openServer()
    const one = await session()
    const streams = [await one.stream(), await one.stream(), await (await session()).stream()]
    const heard: string[][] = streams.map(() => [])
    const reading = streams.map(async ({ body }, index) => {
      for await (const event of events(body)) heard[index]?.push(event.method ?? '')
    })
    access.change('tool')
    await until(() => heard.flat().length >= 2, { what: 'the notifications' })
    access.change('prompt')
    await until(() => heard.flat().length >= 4, { what: 'the next notifications' })
    for (const { body } of streams) body.destroy()
    await Promise.allSettled(reading)
    const both = ['notifications/tools/list_changed', 'notifications/prompts/list_changed']
    expect(heard).toEqual([[], both, both])
  })

  test('G3: of a list that one session sees goes to that session', async () => {
    const { session, access } = await openServer()
    const all = [await session(), await session()]
    const heard: string[][] = all.map(() => [])
    for (const [index, { stream }] of all.entries()) {
      const { body } = await stream()
      void (async () => {
        for await (const event of events(body)) heard[index]?.push(event.method ?? '')
      })().catch(() => {})
      open.defer(() => void body.destroy())
    }
    access.changeFor(all[1]?.id ?? '', 'resource')
    access.change('tool')
    await until(() => heard.flat().length >= 3, { what: 'the notifications' })
    const common = 'notifications/tools/list_changed'
    expect(heard).toEqual([[common], ['notifications/resources/list_changed', common]])
  })

  test('changes while no stream was open are sent once when one opens', async () => {
    const { session, access, clock } = await openServer()
    const { stream } = await session()
    access.change('tool')
    access.change('tool')
    const { body } = await stream()
    const heard = events(body)
    expect((await heard.next()).value?.method).toBe('notifications/tools/list_changed')
    clock.advance(commentEveryMs)
    expect((await heard.next()).value?.jsonrpc).toBe(': keep-alive')
    body.destroy()
  })

  test('a session keeps a few streams; the oldest is closed', async () => {
    const { session } = await openServer()
    const { stream } = await session()
    const streams = []
    for (let count = 0; count < 5; count++) streams.push(await stream())
    expect(await streams[0]?.body.text()).toMatch(/^id: \S+\nretry: \d+\ndata: \n\n$/)
    for (const { body } of streams) body.destroy()
  })

  test('GET wants an event stream to be acceptable', async () => {
    const { session, raw } = await openServer()
    const { headers } = await session()
    expect((await raw({ method: 'GET', headers: { ...headers, accept: 'application/json' } })).status).toBe(406)
  })
})

/** Sends a request and reads nothing of the answer until told to. */
function postWithoutReading(port: number, session: string, message: object) {
  const body = JSON.stringify(message)
  const socket = connect(port, '127.0.0.1').pause()
  const headers = [
    `Host: localhost:${port}`,
    `Authorization: Bearer ${token}`,
    `Mcp-Session-Id: ${session}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Content-Length: ${body.length}`,
  ]
  socket.write(`POST /mcp HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  socket.on('error', () => {}).on('close', () => resolve())
  return { socket, closed }
}
