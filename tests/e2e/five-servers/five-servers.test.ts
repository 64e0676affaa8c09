import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { unusedPort } from '../../fixtures/listening.ts'
import { type RemoteServer, startEverything, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { calls } from './calls.ts'

const open = new AsyncDisposableStack()
let folder: string
let http: RemoteServer
let toolway: LocalToolway
let client: TestClient

beforeAll(async () => {
  folder = open.use(await temporaryFolder()).path
  const [streamable, sse] = await Promise.all([startEverything('streamableHttp'), startEverything('sse')])
  http = streamable
  open.use(sse)
  const only = (server: string) => ({ tools: { include: Object.keys(calls(folder)[server] ?? {}) } })
  toolway = open.use(
    await startToolway({
      history: {},
      mcpServers: {
        local: { ...stdioServers.everything(), ...only('local'), description: 'All of the protocol' },
        remote: { url: http.url, ...only('remote') },
        older: { url: sse.url, transport: 'sse', ...only('older') },
        files: { ...stdioServers.filesystem(folder), ...only('files') },
        memory: { ...stdioServers.memory(join(folder, 'memory.jsonl')), ...only('memory') },
        broken: { command: process.execPath, args: ['-e', 'console.error("no licence found"); process.exit(7)'] },
        absent: { url: `http://127.0.0.1:${await unusedPort()}/mcp` },
      },
      discovery: { listDeadline: '20s' },
    }),
  )
  client = open.use(await connect('v2', { endpoint: toolway }))
  await client.listTools()
})

afterAll(async () => {
  await open.disposeAsync()
  await http[Symbol.asyncDispose]()
})

const up = ['local', 'remote', 'older', 'files', 'memory']
const down = ['broken', 'absent']

interface Servers {
  readonly servers: readonly Record<string, unknown>[]
}

interface ServerTools {
  readonly tools: readonly { name: string }[]
  readonly returned: number
  readonly tokens_used: number | null
}

interface Matches {
  readonly matches: readonly { server: string; name: string }[]
}

/** The answer of a meta-tool, which must be the same as structured content and as text. */
async function ask<T>(tool: string, args: Record<string, unknown> = {}): Promise<T> {
  const { content, structuredContent, isError } = await client.callTool(tool, args)
  expect(isError).toBeFalsy()
  expect(JSON.parse((content[0] as { text: string }).text)).toEqual(structuredContent)
  return structuredContent as T
}

describe('twenty tools on five servers', () => {
  test('F1, T3: all of them are listed, and the two servers that are down hold nothing up', async () => {
    const names = (await client.listTools()).map(({ name }) => name)
    const wanted = Object.entries(calls(folder)).flatMap(([server, tools]) =>
      Object.keys(tools).map((tool) => `${server}__${tool}`),
    )
    expect(wanted).toHaveLength(20)
    expect(names.filter((name) => name.includes('__')).sort()).toEqual(wanted.sort())
  })

  test('T3, F3: every one of them runs as server.tool', async () => {
    for (const [server, tools] of Object.entries(calls(folder))) {
      for (const [tool, args] of Object.entries(tools)) {
        const result = await client.callTool(`${server}.${tool}`, args)
        expect(result.isError, `${server}.${tool}: ${JSON.stringify(result.content)}`).toBeFalsy()
        expect(result.content.length).toBeGreaterThan(0)
      }
    }
  })

  test('G4, F1: the meta-tools stand beside them', async () => {
    const names = (await client.listTools()).map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining([
        ...['list_servers', 'get_server_tools', 'execute_tool', 'execute_tools', 'find_tool'],
        ...['list_tools', 'server_health', 'registry_summary', 'get_gateway_status'],
      ]),
    )
  })
})

