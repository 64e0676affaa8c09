import { expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import type { Exposure } from '../../core/exposure.ts'
import type { Source } from '../../core/source.ts'
import type { SourceStatus } from '../../core/source-status.ts'
import { tokensOf } from '../../core/tokens.ts'
import { createTestGateway, refusalOf, structuredOf } from '../access.fixture.ts'
import { echo } from '../tools.fixture.ts'

const withStatus =
  (status: Partial<SourceStatus>) =>
  (source: Source): Source => ({
    ...source,
    status: () => ({ ...source.status(), ...status }),
  })

const gateway = createTestGateway({
  servers: {
    files: [echo('read', 'Reads.\nAnd more.'), echo('write')],
    rows: withStatus({
      health: 'degraded',
      reason: 'it is slow',
      since: Date.UTC(2026, 10, 15),
      protocolVersion: '2025-11-25',
      breaker: 'half-open',
      latencyMs: 12.5,
    }),
    old: withStatus({ health: 'stale' }),
  },
})

test('T4: list_tools gives server, name and one line of each tool, meta-tools aside', async () => {
  expect(structuredOf(await gateway.ask('list_tools'))).toEqual({
    tools: [
      { server: 'files', name: 'read', description: 'Reads.' },
      { server: 'files', name: 'write', description: 'Echoes as write.' },
    ],
    total: 2,
  })
  expect(structuredOf(await gateway.ask('list_tools', { server: 'rows' }))).toEqual({ tools: [], total: 0 })
})

test('T4: server_health of one server has exactly the fields of the contract', async () => {
  expect(structuredOf(await gateway.ask('server_health', { server: 'rows' }))).toEqual({
    name: 'rows',
    status: 'degraded',
    reason: 'it is slow',
    since: '2026-11-15T00:00:00.000Z',
    protocolVersion: '2025-11-25',
    breaker: 'half-open',
    tools: 0,
    latencyMs: 12.5,
  })
})

test('T4: server_health of all lists every server; unknown values are null', async () => {
  const { servers } = structuredOf<{ servers: { name: string }[] }>(await gateway.ask('server_health'))
  expect(servers.map(({ name }) => name)).toEqual(['files', 'rows', 'old'])
  expect(servers[0]).toMatchObject({ status: 'healthy', reason: '', protocolVersion: null, latencyMs: null, tools: 2 })
})

test.each(['list_tools', 'find_tool'])('T4: %s of a disabled server says that it is disabled', async (tool) => {
  const off = withStatus({ health: 'disabled', reason: 'disabled in the configuration' })
  const { ask } = createTestGateway({ servers: { files: [echo('read')], off } })
  const missing = [{ server: 'off', status: 'disabled', reason: 'disabled in the configuration' }]
  const query = tool === 'find_tool' ? { query: 'read' } : {}
  const answer = structuredOf<object>(await ask(tool, { server: 'off', ...query }))
  expect(answer).toMatchObject({ total: 0, missing })
  expect(answer).not.toMatchObject({ hint: expect.anything() })
  expect(structuredOf(await ask(tool, query)).missing).toBeUndefined()
})

test.each(['list_tools', 'find_tool', 'get_server_tools'])(
  'T1, J2: %s of a server of which nothing may be used gives the refusal, not an empty list',
  async (tool) => {
    const closed = new ToolwayError('WRITE_NOT_ALLOWED', 'Reads only.', {
      server: 'rows',
      rule: 'mcpServers.rows.readOnly',
    })
    const { ask } = createTestGateway({
      servers: { files: [echo('read')], rows: [] },
      refusal: (server) => (server === 'rows' ? closed : undefined),
    })
    const query = tool === 'find_tool' ? { query: 'read' } : {}
    expect(await refusalOf(ask(tool, { server: 'rows', ...query }))).toBe(closed)
    expect(await ask(tool, { server: 'files', ...query })).toMatchObject({ isError: false })
  },
)

test.each(['list_tools', 'server_health'])('T1: %s refuses an unknown server, with a near miss', async (tool) => {
  expect(await gateway.ask(tool, { server: 'file' })).toMatchObject({ isError: true })
  const refusal = await refusalOf(gateway.ask(tool, { server: 'file' }))
  expect(refusal).toMatchObject({
    code: 'SERVER_NOT_FOUND',
    message: 'There is no server "file"; did you mean "files"?',
  })
  const lost = await refusalOf(gateway.ask(tool, { server: 'zebra' }))
  expect(lost.message).toBe('There is no server "zebra"; call list_servers to see the servers you may use.')
})

test('T4: registry_summary counts servers, tools, servers by status and the tokens of every way of listing', async () => {
  const cost = (mode: Exposure) =>
    gateway
      .view({} as never)
      .shown(mode)
      .reduce((sum, { name, definition }) => sum + tokensOf(name, definition), 0)
  expect(structuredOf(await gateway.ask('registry_summary'))).toEqual({
    servers: 3,
    tools: 2,
    by_status: { healthy: 1, degraded: 1, unhealthy: 0, 'needs-auth': 0, starting: 0, stale: 1, disabled: 0 },
    tokens: { direct: cost('direct'), meta: cost('meta'), both: cost('both'), code: cost('code') },
  })
  expect(cost('both')).toBe(cost('direct') + cost('meta'))
})

test('B8: a tool costs its name, description and schema, four characters a token, rounded up', () => {
  expect(tokensOf('abcd', {})).toBe(1)
  expect(tokensOf('abcd', { description: 'x' })).toBe(2)
  expect(tokensOf('ab', { description: 'x', inputSchema: { type: 'object' } })).toBe(Math.ceil((3 + 17) / 4))
})

test('G5: get_gateway_status gives reload status, policy state, servers and config paths', async () => {
  const status = {
    version: '1.2.3',
    reload_status: {
      attempts: 2,
      successes: 1,
      last_error: 'bad',
      last_success_at: null,
      last_error_at: '2026-11-15T00:00:00Z',
      warnings: [],
    },
    policy_state: { agents: ['a'], default_agent: null, deny_on_missing_agent: true },
    config_paths: ['/etc/toolway.yaml'],
  }
  const open = createTestGateway({ servers: { files: [echo('read')] }, status })
  expect(structuredOf(await open.ask('get_gateway_status'))).toMatchObject({
    ...status,
    time: new Date(open.clock.now()).toISOString(),
    servers: [{ name: 'files', status: 'healthy', tools: 1, transport: 'in-process' }],
  })
})

test('G5, G6: where the caller may not see it, get_gateway_status is refused and names the rule', async () => {
  const refusal = await refusalOf(gateway.ask('get_gateway_status'))
  expect(refusal).toMatchObject({ code: 'DENIED_BY_POLICY', details: { rule: 'defaults.debug' } })
  expect(refusal.message).toContain('defaults.debug')
})

test('G4, G5, T4, F6: the meta-tools have exactly the parameters of the contract, each also agent_id', () => {
  const parameters = Object.fromEntries(
    gateway
      .view({} as never)
      .list('tool')
      .filter(({ entry }) => entry.server === 'toolway')
      .map(({ entry }) => [entry.name, Object.keys(entry.definition.inputSchema?.properties as object)]),
  )
  expect(parameters).toEqual({
    list_servers: ['agent_id', 'include_metadata'],
    find_skill: ['agent_id', 'query', 'limit'],
    get_skill: ['agent_id', 'skill', 'file'],
    get_server_tools: ['agent_id', 'server', 'names', 'pattern', 'max_schema_tokens'],
    execute_tool: ['agent_id', 'server', 'tool', 'args', 'timeout_ms'],
    call_read_tool: ['agent_id', 'server', 'tool', 'args', 'timeout_ms'],
    call_write_tool: ['agent_id', 'server', 'tool', 'args', 'timeout_ms'],
    execute_tools: ['agent_id', 'calls', 'timeout_ms'],
    find_tool: ['agent_id', 'query', 'limit', 'server', 'detail'],
    describe_tools: ['agent_id', 'names', 'max_tokens'],
    list_tools: ['agent_id', 'server', 'detail'],
    server_health: ['agent_id', 'server'],
    registry_summary: ['agent_id'],
    get_gateway_status: ['agent_id'],
  })
})

test.each([
  ['list_servers', {}, { returned: 1 }],
  ['list_tools', {}, { returned: 2 }],
  ['find_tool', { query: 'read', limit: 7 }, { requested: 7, returned: 1 }],
  ['get_server_tools', { server: 'files', names: ['read', 'none'] }, { requested: 2, available: 2, returned: 1 }],
])('F11: %s says how much was requested and returned, and how many tokens that is', async (tool, args, numbers) => {
  const { listing } = await createTestGateway({ servers: { files: [echo('read'), echo('write')] } }).ask(tool, args)
  expect(listing).toEqual({ ...numbers, tokens: expect.any(Number) })
  expect(listing?.tokens).toBeGreaterThan(3)
})
