import { setImmediate as turn } from 'node:timers/promises'
import { Agent, request as send } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { openClient, type Told } from './client.fixture.ts'
import { initializeWith, openTestServer, token } from './server.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

/** A gateway with a session, and raw requests of that session. */
async function openSession() {
  const { server, access } = open.use(await openTestServer())
  const { port } = server
  let session: string | undefined
  const request = (message: object, more = '') => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    const own = session === undefined ? '' : `Mcp-Session-Id: ${session}\r\n`
    return (
      `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\n${more}Authorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n' +
      `${own}Content-Length: ${body.length}\r\n\r\n${body}`
    )
  }
  const another = async () => open.use(await openClient(port))
  const client = await another()
  session = (await client.ask(request(initializeWith()))).headers['Mcp-Session-Id']
  return { server, access, request, client, another, stop: () => server[Symbol.asyncDispose]() }
}

const ping = { id: 1, method: 'ping' }
const call = (name: string, args = {}) => ({ id: 2, method: 'tools/call', params: { name, arguments: args } })

/** The two ways in which requests are read: directly, and by node:http. */
const ways = [
  ['that is read directly', ''],
  ['that node:http reads', 'Te: x\r\n'],
] as const

const expectRefusal = ({ status, headers, body }: Told) => {
  expect([status, headers.Connection, headers['Retry-After']]).toEqual([503, 'close', '1'])
  if (body !== '') expect(JSON.parse(body)).toMatchObject({ error: { data: { code: 'OVERLOADED' } } })
}

describe('B7: a gateway that stops', () => {
  test.each(ways)('refuses a request %s and was in transit on an idle connection', async (_, more) => {
    const { access, request, client, stop } = await openSession()
    await client.ask(request(ping, more))
    // The kernel has these bytes, but the gateway has not read them.
    client.send(request(call('echo'), more))
    const stopped = stop()
    expectRefusal(await client.answer())
    expect(await client.closed()).toBe('')
    await stopped
    expect(access.calls).toHaveLength(0)
  })

  test.each(ways)('refuses a request %s and was sent after the stop began', async (_, more) => {
    for (let isSoon = false; !isSoon; ) {
      const { access, request, client, stop } = await openSession()
      await client.ask(request(ping, more))
      const usedAt = performance.now()
      const stopped = stop()
      for (let turns = 0; turns < 5; turns++) await turn()
      // On a busy machine this may take so long that the gateway has closed the quiet connection. Then try again.
      isSoon = performance.now() - usedAt < 50
      if (isSoon) {
        expectRefusal(await client.ask(request(call('echo'), more)))
        expect(await client.closed()).toBe('')
      }
      await stopped
      expect(access.calls).toHaveLength(0)
    }
  })

  test('refuses requests on connections that it has not accepted yet', async () => {
    const { access, request, another, stop } = await openSession()
    const opening = Array.from({ length: 10 }, another)
    // The sockets connect in the next tick. The gateway accepts connections only in the next turn.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    const stopped = stop()
    const clients = await Promise.all(opening)
    for (const answer of await Promise.all(clients.map((client) => client.ask(request(call('echo')))))) {
      expectRefusal(answer)
    }
    await stopped
    expect(access.calls).toHaveLength(0)
  })

  test.each([1, 40, -1])('refuses a request that is cut at %i and completed after the stop began', async (at) => {
    const { access, request, client, stop } = await openSession()
    const whole = request(call('echo'))
    client.send(whole.slice(0, at))
    for (let turns = 0; turns < 5; turns++) await turn()
    const stopped = stop()
    for (let turns = 0; turns < 5; turns++) await turn()
    client.send(whole.slice(at))
    expectRefusal(await client.answer())
    expect(await client.closed()).toBe('')
    await stopped
    expect(access.calls).toHaveLength(0)
  })

  test('refuses a request whose second half does not arrive, and stops', async () => {
    const { request, client, stop } = await openSession()
    client.send(request(call('echo')).slice(0, 40))
    const stopped = stop()
    expectRefusal(await client.answer())
    expect(await client.closed()).toBe('')
    await stopped
  })

  test('does not mistake the rest of a refused body for a request', async () => {
    const { request, client, stop } = await openSession()
    const text = request(call('echo')).replace(token, 'unknown')
    client.send(text.slice(0, -10))
    expect((await client.answer()).status).toBe(401)
    client.send(text.slice(-10))
    for (let turns = 0; turns < 5; turns++) await turn()
    const stopped = stop()
    expect(await client.closed()).toBe('')
    await stopped
  })

  test.each([10_000, 30_000_000])('sends all %i bytes of a response to a client that reads slowly', async (size) => {
    const { access, request, client, stop } = await openSession()
    client.socket.pause()
    client.send(request(call('large', { size })))
    await until(() => access.calls.length === 1, { what: 'the call' })
    for (let turns = 0; turns < 5; turns++) await turn()
    const stopped = stop()
    // Unread data in the kernel's buffer would make the kernel reset the connection when it is closed.
    client.send(request(call('echo')))
    for (let turns = 0; turns < 5; turns++) await turn()
    client.send(request(call('echo')))
    client.socket.resume()
    const { status, body } = await client.answer()
    expect([status, body.length > size]).toEqual([200, true])
    await client.closed()
    await stopped
    expect(access.calls).toHaveLength(1)
  })

  test('sends the responses of all calls that ran to a client that sends many requests and reads later', async () => {
    const { access, request, client, stop } = await openSession()
    client.socket.pause()
    client.send(request(call('large', { size: 10_000 })).repeat(2_000))
    // Continue when the gateway waits for the client to read.
    for (let before = -1; access.calls.length > before; ) {
      before = access.calls.length
      for (let turns = 0; turns < 50; turns++) await turn()
    }
    const stopped = stop()
    for (let turns = 0; turns < 5; turns++) await turn()
    client.socket.resume()
    const statuses: number[] = []
    for (let status = 200; status === 200; statuses.push(status)) ({ status } = await client.answer())
    expect(statuses.at(-1)).toBe(503)
    expect(statuses).toHaveLength(access.calls.length + 1)
    expect(await client.closed()).toBe('')
    await stopped
  })

  test('answers every request of clients that send one after the other on pooled connections', async () => {
    const { server, stop } = await openSession()
    const agent = new Agent({ connections: 4 })
    open.defer(() => agent.destroy())
    const url = `http://127.0.0.1:${server.port}/livez`
    const statuses: number[] = []
    const failures: unknown[] = []
    let stopping = false
    const work = async () => {
      for (;;) {
        try {
          const { statusCode, headers, body } = await send(url, { dispatcher: agent })
          await body.dump()
          statuses.push(statusCode)
          if (stopping && headers.connection === 'close') return
        } catch (thrown) {
          failures.push(thrown)
          return
        }
      }
    }
    const working = Promise.all(Array.from({ length: 4 }, work))
    await until(() => statuses.length > 20, { what: 'some requests' })
    stopping = true
    await Promise.all([stop(), working])
    expect(failures).toEqual([])
    expect(new Set(statuses)).toEqual(new Set([200]))
  })
})
