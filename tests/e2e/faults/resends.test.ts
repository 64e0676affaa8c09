import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RawSession, rawSession } from '../../fixtures/raw-http.ts'
import { json, type RogueHttp, result, rogueHttp, type Script, stream } from '../../fixtures/rogue-http.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

/** How the server speaks: the handshake with and without a session, and the stateless revision. */
const kinds = ['session', 'sessionless', 'stateless'] as const
type Kind = (typeof kinds)[number]

const retries = 2

type Fault =
  Parameters<Script> extends [unknown, infer Response, infer Socket]
    ? (id: unknown, response: Response, socket: Socket) => unknown
    : never

const status =
  (code: number, body = '', headers: Record<string, string> = {}): Fault =>
  (_, response) =>
    response.writeHead(code, headers).end(body)

const notFound = (id: unknown) =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32001, message: 'Session not found' } })

/** What the server answers after it has run the call. */
const faults: Readonly<Record<string, Fault>> = {
  ...Object.fromEntries(
    [301, 303, 307, 400, 401, 403, 404, 405, 406, 408, 409, 410, 421, 425, 500, 501, 502, 503, 504].map((code) => [
      `HTTP ${code}`,
      status(code),
    ]),
  ),
  'HTTP 400 that names the session': status(400, 'Bad Request: No valid session ID provided'),
  'HTTP 404 with an error without an id': (_, response) => json(response, notFound(null), 404),
  'HTTP 404 with an error for the request': (id, response) => json(response, notFound(id), 404),
  'HTTP 401 with a challenge': status(401, '', { 'www-authenticate': 'Bearer error="invalid_token"' }),
  'HTTP 429 with Retry-After': status(429, '', { 'retry-after': '0' }),
  'HTTP 503 with Retry-After': status(503, '', { 'retry-after': '0' }),
  'HTTP 503 of a proxy': status(503, 'upstream connect error or disconnect/reset before headers'),
  'no answer': (_id, _response, socket) => socket.resetAndDestroy(),
  'a closed connection': (_id, _response, socket) => socket.end(),
  'half an answer': (_, response, socket) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
    response.write('{"jsonrpc":"2.0",', () => socket.resetAndDestroy())
  },
  'an empty stream': (_, response) => stream(response).end(),
  'something else': (_, response) => json(response, '"hello"'),
}

const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
const capabilities = { tools: {} }
const serverInfo = { name: 'counting', version: '1' }

/** A server that runs each call, counts it, and then answers as the arguments say. */
async function countingServer(kind: Kind): Promise<RogueHttp & { executions(key: string): number }> {
  const executed: string[] = []
  const sessions = new Set<string>()
  const answers: Record<string, object> = {
    ...(kind === 'stateless'
      ? { 'server/discover': { supportedVersions: ['2026-07-28'], capabilities, serverInfo } }
      : { initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo } }),
    ping: {},
    'tools/list': { tools: [tool('write'), tool('read'), tool('set')] },
  }
  const server = await rogueHttp((got, response, socket) => {
    const { id, method = '', params } = got.message ?? {}
    if (got.method === 'GET') return response.writeHead(405).end()
    if (got.method === 'DELETE' || id === undefined) return response.writeHead(202).end()
    if (method === 'tools/call') {
      const { key = '', fault = '' } = params?.arguments ?? {}
      executed.push(String(key))
      const done = () => json(response, result(id, { content: [{ type: 'text', text: 'done' }] }))
      return (faults[String(fault)] ?? done)(id, response, socket)
    }
    const answer = answers[method]
    if (!answer) return response.writeHead(400).end()
    const session = method === 'initialize' && kind === 'session' ? `session-${sessions.size + 1}` : undefined
    if (session) sessions.add(session)
    json(response, result(id, answer), 200, session ? { 'mcp-session-id': session } : {})
  })
  return Object.assign(server, { executions: (key: string) => executed.filter((one) => one === key).length })
}

const open = new AsyncDisposableStack()
const servers = {} as Record<Kind, Awaited<ReturnType<typeof countingServer>>>
let toolway: LocalToolway
let caller: RawSession

