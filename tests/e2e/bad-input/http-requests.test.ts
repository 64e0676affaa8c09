import { connect as connectSocket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { goodHeaders, type RawSession, rawRequest, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

let toolway: LocalToolway
let session: RawSession

beforeAll(async () => {
  toolway = await startToolway({ mcpServers: { probe: stdioServers.probe() }, server: { maxBody: '64KiB' } })
  session = await rawSession(toolway)
  await session.ask('tools/list')
})

afterAll(() => toolway[Symbol.asyncDispose]())

afterEach(async () => {
  const { result } = await session.answer('tools/call', { name: 'probe.echo', arguments: { message: 'unharmed' } })
  expect(result).toEqual({ content: [{ type: 'text', text: 'Echo: unharmed' }] })
})

describe('an invalid message', () => {
  const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`

  test.each([
    ['nothing', '', -32700],
    ['half a message', '{"jsonrpc":"2.0","id":1,"method":"pi', -32700],
    ['no JSON', 'GET me a tool', -32700],
    ['two messages', `${rpc(1, 'ping')}${rpc(2, 'ping')}`, -32700],
    ['bad JSON in the params', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":}}', -32700],
    ['a number', '42', -32600],
    ['an empty object', '{}', -32600],
    ['an array', `[${rpc(1, 'ping')}]`, -32600],
    ['JSON-RPC 1.0', '{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
    ['one key twice', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', -32600],
    ['far too deep', deep, -32600],
    ['params that are an array', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600],
  ])('E1: %s', async (_, body, code) => {
    const { status, text } = await session.send(body)
    expect({ status, code: JSON.parse(text).error.code }).toEqual({ status: 400, code })
    expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', error: { message: expect.stringMatching(/\w/) } })
  })

  test('E1: bytes that are not UTF-8', async () => {
    const { status, text } = await session.send(Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x7d]))
    expect({ status, code: JSON.parse(text).error.code }).toEqual({ status: 400, code: -32700 })
  })

  test('B6: another content type', async () => {
    expect((await session.send(rpc(1, 'ping'), { 'content-type': 'text/plain' })).status).toBe(415)
  })

  test('B7: a body over the limit', async () => {
    const { status, text } = await session.send(rpc(1, 'tools/call', { name: 'x'.repeat(70_000) }))
    expect({ status, message: JSON.parse(text).error.message }).toEqual({
      status: 413,
      message: expect.stringContaining('maxBody'),
    })
  })

  test('B7: a body over the limit that does not say so beforehand, and never ends', async () => {
    const { hostname, port, pathname } = new URL(toolway.url)
    const headers = Object.entries(goodHeaders(toolway)).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connectSocket(Number(port), hostname)
    let answer = ''
    // Writing on after the answer breaks the pipe; only what was answered counts.
    socket
      .on('error', () => {})
      .on('data', (data) => {
        answer += data
      })
    socket.write(
      `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${headers.join('')}transfer-encoding: chunked\r\n\r\n`,
    )
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`
    const flood = setInterval(() => socket.write(chunk), 1)
    try {
      await until(() => answer.includes('maxBody'), { what: 'the refusal' })
      expect(answer).toMatch(/^HTTP\/1\.1 413 /)
      await until(() => socket.destroyed, { what: 'the server to hang up' })
    } finally {
      clearInterval(flood)
      socket.destroy()
    }
  })
})

describe('a message that asks for what there is not', () => {
  test.each([
    ['an unknown method', 'tools/destroy', {}, { code: -32601 }],
    ['a method of the prototype', 'constructor', {}, { code: -32601 }],
    ['an unknown tool', 'tools/call', { name: 'probe.ecco' }, { code: -32602, data: { code: 'TOOL_NOT_FOUND' } }],
    ['an unknown name', 'tools/call', { name: 'nonsense' }, { code: -32602, data: { code: 'TOOL_NOT_FOUND' } }],
    ['an unknown server', 'tools/call', { name: 'nobody.echo' }, { code: -32602, data: { code: 'SERVER_NOT_FOUND' } }],
    ['no tool at all', 'tools/call', {}, { code: -32602 }],
    ['a tool that is a number', 'tools/call', { name: 7 }, { code: -32602 }],
    ['arguments that are an array', 'tools/call', { name: 'probe.echo', arguments: [] }, { code: -32602 }],
    ['an unknown prompt', 'prompts/get', { name: 'probe.none' }, { code: -32602 }],
    ['an unknown resource', 'resources/read', { uri: 'demo://nowhere' }, { code: -32002 }],
    [
      'a completion of nothing',
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'x' }, argument: {} },
      { code: -32602 },
    ],
  ])('E1, T1: %s', async (_, method, params, error) => {
    const answer = await session.answer(method, params)
    expect(answer.error).toMatchObject({ ...error, message: expect.stringMatching(/\w/) })
    expect(answer).not.toHaveProperty('result')
  })

  test('F9, E1: bad arguments of a native tool are a result that a model can act on', async () => {
    const { result } = await session.answer('tools/call', {
      name: 'hash',
      arguments: { data: 'x', algoritm: 'sha256' },
    })
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('algorithm') }],
      _meta: { 'dev.toolway/error': { code: 'INVALID_ARGUMENTS' } },
    })
  })
})

describe('a request that is refused', () => {
  const body = rpc(1, 'tools/list')

  test.each([
    ['no token', { authorization: '' }],
    ['another token', { authorization: 'Bearer tw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }],
    ['the token as a password', { authorization: `Basic ${Buffer.from('user:pass').toString('base64')}` }],
    ['an empty bearer', { authorization: 'Bearer ' }],
  ])('B6, E1: %s', async (_, headers) => {
    const {
      status,
      headers: got,
      text,
    } = await rawRequest(toolway.url, { headers: { ...goodHeaders(toolway), ...headers }, body })
    expect({ status, challenge: got['www-authenticate'] }).toEqual({
      status: 401,
      challenge: expect.stringMatching(/^Bearer/),
    })
    expect(text).not.toContain(toolway.token)
  })

  test.each([
    ['another host', { host: 'evil.example' }],
    ['a host that only begins like ours', { host: '127.0.0.1.evil.example' }],
    ['another port', { host: '127.0.0.1:1' }],
    ['another origin', { origin: 'https://evil.example' }],
    ['an origin without a name', { origin: 'null' }],
  ])('B6: %s', async (_, headers) => {
    const answer = await rawRequest(toolway.url, { headers: { ...goodHeaders(toolway), ...headers }, body })
    expect(answer.status).toBe(403)
  })

  test('B6: a session id does not replace the token', async () => {
    const headers = { ...goodHeaders(toolway), authorization: '', 'mcp-session-id': 'x' }
    expect((await rawRequest(toolway.url, { headers, body })).status).toBe(401)
  })

  test.each([
    ['no session', {}, 400],
    ['a made-up session', { 'mcp-session-id': 'made-up' }, 404],
  ])('B2: %s', async (_, headers, wanted) => {
    const { status } = await rawRequest(toolway.url, { headers: { ...goodHeaders(toolway), ...headers }, body })
    expect(status).toBe(wanted)
  })

  test.each([
    ['PUT', '/mcp', 405],
    ['POST', '/elsewhere', 404],
  ])('E1: %s %s', async (method, path, wanted) => {
    const { status } = await rawRequest(toolway.url, { method, path, headers: goodHeaders(toolway), body })
    expect(status).toBe(wanted)
  })

  test.each(['/livez', '/readyz'])('%s is available without a credential', async (path) => {
    expect((await rawRequest(toolway.url, { method: 'GET', path })).status).toBe(200)
  })
})
