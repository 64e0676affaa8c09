import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { type Client, openClient, type Told } from './client.fixture.ts'
import { initializeWith, openTestServer, token } from './server.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

type Headers = Readonly<Record<string, string | undefined>>

/** A server, and a connection to it on which one session talks. */
async function openConversation(settings?: Parameters<typeof openTestServer>[0]) {
  const test = open.use(await openTestServer(settings))
  const { port } = test.server
  const request = (body: string | object, more: Headers = {}, line = 'POST /mcp HTTP/1.1') => {
    const text = typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', ...body })
    const headers: Headers = {
      Host: `localhost:${port}`,
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': session,
      'Content-Length': String(text.length),
      ...more,
    }
    const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
    return `${line}\r\n${lines.join('\r\n')}\r\n\r\n${headers['Content-Length'] === undefined ? '' : text}`
  }
  let session: string | undefined
  const client = open.use(await openClient(port))
  const opened = await client.ask(request(initializeWith()))
  session = opened.headers['Mcp-Session-Id']
  /** One that node:http reads, although it says the same. */
  const byNode = (text: string) => text.replace('\r\n', '\r\nTe: x\r\n')
  return { ...test, request, byNode, client, another: async () => open.use(await openClient(port)) }
}

const ping = { id: 1, method: 'ping' }
const call = (name: string, args: object = {}, more: object = {}) => ({
  id: 7,
  method: 'tools/call',
  params: { name, arguments: args, ...more },
})

/** Whether the connection is still good for a request, and gives nothing but its answer. */
async function isUsable(client: Client, request: string) {
  expect(JSON.parse((await client.ask(request)).body)).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  expect(client.unread).toBe('')
}

/** An answer without what is different each time. */
const timeless = ({ status, headers, body }: Told): Told => ({
  status,
  headers: { ...headers, Date: '' },
  body: body.replace(/^id: .*$/gm, ''),
})

test('F14: an answer has the headers that node:http would give it', async () => {
  const origin = 'https://app.example.com'
  const { client, request, byNode, another } = await openConversation({ config: { allowedOrigins: [origin] } })
  const other = await another()
  const requests: (readonly [object, Headers?])[] = [
    [ping],
    [call('echo', { a: 'é' })],
    [call('large', { size: 100_000 })],
    [call('progress', {}, { _meta: { progressToken: 1 } })],
    [{ method: 'notifications/initialized' }],
    [ping, { Authorization: undefined }],
    [ping, { 'Mcp-Session-Id': 'unknown' }],
    [call('refuse', { code: 'RATE_LIMITED' })],
  ]
  for (const [message, headers] of requests) {
    for (const from of [undefined, origin]) {
      const asked = request(message, { ...headers, Origin: from })
      const ours = await client.ask(asked)
      const theirs = await other.ask(byNode(asked))
      expect(timeless(ours)).toEqual(timeless(theirs))
      expect(ours.headers['Access-Control-Allow-Origin']).toBe(from)
      expect(Math.abs(Date.parse(ours.headers.Date as string) - Date.now())).toBeLessThan(5_000)
    }
  }
})

test('B6: a connection stays usable after a refusal', async () => {
  const { client, request } = await openConversation({ config: { maxBody: 1_000 } })
  const refusals: (readonly [number, string | object, Headers?])[] = [
    [401, ping, { Authorization: undefined }],
    [401, ping, { Authorization: 'Bearer wrong' }],
    [403, ping, { Host: 'rebound.example.com' }],
    [403, ping, { Host: undefined }],
    [403, ping, { Origin: 'https://evil.example.com' }],
    [404, ping, { 'Mcp-Session-Id': 'unknown' }],
    [406, ping, { Accept: 'text/html' }],
    [413, 'x'.repeat(2_000)],
    [415, ping, { 'Content-Type': 'text/plain' }],
    [415, ping, { 'Content-Encoding': 'gzip' }],
    [400, 'not JSON'],
    [400, ''],
    [400, ping, { 'Mcp-Session-Id': undefined }],
  ]
  for (const [status, body, headers] of refusals) {
    expect(await client.ask(request(body, headers))).toMatchObject({ status, headers: { Connection: 'keep-alive' } })
    await isUsable(client, request(ping))
  }
})

test('B2: answers become streams, and every kind of request comes behind them, on one connection', async () => {
  const { client, request, clock, access } = await openConversation()
  const progress = await client.ask(request(call('progress', {}, { _meta: { progressToken: 1 } })))
  expect(progress.headers['Content-Type']).toBe('text/event-stream')
  expect(progress.body.match(/"progress":\d/g)).toEqual(['"progress":1', '"progress":2', '"progress":3'])
  await isUsable(client, request(ping))

  client.send(request(call('wait')))
  await until(() => access.calls.length === 2, { what: 'the call' })
  clock.advance(100)
  await until(() => client.unread.includes('retry:'), { what: 'the stream' })
  access.release()
  expect((await client.answer()).body).toContain('waited')
  await isUsable(client, request(ping))

  const large = await client.ask(request(call('large', { size: 2 * 1024 * 1024 })) + request(ping))
  expect(large.body.length).toBeGreaterThan(2 * 1024 * 1024)
  expect((await client.answer()).body).toContain('"id":1')
  // From here on it is node:http's.
  client.send(request('', { 'Content-Length': undefined }, 'HEAD /livez HTTP/1.1'))
  await until(() => /^HTTP\/1.1 200 OK\r\n.*\r\n\r\n$/s.test(client.unread), { what: 'a head alone' })
})

