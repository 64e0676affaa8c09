import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { settledMemory } from '../../../tests/fixtures/memory.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { openTestAdmin } from '../../admin/admin.fixture.ts'
import { configSchema } from '../../config/schema.ts'
import type { Caller } from '../../core/call.ts'
import { systemClock } from '../../core/clock.ts'
import { createBudgets } from '../../core/limits/budget.ts'
import { silentLog } from '../../core/log.ts'
import { createTestAccess } from '../access.fixture.ts'
import { openChatServer } from '../openai/openai.fixture.ts'
import { serveStdio } from '../stdio.ts'
import { createBodyReader, type RequestWork } from './bodies.ts'
import { info, initializeWith, openTestServer } from './server.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const MiB = 1024 * 1024
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** A request whose body comes bit by bit, and never to its end. */
async function slowBody(port: number, token: string, length: number, path = '/mcp') {
  const socket = connect(port, '127.0.0.1')
  stack.defer(() => void socket.destroy())
  await once(socket, 'connect')
  let answer = ''
  socket.on('error', () => {})
  socket.setEncoding('latin1').on('data', (text) => {
    answer += text
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
  )
  return {
    socket,
    send: (bytes: number) => void socket.write(Buffer.alloc(bytes, ' ')),
    status: () => /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1],
  }
}