beforeAll(async () => {
  for (const kind of kinds) servers[kind] = open.use(await countingServer(kind))
  const declared = { readTools: ['read'], idempotentTools: ['set'] }
  toolway = open.use(
    await startToolway({
      mcpServers: Object.fromEntries(kinds.map((kind) => [kind, { url: servers[kind].url, ...declared }])),
      retry: { attempts: retries, backoff: '1ms', budget: 1 },
      breaker: { failures: 1000, rate: 1, minimumCalls: 10_000 },
    }),
  )
  caller = await rawSession(toolway)
  await caller.answer('tools/list')
})

afterAll(() => open.disposeAsync())

async function codeOf(kind: Kind, name: string, args: Record<string, unknown>): Promise<string> {
  const { result: returned, error } = await caller.answer('tools/call', { name: `${kind}.${name}`, arguments: args })
  if (!returned) return `rpc ${error?.code}`
  const { isError, _meta } = returned as { isError?: boolean; _meta?: { 'dev.toolway/error'?: { code: string } } }
  return isError ? String(_meta?.['dev.toolway/error']?.code) : 'answered'
}

describe.each(kinds)('F12: a server (%s) that runs a call and then answers with', (kind) => {
  test.each(Object.keys(faults))('%s runs a write exactly once', async (fault) => {
    await codeOf(kind, 'write', { key: 'before' })
    const key = `write ${fault}`
    expect(await codeOf(kind, 'write', { key, fault })).not.toBe('answered')
    expect(servers[kind].executions(key)).toBe(1)
    // What was lost concerns nobody else.
    expect(await codeOf(kind, 'write', { key: 'after' })).toBe('answered')
  })

  test.each(Object.keys(faults))('%s runs what was declared safe no more often than retries allow', async (fault) => {
    for (const name of ['read', 'set']) {
      const key = `${name} ${fault}`
      await codeOf(kind, name, { key, fault })
      expect(servers[kind].executions(key)).toBeGreaterThan(0)
      expect(servers[kind].executions(key)).toBeLessThanOrEqual(1 + retries)
    }
  })
})

test.each(['write', 'read', 'set'])('F12: after a 404 in a session, %s gets one more session at most', async (name) => {
  const opened = () => servers.session.got.filter(({ message }) => message?.method === 'initialize').length
  await codeOf('session', name, { key: 'before' })
  const before = opened()
  const key = `sessions ${name}`
  expect(await codeOf('session', name, { key, fault: 'HTTP 404' })).toBe('OUTCOME_UNKNOWN')
  expect(servers.session.executions(key)).toBe(name === 'write' ? 1 : 2)
  await codeOf('session', name, { key: 'after' })
  expect(opened() - before).toBeLessThanOrEqual(2)
})

test('F12: with retry.onTimeout, a read that hangs is sent once more, and a write is not', async () => {
  const executed: string[] = []
  await using server = await rogueHttp((got, response) => {
    const { id, method = '', params } = got.message ?? {}
    if (got.method === 'GET') return response.writeHead(405).end()
    if (id === undefined) return response.writeHead(202).end()
    if (method === 'tools/call') {
      const { name } = params as { name: string }
      executed.push(name)
      if (executed.filter((one) => one === name).length === 1) return
    }
    const answer =
      method === 'initialize'
        ? { protocolVersion: '2025-11-25', capabilities, serverInfo }
        : { tools: [tool('write'), tool('read')], content: [{ type: 'text', text: 'done' }] }
    json(response, result(id, answer))
  })
  await using gateway = await startToolway({
    mcpServers: { slow: { url: server.url, readTools: ['read'], timeout: '1s' } },
    retry: { onTimeout: true },
  })
  const one = await rawSession(gateway)
  const call = async (name: string) => {
    const { result: returned } = await one.answer('tools/call', { name: `slow.${name}`, arguments: {} })
    return JSON.stringify(returned)
  }
  expect(await call('read')).toContain('done')
  expect(await call('write')).toContain('TIMEOUT')
  expect(executed).toEqual(['read', 'read', 'write'])
})
