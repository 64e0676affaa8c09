import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { systemClock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { silentLog } from '../../core/log.ts'
import { createTestAccess } from '../access.fixture.ts'
import { authenticateToken } from '../auth/token.fixture.ts'
import { events, httpConfig, info, initializeWith, openTestServer } from './server.fixture.ts'
import { openHttpServer } from './server.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const openServer = async (settings?: Parameters<typeof openTestServer>[0]) => open.use(await openTestServer(settings))

describe('routes', () => {
  test('the endpoint answers at its path and at /stream, with a query or without', async () => {
    const { raw, server } = await openServer()
    expect(server.url).toBe(`http://127.0.0.1:${server.port}/mcp`)
    for (const path of ['/mcp', '/mcp/', '/mcp/stream', '/mcp?x=1']) {
      expect((await raw({ path, body: initializeWith() })).status).toBe(200)
    }
  })

  test('anything else is a 404 in JSON that names the endpoint', async () => {
    const { raw } = await openServer({ config: { path: '/tools' } })
    for (const path of ['/', '/mcp', '/tools//', '/tools/x', '//tools']) {
      const { status, json } = await raw({ path, body: initializeWith() })
      expect(status).toBe(404)
      expect(json?.error?.message).toContain('/tools')
    }
  })

  test('a wrong method is a 405 that says what is allowed', async () => {
    const { raw } = await openServer()
    const put = await raw({ method: 'PUT', body: '{}' })
    expect([put.status, put.headers.allow]).toEqual([405, 'POST, GET, DELETE'])
    const options = await raw({ method: 'OPTIONS' })
    expect([options.status, options.headers.allow]).toEqual([405, 'POST, GET, DELETE'])
    const probe = await raw({ method: 'POST', path: '/livez', body: '{}' })
    expect([probe.status, probe.headers.allow]).toEqual([405, 'GET, HEAD'])
  })

  test('/livez and /readyz need no credential and no Host; readiness follows the gateway', async () => {
    let ready = false
    const { raw } = await openServer({ ready: () => ready })
    const probe = (path: string) =>
      raw({ method: 'GET', path, headers: { authorization: undefined, host: '10.1.2.3' } })
    expect((await probe('/livez')).status).toBe(200)
    expect((await probe('/readyz')).status).toBe(503)
    ready = true
    expect((await probe('/readyz')).status).toBe(200)
  })
})

describe('B6: access', () => {
  test('no token or a wrong one is a 401 that says what to do, and opens nothing', async () => {
    const { raw, access } = await openServer()
    for (const authorization of [undefined, 'Bearer wrong', 'Basic YTpi']) {
      const { status, headers, json } = await raw({ body: initializeWith(), headers: { authorization } })
      expect(status).toBe(401)
      const error = authorization === undefined ? '' : ', error="invalid_token"'
      expect(headers['www-authenticate']).toBe(`Bearer realm="toolway"${error}`)
      expect(headers['mcp-session-id']).toBeUndefined()
      expect(json?.error?.data).toEqual({ code: 'AUTH_REQUIRED' })
      expect(json?.error?.message).toContain('Authorization: Bearer <token>')
    }
    const turned = { code: 'AUTH_REQUIRED', address: '127.0.0.1' }
    expect(access.turned).toEqual([turned, turned, turned])
  })

  test('every method is behind the token', async () => {
    const { raw } = await openServer()
    for (const method of ['GET', 'DELETE', 'POST'] as const) {
      expect((await raw({ method, headers: { authorization: undefined } })).status).toBe(401)
    }
  })

  test('without a configured token no caller needs one, and none is authenticated', async () => {
    const { session, access } = await openServer({ token: undefined })
    const { ask } = await session({}, { authorization: undefined })
    await ask('tools/call', { name: 'echo' })
    expect(access.calls[0]?.caller).toMatchObject({ principal: 'anonymous', authenticated: false, admin: false })
  })

  test('the holder of the token is authenticated', async () => {
    const { session, access } = await openServer()
    const { ask, id } = await session()
    await ask('tools/call', { name: 'echo' })
    expect(access.calls[0]?.caller).toMatchObject({
      agent: 'default',
      principal: 'token',
      authenticated: true,
      admin: true,
      session: id,
      capabilities: {},
      address: '127.0.0.1',
    })
  })

  test('a wrong Host is a 403 even with the token', async () => {
    const { raw } = await openServer()
    const { status, json } = await raw({ body: initializeWith(), headers: { host: 'rebound.example.com' } })
    expect(status).toBe(403)
    expect(json?.error?.data).toEqual({ code: 'DENIED_BY_POLICY', rule: 'server.allowedHosts' })
  })

  test('B10: a forwarded request whose signature is invalid is a 403 that says so, and is logged', async () => {
    const membership = { self: 'self', addressOf: () => undefined, verify: () => undefined } as unknown as Membership
    const { raw, log } = await openServer({ membership })
    const headers = { host: '10.0.0.2:8080', 'toolway-client': 'signed with another secret' }
    const { status, json } = await raw({ body: initializeWith(), headers })
    expect(status).toBe(403)
    expect(json?.error?.message).toContain('stores.key')
    expect(json?.error?.data).toEqual({ code: 'DENIED_BY_POLICY', rule: 'server.allowedHosts' })
    expect(log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  test('B7, B10: forwarded requests with invalid signatures do not fill the log', async () => {
    const membership = { self: 'self', addressOf: () => undefined, verify: () => undefined } as unknown as Membership
    const { raw, log } = await openServer({ membership })
    const headers = { host: '10.0.0.2:8080', 'toolway-client': 'not signed' }
    for (let n = 0; n < 20; n++) expect((await raw({ body: initializeWith(), headers })).status).toBe(403)
    expect(log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  test('B6, B10: for requests that another replica forwarded, the address of the client counts and is recorded', async () => {
    const membership = { self: 'self', addressOf: () => undefined, verify: String, keep: async () => true }
    const { raw, access } = await openServer({ membership: membership as unknown as Membership })
    const agentOf = vi.spyOn(access, 'agentOf')
    const forwarded = (body: object, more: object = {}) =>
      raw({ body, headers: { 'toolway-client': `${Date.now()} 203.0.113.7 1`, ...more } })
    expect((await forwarded(initializeWith())).status).toBe(200)
    expect(agentOf.mock.calls[0]?.[0]).toMatchObject({ address: '203.0.113.7' })
    expect((await forwarded({ jsonrpc: '2.0', id: 1 })).status).toBe(400)
    expect((await forwarded(initializeWith(), { authorization: 'Bearer wrong' })).status).toBe(401)
    expect(access.turned.map(({ address }) => address)).toEqual(['203.0.113.7', '203.0.113.7'])
  })

  test('E1, F12: a call whose replica fails before it responds gets a result with the code OUTCOME_UNKNOWN', async () => {
    const owner = createServer((socket) => socket.once('data', () => socket.destroy())).listen(0, '127.0.0.1')
    await once(owner, 'listening')
    open.defer(() => void owner.close())
    const address = `http://127.0.0.1:${(owner.address() as AddressInfo).port}`
    const membership = { addressOf: () => address, sign: String, verify: () => undefined } as unknown as Membership
    const { raw } = await openServer({ membership })
    const headers = { 'mcp-session-id': 'owner.1' }
    const ask = async (method: string) =>
      (await raw({ body: { jsonrpc: '2.0', id: 7, method, params: { name: 'a' } }, headers })).json
    const { id, result } = (await ask('tools/call')) as { id?: unknown; result?: Record<string, unknown> }
    expect(id).toBe(7)
    expect(result).toMatchObject({ isError: true, _meta: { 'dev.toolway/error': { code: 'OUTCOME_UNKNOWN' } } })
    expect((await ask('prompts/get'))?.error).toMatchObject({ code: -31019, data: { code: 'OUTCOME_UNKNOWN' } })
  })

  test('F11: a wrong Host or Origin is recorded, as is a missing credential', async () => {
    const { raw, access } = await openServer()
    await raw({ body: initializeWith(), headers: { host: 'rebound.example.com' } })
    await raw({ body: initializeWith(), headers: { origin: 'https://evil.example.com' } })
    const turned = { code: 'DENIED_BY_POLICY', address: '127.0.0.1' }
    expect(access.turned).toEqual([
      { ...turned, detail: 'host: rebound.example.com' },
      { ...turned, detail: 'origin: https://evil.example.com' },
    ])
    // Nobody is turned away from where there is nothing.
    await raw({ path: '/nothing', body: '{}' })
    await raw({ method: 'POST', path: '/livez', body: '{}' })
    expect(access.turned).toHaveLength(2)
  })

  test('a missing Host is a 403 too', async () => {
    const { server } = await openServer()
    const socket = connect(server.port, '127.0.0.1')
    socket.end('POST /mcp HTTP/1.1\r\nConnection: close\r\n\r\n')
    let answer = ''
    for await (const chunk of socket) answer += chunk
    expect(answer).toMatch(/^HTTP\/1.1 403 /)
  })

  test('a foreign Origin is a 403 even with the token; an allowed one may read the answer', async () => {
    const { raw } = await openServer({ config: { allowedOrigins: ['https://app.example.com'] } })
    expect((await raw({ body: initializeWith(), headers: { origin: 'https://evil.example.com' } })).status).toBe(403)
    const { status, headers } = await raw({ body: initializeWith(), headers: { origin: 'https://app.example.com' } })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'https://app.example.com',
      'access-control-expose-headers': expect.stringContaining('Mcp-Session-Id, WWW-Authenticate, Retry-After'),
      vary: 'Origin',
    })
  })

  test('a preflight is answered for allowed origins only, without a credential', async () => {
    const { raw } = await openServer({ config: { allowedOrigins: ['https://app.example.com'] } })
    const preflight = (origin: string) =>
      raw({ method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST', authorization: undefined } })
    const { status, headers } = await preflight('https://app.example.com')
    expect(status).toBe(204)
    expect(headers['access-control-allow-methods']).toBe('POST, GET, DELETE')
    expect(headers['access-control-allow-headers']).toContain('Mcp-Session-Id')
    expect(headers['access-control-allow-headers']).toContain('Toolway-Expose')
    expect((await preflight('https://evil.example.com')).status).toBe(403)
  })
})

describe('opening and closing the server', () => {
  const options = {
    access: createTestAccess(),
    info,
    authenticate: authenticateToken(undefined),
    current: {},
    clock: systemClock,
    log: silentLog,
  }

  test('T5: if the dashboard cannot be loaded once, the next request loads it', async () => {
    let attempts = 0
    let isClosed = false
    const { raw, server } = await openServer({
      async adminEndpoint() {
        if (attempts++ === 0) throw new Error('too many open files')
        return {
          handle: (_, response) => response.end('{}') !== undefined,
          [Symbol.dispose]() {
            isClosed = true
          },
        }
      },
    })
    const statuses = []
    for (let request = 0; request < 3; request++) statuses.push((await raw({ method: 'GET', path: '/' })).status)
    expect([statuses, attempts]).toEqual([[500, 200, 200], 2])
    await server[Symbol.asyncDispose]()
    expect(isClosed).toBe(true)
  })

  test('T5: the server closes although the dashboard could not be loaded', async () => {
    const { raw, server } = await openServer({ adminEndpoint: () => Promise.reject(new Error('too many open files')) })
    expect((await raw({ method: 'GET', path: '/' })).status).toBe(500)
    await expect(server[Symbol.asyncDispose]()).resolves.toBeUndefined()
  })

  test('a port in use is a sentence that says what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    await expect(openHttpServer({ ...options, config: httpConfig({ port }) })).rejects.toThrow(
      new RegExp(`port ${port} on 127\\.0\\.0\\.1 is in use: .*server\\.port or --port`),
    )
    other.close()
  })

  test('an address that is not ours is a sentence that says what to do', async () => {
    await expect(openHttpServer({ ...options, config: httpConfig({ host: '192.0.2.1' }) })).rejects.toThrow(
      /server\.host/,
    )
    await expect(openHttpServer({ ...options, config: httpConfig({ host: 'no.such.name.invalid' }) })).rejects.toThrow(
      /server\.host/,
    )
  })

  test('closing lets calls in flight finish, ends streams, refuses new calls and leaves nothing behind', async () => {
    const { server, session, access, clock, raw } = await openServer()
    const { send, stream, headers } = await session()
    const listening = await stream()
    // The client must not send its next request on the connection of a stream that has ended.
    expect(listening.headers.connection).toBe('close')
    const pending = send({ id: 1, method: 'tools/call', params: { name: 'wait' } })
    await until(() => access.calls.length === 1, { what: 'the call' })
    const half = open.use(await openHalfRequest(server.port))

    const closed = server[Symbol.asyncDispose]()
    expect(await Array.fromAsync(events(listening.body))).toEqual([])
    const late = await half.finish(
      JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' }),
      headers['mcp-session-id'] as string,
    )
    expect(late).toMatch(/^HTTP\/1.1 503 /)
    expect(late).toContain('"code":"OVERLOADED"')
    access.release()
    const answer = await pending
    expect(await answer.body.json()).toMatchObject({ id: 1, result: { content: [{ text: 'waited' }] } })
    await closed
    expect(clock.pending).toBe(0)
    expect(access.listeners).toBe(0)
    await expect(raw({ method: 'GET', path: '/livez' })).rejects.toThrow()
  })

  test('calls that outlast the grace period are cancelled and disconnected', async () => {
    const { server, session, access, clock } = await openServer({ config: { shutdownGrace: 5_000 } })
    const { send } = await session()
    const pending = send(
      { id: 1, method: 'tools/call', params: { name: 'deaf' } },
      { headers: { accept: 'application/json' } },
    )
    const failed = expect(pending.then((answer) => answer.statusCode)).resolves.toBe(204)
    await until(() => access.calls.length === 1, { what: 'the call' })
    const closed = server[Symbol.asyncDispose]()
    clock.advance(4_999)
    expect(access.calls[0]?.signal.aborted).toBe(false)
    clock.advance(1)
    await closed
    expect(access.calls[0]?.signal.aborted).toBe(true)
    await failed
    expect(clock.pending).toBe(0)
  })

  test('a closed server leaves no socket, whatever its clients were doing', async () => {
    const fixture = await openTestServer()
    const { session, access, server } = fixture
    const { send, stream } = await session({ sampling: {} })
    const left = [
      send({ id: 1, method: 'tools/call', params: { name: 'ask' } }),
      send({ id: 2, method: 'tools/call', params: { name: 'wait' } }),
      stream(),
    ].map((pending) => pending.then(({ body }) => body.dump()).catch(() => {}))
    open.use(await openHalfRequest(server.port))
    await until(() => access.calls.length === 2, { what: 'the calls' })
    await fixture[Symbol.asyncDispose]()
    await Promise.all(left)
    await open.disposeAsync()
    const sockets = () => process.getActiveResourcesInfo().filter((name) => /^TCP/.test(name))
    await until(() => sockets().length === 0, { what: 'the sockets to close' })
  })

  test('closing twice at the same time is harmless', async () => {
    const { server } = await openServer()
    await Promise.all([server[Symbol.asyncDispose](), server[Symbol.asyncDispose]()])
  })
})

/** A connection on which a request has begun, so that closing the server does not count it as idle. */
async function openHalfRequest(port: number) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer a-test-token\r\n`)
  socket.on('error', () => {})
  return {
    async finish(body: string, session: string): Promise<string> {
      socket.write(
        `Mcp-Session-Id: ${session}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      let answer = ''
      for await (const chunk of socket) answer += chunk
      return answer
    },
    [Symbol.asyncDispose]: async () => void socket.destroy(),
  }
}