test.each([
  ['a body in chunks', { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }, [200]],
  ['a question before the body', { Expect: '100-continue' }, [100, 200]],
  ['an end', { Connection: 'close' }, [200]],
] as const)('F14: %s, behind complete requests, is answered as usual', async (_, headers, statuses) => {
  const { client, request } = await openConversation()
  for (let count = 0; count < 3; count++) await isUsable(client, request(ping))
  const body = JSON.stringify({ jsonrpc: '2.0', ...ping })
  client.send(request(ping, headers))
  if ('Transfer-Encoding' in headers) client.send(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
  for (const status of statuses) expect((await client.answer()).status).toBe(status)
  if ('Connection' in headers) expect(await client.closed()).toBe('')
  else await isUsable(client, request(ping))
})

test('F4: a stream is opened and a session ended on a connection that had whole requests before', async () => {
  const { client, request, access, another, server } = await openConversation()
  await isUsable(client, request(ping))
  client.send(request('', { 'Content-Length': undefined, 'Content-Type': undefined }, 'GET /mcp HTTP/1.1'))
  await until(() => client.unread.includes('retry:'), { what: 'the stream' })
  access.change('tool')
  await until(() => client.unread.includes('tools/list_changed'), { what: 'the news' })
  const other = await another()
  await isUsable(other, request(ping))
  expect((await other.ask(request('', {}, 'DELETE /mcp HTTP/1.1'))).status).toBe(204)
  expect((await other.ask(request(ping))).status).toBe(404)
  expect(server.sessions).toBe(0)
})

test('B2: a client that disconnects cancels its call, also with requests queued behind it', async () => {
  for (const behind of [false, true]) {
    const { client, request, access, byNode } = await openConversation()
    client.send(request(call('wait')) + (behind ? request(ping) + byNode(request(ping)) : ''))
    await until(() => access.calls.length === 1, { what: 'the call' })
    client.socket.destroy()
    await until(() => access.calls[0]?.signal.aborted, { what: 'the cancellation' })
  }
})

describe('B7: a server that closes', () => {
  test('ends idle connections, lets calls finish, refuses what is new, and says so', async () => {
    const { client, request, access, another, server } = await openConversation()
    const [idle, fresh] = [await another(), await another()]
    await isUsable(idle, request(ping))
    client.send(request(call('wait')) + request(ping))
    await until(() => access.calls.length === 1, { what: 'the call' })
    const closed = server[Symbol.asyncDispose]()
    const late = await fresh.ask(request(ping))
    expect([late.status, late.headers.Connection]).toEqual([503, 'close'])
    expect(await fresh.closed()).toBe('')
    expect(await idle.closed()).toBe('')
    access.release()
    const answer = await client.answer()
    expect([answer.status, answer.headers.Connection]).toEqual([200, 'close'])
    expect(answer.body).toContain('waited')
    await closed
    expect(await client.closed()).toBe('')
  })

  test('with a successor: all are served, and get Connection: close with their next response', async () => {
    const { client, request, access, clock, another, server } = await openConversation()
    const [idle, streaming] = [await another(), await another()]
    await isUsable(idle, request(ping))
    streaming.send(request(call('wait')))
    await until(() => access.calls.length === 1, { what: 'the first call' })
    clock.advance(100)
    await until(() => streaming.unread.includes('retry:'), { what: 'the stream' })
    client.send(request({ ...call('wait'), id: 8 }))
    await until(() => access.calls.length === 2, { what: 'the second call' })
    const retired = server.retire(60_000)
    access.release()
    const plain = await client.answer()
    expect([plain.status, plain.headers.Connection]).toEqual([200, 'close'])
    expect(await client.closed()).toBe('')
    // This one has read that it may ask again, before anybody thought of leaving.
    expect((await streaming.answer()).body).toContain('waited')
    for (const one of [streaming, idle]) {
      const { status, headers } = await one.ask(request(ping))
      expect([status, headers.Connection]).toEqual([200, 'close'])
      expect(await one.closed()).toBe('')
    }
    await retired
  })

  test('B10: a server with a successor serves the request after a long stream, and closes the connection with it', async () => {
    const { client, request, access, clock, another, server } = await openConversation()
    const listener = await another()
    listener.send(request('', { 'Content-Length': undefined, 'Content-Type': undefined }, 'GET /mcp HTTP/1.1'))
    await until(() => listener.unread.includes('retry:'), { what: 'the stream of events' })
    client.send(request(call('wait')))
    await until(() => access.calls.length === 1, { what: 'the call' })
    clock.advance(100)
    await until(() => client.unread.includes('retry:'), { what: 'the stream of the call' })
    let hasRetired = false
    const retired = server.retire(1_000).then(() => (hasRetired = true))
    clock.advance(1_000)
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(hasRetired).toBe(false)
    access.release()
    expect((await client.answer()).body).toContain('waited')
    const { status, headers } = await client.ask(request(ping))
    expect([status, headers.Connection]).toEqual([200, 'close'])
    // The server does not wait until the event stream ends.
    await retired
    expect(listener.socket.closed).toBe(false)
  })
})

test.each([
  ['both a length and a transfer coding', 'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n'],
  ['a bare line feed', 'X: y\nContent-Length: 0\r\n\r\n'],
  ['two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['a header without a colon, and much after it', `no header\r\n${'x'.repeat(32 * 1024)}`],
])('F11: a request with %s is refused and recorded once', async (_, rest) => {
  const { access, another } = await openConversation()
  const { status } = await (await another()).ask(`POST /mcp HTTP/1.1\r\nHost: localhost\r\n${rest}`)
  expect(status).toBe(400)
  expect(access.turned).toMatchObject([
    { malformed: true, address: expect.stringContaining('127.0.0.1'), detail: expect.stringContaining('HTTP') },
  ])
})