describe('the meta-tools', () => {
  test('G4: list_servers', async () => {
    const { servers } = await ask<Servers>('list_servers')
    expect(servers.map(({ name }) => name)).toEqual(expect.arrayContaining([...up, ...down, 'native']))
    for (const server of servers) expect(Object.keys(server).sort()).toEqual(['description', 'name', 'status', 'tools'])
    const local = servers.find(({ name }) => name === 'local')
    expect(local).toEqual({ name: 'local', description: 'All of the protocol', status: 'healthy', tools: 4 })
    expect(servers.find(({ name }) => name === 'broken')).toMatchObject({ status: 'unhealthy', tools: 0 })

    const detailed = await ask<Servers>('list_servers', { include_metadata: true })
    const older = detailed.servers.find(({ name }) => name === 'older')
    expect(older).toMatchObject({ transport: 'sse', era: 'legacy', since: expect.any(String), last_error: null })
    const broken = detailed.servers.find(({ name }) => name === 'broken')
    expect(broken).toMatchObject({ last_error: expect.stringContaining('no licence found') })
  })

  test('G4: get_server_tools, whole and narrowed', async () => {
    const all = await ask<ServerTools>('get_server_tools', { server: 'files' })
    expect(Object.keys(all).sort()).toEqual([
      'returned',
      'server',
      'tokens_used',
      'tools',
      'total_available',
      'truncated',
    ])
    expect(all).toMatchObject({ server: 'files', total_available: 4, returned: 4, tokens_used: null, truncated: false })
    expect(Object.keys(all.tools[0] ?? {}).sort()).toEqual(['description', 'inputSchema', 'name'])

    const some = await ask<ServerTools>('get_server_tools', {
      server: 'files',
      pattern: '*_file',
      names: ['write_file', 'read_text_file'],
    })
    expect(some.tools.map(({ name }) => name).sort()).toEqual(['read_text_file', 'write_file'])

    const cut = await ask<ServerTools>('get_server_tools', { server: 'files', max_schema_tokens: 120 })
    expect(cut).toMatchObject({ truncated: true, total_available: 4 })
    expect(cut.returned).toBeLessThan(4)
    expect(cut.tokens_used).toBeLessThanOrEqual(120)
  })

  test("G4: execute_tool gives the tool's own result, unchanged", async () => {
    const image = await client.request('tools/call', {
      name: 'execute_tool',
      arguments: { server: 'remote', tool: 'get-tiny-image', args: {} },
    })
    expect(image).toEqual(await client.request('tools/call', { name: 'remote.get-tiny-image', arguments: {} }))
  })

  test('F6: execute_tools answers in the order asked, and one failure hides nothing', async () => {
    const { results } = await ask<{ results: unknown[] }>('execute_tools', {
      calls: [
        { server: 'remote', tool: 'echo', args: { message: 'one' } },
        { server: 'nowhere', tool: 'echo', args: {} },
        { server: 'local', tool: 'get-sum', args: { a: 20, b: 22 } },
        { server: 'absent', tool: 'echo', args: {} },
        { server: 'older', tool: 'echo', args: { message: 'five' } },
      ],
    })
    expect(results).toHaveLength(5)
    expect(results.map((result) => JSON.stringify(result))).toEqual([
      expect.stringContaining('Echo: one'),
      expect.stringContaining('SERVER_NOT_FOUND'),
      expect.stringContaining('42'),
      expect.stringMatching(/SERVER_UN(AVAILABLE|HEALTHY)/),
      expect.stringContaining('Echo: five'),
    ])
  })

  test.each(['find_tool', 'search_tools'])('T4: %s', async (name) => {
    const { matches } = await ask<Matches>(name, { query: 'echo a message back', limit: 3 })
    expect(matches.length).toBeLessThanOrEqual(3)
    expect(matches[0]).toEqual({
      server: expect.any(String),
      name: 'echo',
      description: expect.stringContaining('Echo'),
    })
    const inFiles = await ask<Matches>(name, { query: 'read a file', server: 'files', detail: 'full' })
    expect(inFiles.matches[0]).toMatchObject({
      server: 'files',
      name: 'read_text_file',
      inputSchema: { type: 'object' },
    })
    expect(new Set(inFiles.matches.map(({ server }) => server))).toEqual(new Set(['files']))
  })

  test('T4: list_tools gives names and one-line descriptions', async () => {
    const { tools } = await ask<{ tools: { name: string; description: string }[] }>('list_tools', { server: 'memory' })
    expect(tools).toHaveLength(4)
    for (const { name, description } of tools) {
      expect(name).toMatch(/create_entities|add_observations|search_nodes|read_graph/)
      expect(description).not.toContain('\n')
    }
  })

  test('T4, T5: server_health lists the servers that are up and down, with reasons', async () => {
    const { servers } = await ask<Servers>('server_health')
    const health = new Map(servers.map((server) => [server.name, server]))
    for (const name of up) expect(health.get(name)).toMatchObject({ status: 'healthy', breaker: 'closed', tools: 4 })
    for (const name of down) expect(health.get(name)).toMatchObject({ status: 'unhealthy', tools: 0 })
    expect(Object.keys(health.get('remote') ?? {})).toEqual(
      expect.arrayContaining(['name', 'status', 'reason', 'since', 'protocolVersion', 'breaker', 'tools', 'latencyMs']),
    )
    expect(health.get('remote')).toMatchObject({ protocolVersion: '2025-11-25', latencyMs: expect.any(Number) })
    expect(health.get('broken')?.reason).toMatch(/no licence found/)
    expect(health.get('absent')?.reason).toMatch(/refused|absent/i)
  })

  test('T4: registry_summary', async () => {
    const summary = await ask<Record<string, unknown>>('registry_summary')
    expect(summary).toMatchObject({
      servers: up.length + down.length + 1,
      by_status: { unhealthy: 2, stale: 0, disabled: 0 },
      tokens: { direct: expect.any(Number), meta: expect.any(Number) },
    })
    expect(summary.tools).toBeGreaterThanOrEqual(20)
  })
})

