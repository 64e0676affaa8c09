import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { goodHeaders, rawRequest, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

const open = new AsyncDisposableStack()
const few = { mcpServers: { some: stdioServers.manyTools('some', 5) } }
const many = {
  mcpServers: { some: stdioServers.manyTools('some', 5), lots: stdioServers.manyTools('lots', 400, 200) },
  defaults: { alwaysLoad: ['some.tool_1'] },
}

let small: LocalToolway
let large: LocalToolway

beforeAll(async () => {
  small = open.use(await startToolway(few))
  large = open.use(await startToolway(many))
  await Promise.all([small.gateway.refresh(), large.gateway.refresh()])
})

afterAll(() => open.disposeAsync())

interface ClientOptions {
  readonly name?: string
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly era?: 'session' | 'stateless'
}

async function connect(toolway: LocalToolway, options: ClientOptions = {}): Promise<Client> {
  const { name = 'story', query = '', headers: more = {}, era = 'session' } = options
  const mode = era === 'stateless' ? { pin: '2026-07-28' } : 'legacy'
  const client = new Client({ name, version: '1.0.0' }, { versionNegotiation: { mode } })
  const headers = { authorization: `Bearer ${toolway.token}`, ...more }
  await client.connect(new StreamableHTTPClientTransport(new URL(toolway.url + query), { requestInit: { headers } }))
  open.defer(() => client.close())
  return client
}

/** What a list costs in a model's context, at four characters per token. */
async function listOf(client: Client) {
  const { tools } = await client.listTools()
  const length = (text: string | undefined) => text?.length ?? 0
  const characters = tools.map(
    ({ name, description, inputSchema }) => length(name) + length(description) + JSON.stringify(inputSchema).length,
  )
  return { tools, names: tools.map(({ name }) => name), tokens: characters.reduce((sum, one) => sum + one, 0) / 4 }
}

describe.each(['session', 'stateless'] as const)('a client of the %s era', (era) => {
  test('V14: by default, a client sees all tools while they are cheap', async () => {
    const { names } = await listOf(await connect(small, { era }))
    expect(names).toEqual(expect.arrayContaining(['find_tool', 'execute_tool', 'some__tool_0', 'some__tool_4']))
  })

  test('V14: by default, hundreds of tools cost at most 12,000 tokens, and the instructions say how to find them', async () => {
    const client = await connect(large, { era })
    const { names, tokens } = await listOf(client)
    expect(names).toEqual(expect.arrayContaining(['find_tool', 'execute_tool', 'some__tool_1']))
    expect(names.filter((name) => name.includes('__'))).toEqual(['some__tool_1'])
    expect(tokens).toBeLessThan(12_000)
    expect(client.getInstructions()).toMatch(/find_tool.*lots/s)
    const found = await client.callTool({ name: 'find_tool', arguments: { query: 'tool_399 record in lots' } })
    expect(found.isError).not.toBe(true)
    const called = await client.callTool({ name: 'lots__tool_399', arguments: { message: 'a' } })
    expect(called.content).toEqual([{ type: 'text', text: 'lots tool_399: a' }])
  })

  test('V14: a client that searches tools itself gets all of them, without meta-tools, and short instructions', async () => {
    const client = await connect(large, { era, name: 'claude-code' })
    const { tools, names } = await listOf(client)
    expect(names.filter((name) => name.startsWith('lots__'))).toHaveLength(400)
    expect(names).not.toContain('find_tool')
    const loaded = tools.filter(({ _meta }) => _meta?.['anthropic/alwaysLoad'] === true)
    expect(loaded.map(({ name }) => name)).toEqual(['some__tool_1'])
    expect(client.getInstructions()?.length).toBeLessThan(2_000)
    expect(client.getInstructions()).toContain('lots (400)')
  })

  test('V14: a client can ask for another mode in the URL or a header', async () => {
    const direct = await listOf(await connect(large, { era, query: '?expose=direct' }))
    expect(direct.names).toContain('lots__tool_399')
    expect(direct.names).not.toContain('find_tool')
    const meta = await listOf(await connect(small, { era, headers: { 'toolway-expose': 'meta' } }))
    expect(meta.names).not.toContain('some__tool_0')
  })
})

test('V14: an unknown mode is an error that names the modes', async () => {
  const body = rpc(1, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'a', version: '1' },
  })
  const { status, text } = await rawRequest(`${small.url}?expose=all`, { headers: goodHeaders(small), body })
  expect([status, JSON.parse(text).error.data.code]).toEqual([400, 'INVALID_ARGUMENTS'])
  expect(text).toContain('auto, direct, meta, both, code')
})

test('V14: within a session the mode stays, whatever servers add', async () => {
  const toolway = open.use(await startToolway(few))
  await toolway.gateway.refresh()
  const before = await connect(toolway)
  expect((await listOf(before)).names).toContain('some__tool_0')
  await toolway.rewrite(many)
  await toolway.gateway.reload()
  await toolway.gateway.refresh()
  expect((await listOf(before)).names).toContain('lots__tool_399')
  expect((await listOf(await connect(toolway))).names).not.toContain('lots__tool_399')
})
