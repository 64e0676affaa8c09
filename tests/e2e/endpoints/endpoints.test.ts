import { hash } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { goodHeaders, rawRequest, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

const open = new AsyncDisposableStack()
const allow = { servers: ['*'] }
const scoped = 'a-key-for-research-alone'
const config = {
  mcpServers: { web: stdioServers.manyTools('web', 3), files: stdioServers.manyTools('files', 4) },
  agents: { default: { allow }, researcher: { allow, deny: { tools: { web: ['tool_2'] } } } },
  defaults: { agent: 'default' },
  endpoints: {
    research: { servers: ['web'], tools: { files: ['tool_1'] }, agent: 'researcher' },
    everything: { expose: 'direct' as const },
  },
  auth: {
    token: 'the-token-of-the-operator',
    keys: [{ id: 'reader', hash: `sha256:${hash('sha256', scoped)}`, agents: ['*'], endpoints: ['research'] }],
  },
}

let toolway: LocalToolway

beforeAll(async () => {
  toolway = open.use(await startToolway(config, { watch: false }))
  await toolway.gateway.refresh()
})

afterAll(() => open.disposeAsync())

const at = (path: string, token = toolway.token) => ({ ...toolway, url: toolway.url + path, token })

async function connect(path: string, era: 'session' | 'stateless', token = toolway.token): Promise<Client> {
  const mode = era === 'stateless' ? { pin: '2026-07-28' } : 'legacy'
  const client = new Client({ name: 'story', version: '1.0.0' }, { versionNegotiation: { mode } })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(toolway.url + path), { requestInit }))
  open.defer(() => client.close())
  return client
}

const initialize = rpc(1, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'a', version: '1' },
})
const post = (path: string, token?: string) =>
  rawRequest(toolway.url + path, { headers: goodHeaders(at(path, token)), body: initialize })

describe.each(['session', 'stateless'] as const)('an endpoint for a group of tools, %s', (era) => {
  test('V15: lists, finds and calls only what it serves and its agent may use', async () => {
    const client = await connect('/research', era)
    const names = (await client.listTools()).tools.map(({ name }) => name).filter((name) => name.includes('__'))
    expect(names).toEqual(['web__tool_0', 'web__tool_1', 'files__tool_1'])
    const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args })
    expect((await call('files__tool_1', { message: 'a' })).isError).not.toBe(true)
    const denied = await call('files__tool_0', { message: 'a' })
    expect(denied._meta?.['dev.toolway/error']).toMatchObject({
      code: 'DENIED_BY_POLICY',
      rule: 'endpoints.research',
    })
    const listed = await call('list_servers', {})
    expect(listed.structuredContent).toMatchObject({ servers: [{ name: 'web' }, { name: 'files' }] })
    const found = await call('find_tool', { query: 'record in files', limit: 20, detail: 'names' })
    expect((found.structuredContent as { matches: string[] }).matches).not.toContain('files.tool_0')
    const inner = await call('execute_tool', { server: 'files', tool: 'tool_3', args: { message: 'a' } })
    expect(inner._meta?.['dev.toolway/error']).toMatchObject({ code: 'DENIED_BY_POLICY' })
    const other = await call('list_servers', { agent_id: 'default' })
    expect(other._meta?.['dev.toolway/error']).toMatchObject({ code: 'INVALID_AGENT_ID' })
  })

  test('V15: has an exposure mode of its own', async () => {
    const names = (await (await connect('/everything', era)).listTools()).tools.map(({ name }) => name)
    expect(names).toContain('files__tool_0')
    expect(names).not.toContain('find_tool')
  })

  test('V15: a key for one endpoint connects to no other', async () => {
    const client = await connect('/research', era, scoped)
    expect((await client.listTools()).tools.length).toBeGreaterThan(0)
    await expect(connect('', era, scoped)).rejects.toThrow()
    await expect(connect('/everything', era, scoped)).rejects.toThrow()
  })
})

test('V15: other paths and other doors stay closed to a key for one endpoint', async () => {
  for (const path of ['', '/everything']) {
    const { status, text } = await post(path, scoped)
    expect([path, status, JSON.parse(text).error.data.code]).toEqual([path, 403, 'DENIED_BY_POLICY'])
  }
  const origin = new URL(toolway.url).origin
  const headers = { authorization: `Bearer ${scoped}` }
  const tools = await rawRequest(`${origin}/admin/api/tools`, { method: 'GET', headers })
  expect([tools.status, JSON.parse(tools.text).error.code]).toEqual([403, 'DENIED_BY_POLICY'])
  const models = await rawRequest(`${origin}/v1/models`, { method: 'GET', headers })
  expect([403, 404]).toContain(models.status)
})

test('V15: there is nothing at a path without an endpoint, and a session stays at its own', async () => {
  for (const path of ['/nothing', '/constructor', '/research/more']) expect((await post(path)).status).toBe(404)
  expect((await post('/research/stream')).status).toBe(200)
  const { headers } = await rawSession(at('/research'))
  const body = rpc(7, 'tools/list', {})
  const elsewhere = await rawRequest(toolway.url, { headers, body })
  expect(elsewhere.status).toBe(404)
})

test('V15: endpoints come and go with the configuration', async () => {
  const changing = open.use(await startToolway(config))
  await changing.gateway.refresh()
  const { answer } = await rawSession({ ...changing, url: `${changing.url}/research` })
  const { endpoints: _, ...rest } = config
  await changing.rewrite({ ...rest, endpoints: { other: {} } })
  await changing.gateway.reload()
  const gone = { ...changing, url: `${changing.url}/research` }
  expect((await rawRequest(gone.url, { headers: goodHeaders(gone), body: initialize })).status).toBe(404)
  await expect(answer('tools/list')).rejects.toThrow()
  const { answer: ask } = await rawSession({ ...changing, url: `${changing.url}/other` })
  expect(JSON.stringify(await ask('tools/list'))).toContain('files__tool_0')
})

test('V15: stdio serves an endpoint too, and names those that exist', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const served = toolway.gateway.stdio(input, output, { endpoint: 'research' })
  input.write(`${initialize}\n`)
  input.end(`${rpc(2, 'tools/list', {})}\n`)
  await served
  const text = String(output.read())
  expect(text).toContain('files__tool_1')
  expect(text).not.toContain('files__tool_0')
  await expect(toolway.gateway.stdio(input, output, { endpoint: 'reserch' })).rejects.toThrow(/research/)
  const other = toolway.gateway.stdio(input, output, { endpoint: 'research', agent: 'default' })
  await expect(other).rejects.toThrow(/act as researcher/)
})