describe('V6: bodies that never end', () => {
  test('of one caller take no more than their share, and others are answered meanwhile', async () => {
    const config = { maxBody: 2 * MiB, maxInFlight: 64 * MiB, maxInFlightPerCaller: 2.5 * MiB }
    const { server, session, fetchRaw } = stack.use(await openTestServer({ people: true, config }))
    const { ask } = await session({}, { authorization: 'Bearer bert-token' })
    const before = await settledMemory()
    const attack = await Promise.all(Array.from({ length: 40 }, () => slowBody(server.port, 'anna-token', MiB)))
    for (const { send } of attack) send(MiB - 1)
    await until(() => attack.filter(({ status }) => status() === '429').length >= 35, { what: 'the refusals' })
    // Held are two bodies of forty, and what was under way of others when they were refused.
    expect((await settledMemory(before + 16 * MiB)) - before).toBeLessThan(16 * MiB)
    expect((await ask('ping')).result).toEqual({})
    const again = await fetchRaw({ body: initializeWith(), headers: { authorization: 'Bearer bert-token' } })
    expect(again.statusCode).toBe(200)
    await again.body.dump()
    // Who gives up gives back.
    for (const { socket } of attack) socket.destroy()
    await until(
      async () => {
        const big = JSON.stringify({ ...initializeWith(), pad: ' '.repeat(MiB) })
        const { statusCode, body } = await fetchRaw({ body: big, headers: { authorization: 'Bearer anna-token' } })
        await body.dump()
        return statusCode !== 429
      },
      { what: 'the share of the caller to be free again' },
    )
  })

  test('V6: count as long as their requests are handled, also if the client has disconnected', async () => {
    const budgets = createBudgets()
    const { read } = createBodyReader(configSchema.parse({}).server, budgets)
    const used = () => budgets.report().find(({ name }) => name === 'request_bytes')?.used
    const request = { headers: { 'content-type': 'application/json' }, socket: {}, body: Buffer.alloc(20_000, '1') }
    const begin = (work: RequestWork) => {
      const response = new EventEmitter()
      void read({ request: request as never, response: response as never, identity: undefined, work })
      response.emit('close')
    }
    const work: RequestWork = { active: true }
    begin(work)
    expect(used()).toBe(20_000)
    work.ended?.()
    expect(used()).toBe(0)
    begin({ active: false })
    expect(used()).toBe(0)
  })

  test('cost what they send, not a buffer for each byte', async () => {
    const { server } = stack.use(await openTestServer({ config: { maxBody: MiB } }))
    const { send, socket } = await slowBody(server.port, 'a-test-token', MiB)
    const before = await settledMemory()
    for (let count = 0; count < 1_000; count++) {
      send(1)
      if (count % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await until(() => socket.writableLength === 0, { what: 'all to be sent' })
    expect((await settledMemory(before + 2 * MiB)) - before).toBeLessThan(2 * MiB)
  })

  test('without a credential are not read', async () => {
    const { server } = stack.use(await openTestServer({ config: { maxInFlightPerCaller: 1, maxInFlight: 1 } }))
    const { status } = await slowBody(server.port, 'a-guess', 100_000)
    await until(() => status() !== undefined, { what: 'the refusal' })
    expect(status()).toBe('401')
  })
})

test('V6: bodies that are read before any credential count for their address, until they are given up', async () => {
  const { port, logIn } = stack.use(await openTestAdmin({ config: { maxInFlightPerCaller: 30_010 } }))
  const { send, socket } = await slowBody(port, 'none', 60_000, '/admin/api/session')
  send(30_000)
  await until(async () => (await logIn()).status === 429, { what: 'the refusal of another body' })
  socket.destroy()
  await until(async () => (await logIn()).status === 200, { what: 'room for another body' })
})

describe('V6: bodies that came at once', () => {
  test('count until their requests are answered, for their caller alone', async () => {
    const config = { maxInFlightPerCaller: 100_000 }
    const { session, access, fetchRaw } = stack.use(await openTestServer({ people: true, config }))
    const of = (name: string) => ({ authorization: `Bearer ${name}-token` })
    const { send, ask } = await session({}, of('anna'))
    const waiting = send({
      id: 1,
      method: 'tools/call',
      params: { name: 'wait', arguments: { a: 'x'.repeat(60_000) } },
    })
    await until(() => access.calls.length === 1, { what: 'the call to run' })
    const big = { ...initializeWith(), pad: 'x'.repeat(60_000) }
    const status = async (name: string) => {
      const { statusCode, body } = await fetchRaw({ body: big, headers: of(name) })
      await body.dump()
      return statusCode
    }
    expect([await status('anna'), await status('bert')]).toEqual([429, 200])
    // Small requests of the same caller are still served.
    expect((await ask('ping', {}, 2)).result).toEqual({})
    access.release()
    await (await waiting).body.dump()
    expect(await status('anna')).toBe(200)
  })
})

describe('V6: values in a message', () => {
  const many = `[${'1,'.repeat(150)}1]`
  const config = { maxValues: 100 }

  test('beyond the limit are a 413 at every HTTP endpoint, before anything is parsed', async () => {
    const chat = stack.use(await openChatServer({ config }))
    const admin = stack.use(await openTestAdmin({ config }))
    const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":${many}}}}`
    for (const [path, body] of [
      ['/mcp', call],
      ['/mcp', `[${call}]`],
      ['/mcp', many],
      ['/mcp', `{${'"a":1,'.repeat(150)}"a":1}`],
      ['/mcp', `[${'1,'.repeat(150)}`],
      ['/v1/chat/completions', `{"messages":${many}}`],
    ] as const) {
      expect([path, (await chat.raw({ path, body })).status]).toEqual([path, 413])
    }
    expect(chat.access.calls).toEqual([])
    const headers = { authorization: 'Bearer operator', 'content-type': 'application/json' }
    const tried = await admin.raw('/admin/api/tools/files__read/call', {
      method: 'POST',
      headers,
      body: `{"a":${many}}`,
    })
    expect([tried.status, tried.json.error.code]).toEqual([413, 'TOO_LARGE'])
    expect((await chat.raw({ body: initializeWith() })).status).toBe(200)
  })

  test('beyond the limit are refused over stdio, too', async () => {
    const input = new PassThrough()
    const output = new PassThrough()
    const access = createTestAccess()
    const caller = {
      ...{ agent: 'default', agents: '*' as const, principal: 'local', authenticated: true, admin: true },
      ...{ session: 'local', capabilities: {} },
    } satisfies Caller
    const served = serveStdio({ input, output, access, info, caller, ...config, clock: systemClock, log: silentLog })
    input.end(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${many}}}\n${JSON.stringify(ping)}\n`)
    await served
    const [refused, answered] = String(output.read())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(refused.error).toMatchObject({ code: -32600, message: expect.stringContaining('server.maxValues') })
    expect(answered).toMatchObject({ id: 1, result: {} })
  })
})

describe('V6: connections', () => {
  test('of one address are bounded: one more gets a 429 and is closed, until another one closes', async () => {
    const { server, budgets } = stack.use(await openTestServer({ config: { maxConnectionsPerAddress: 5 } }))
    const open = await Promise.all(Array.from({ length: 5 }, () => slowBody(server.port, 'a-test-token', 10)))
    await until(() => budgets.requests.used === 5, { what: 'their requests' })
    const more = await slowBody(server.port, 'a-test-token', 10)
    await once(more.socket, 'close')
    expect(more.status()).toBe('429')
    open[0]?.socket.destroy()
    await until(
      async () => {
        const next = await slowBody(server.port, 'a-guess', 10)
        await until(() => next.status() !== undefined, { what: 'an answer' })
        next.socket.destroy()
        return next.status() === '401'
      },
      { what: 'room for another one' },
    )
  })

  test('of one address that have no request are closed for new ones, the longest idle first', async () => {
    const { server } = stack.use(await openTestServer({ config: { maxConnectionsPerAddress: 3 } }))
    const closed: string[] = []
    const idle = async (name: string, text = '') => {
      const socket = connect(server.port, '127.0.0.1').on('close', () => closed.push(name))
      stack.defer(() => void socket.destroy())
      await once(socket, 'connect')
      socket.write(text)
    }
    await idle('silent')
    await idle('half', 'POST /mcp HTTP/1.1\r\nHost:')
    const busy = await slowBody(server.port, 'a-test-token', 10)
    const more = [await slowBody(server.port, 'a-test-token', 10), await slowBody(server.port, 'a-test-token', 10)]
    await until(() => closed.length === 2, { what: 'room for them' })
    expect(closed).toEqual(['silent', 'half'])
    expect([busy, ...more].map(({ socket }) => socket.destroyed)).toEqual([false, false, false])
  })

  test('with two requests are not closed for new ones when the first is answered', async () => {
    const { server } = stack.use(await openTestServer({ config: { maxConnectionsPerAddress: 1 } }))
    const busy = connect(server.port, '127.0.0.1')
    stack.defer(() => void busy.destroy())
    const host = `HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n`
    const credential = 'Authorization: Bearer a-test-token\r\nContent-Type: application/json\r\n'
    const second = `POST /mcp ${host}${credential}Content-Length: 10\r\n\r\n{`
    busy.write(`GET /livez ${host}\r\n${second}`)
    expect(String(await once(busy, 'data'))).toContain('200 OK')
    const more = await slowBody(server.port, 'a-test-token', 10)
    await once(more.socket, 'close')
    expect([more.status(), busy.destroyed]).toEqual(['429', false])
  })
})