describe('three different errors, before anything is sent', () => {
  test.each(['nowhere.echo', 'nowhere::echo'])('T1, E1: unknown server (%s)', async (name) => {
    await expect(client.callTool(name)).rejects.toMatchObject({ code: -32602, data: { code: 'SERVER_NOT_FOUND' } })
  })

  test('T1, E1: unknown tool, with a near miss', async () => {
    await expect(client.callTool('remote.ecko')).rejects.toMatchObject({
      code: -32602,
      data: { code: 'TOOL_NOT_FOUND' },
      message: expect.stringContaining('echo'),
    })
  })

  test.each(down)('T1, E1: unhealthy server (%s)', async (server) => {
    const result = await client.callTool('execute_tool', { server, tool: 'echo', args: {} })
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: expect.stringContaining(server) }],
      _meta: { 'dev.toolway/error': { code: expect.stringMatching(/^SERVER_UN(HEALTHY|AVAILABLE)$/), server } },
    })
  })

  test.each([
    ['nowhere', 'echo', 'SERVER_NOT_FOUND', 'list_servers'],
    ['remote', 'ecko', 'TOOL_NOT_FOUND', '"echo"'],
  ])(
    'T1, E1: execute_tool and execute_tools name %s.%s in a result that a model can act on',
    async (server, tool, code, hint) => {
      const asked = { server, tool, args: {} }
      const result = await client.callTool('execute_tool', asked)
      expect(result).toMatchObject({
        isError: true,
        content: [{ type: 'text', text: expect.stringContaining(hint) }],
        _meta: { 'dev.toolway/error': { code } },
      })
      const right = { server: 'remote', tool: 'echo', args: { message: 'hello' } }
      const { structuredContent } = await client.callTool('execute_tools', { calls: [asked, right] })
      expect(structuredContent).toMatchObject({
        results: [{ ok: false, error: { code, message: expect.stringContaining(hint) } }, { ok: true }],
      })
    },
  )
})

test('T5, F12: calls to a server that goes down fail fast, do not affect the others, and succeed when it is back', async () => {
  await http[Symbol.asyncDispose]()
  const failed = await client.callTool('remote.echo', { message: 'anybody there?' })
  expect(failed).toMatchObject({ isError: true, _meta: { 'dev.toolway/error': { server: 'remote' } } })
  const status = () => ask<Record<string, unknown>>('server_health', { server: 'remote' })
  await until(
    async () => {
      const again = await client.callTool('remote.echo', { message: 'and now?' })
      expect(again).toMatchObject({ isError: true, _meta: { 'dev.toolway/error': { server: 'remote' } } })
      return (await status()).status === 'unhealthy'
    },
    { what: 'remote to be seen unhealthy' },
  )
  const { content } = await client.callTool('local.echo', { message: 'still here' })
  expect(content).toEqual([{ type: 'text', text: 'Echo: still here' }])
  expect((await client.listTools()).map(({ name }) => name)).toContain('remote__echo')

  http = await startEverything('streamableHttp', http.port)
  const answer = await until(
    async () => {
      const result = await client.callTool('remote.echo', { message: 'back' })
      return result.isError ? undefined : result
    },
    { what: 'remote to come back' },
  )
  expect(answer.content).toEqual([{ type: 'text', text: 'Echo: back' }])
  expect(await status()).toMatchObject({ status: 'healthy' })
})
