import { expect, test } from 'vitest'
import type { Source } from '../../core/source.ts'
import { createTestGateway, refusalOf, structuredOf } from '../access.fixture.ts'
import { echo } from '../tools.fixture.ts'

const down = (source: Source): Source => ({
  ...source,
  status: () => ({
    health: 'unhealthy',
    reason: 'it does not answer',
    since: Date.UTC(2026, 10, 15),
    description: 'Rows',
    transport: 'stdio',
    era: 'legacy',
    protocolVersion: '2025-11-25',
    lastError: 'spawn ENOENT',
    breaker: 'open',
  }),
})

const gateway = () =>
  createTestGateway({
    servers: { files: [echo('read'), echo('write')], rows: down },
    descriptions: { files: 'Files here' },
  })

test('G4: list_servers gives name, description, status and number of tools of each server, meta-tools aside', async () => {
  expect(structuredOf(await gateway().ask('list_servers'))).toEqual({
    servers: [
      { name: 'files', description: 'Files here', status: 'healthy', tools: 2 },
      { name: 'rows', description: 'Rows', status: 'unhealthy', tools: 0 },
    ],
  })
})

test('G4: with metadata also transport, era, since and last error; unknown values are null', async () => {
  const { servers } = structuredOf<{ servers: object[] }>(
    await gateway().ask('list_servers', { include_metadata: true }),
  )
  expect(servers[0]).toMatchObject({ transport: 'in-process', era: null, last_error: null })
  expect(servers[1]).toEqual({
    name: 'rows',
    description: 'Rows',
    status: 'unhealthy',
    tools: 0,
    transport: 'stdio',
    era: 'legacy',
    since: '2026-11-15T00:00:00.000Z',
    last_error: 'spawn ENOENT',
  })
})

test('G4: list_servers waits for servers that have not been ready yet', async () => {
  let waited = false
  const waiting = createTestGateway({
    servers: { files: [echo('read')] },
    ready: async () => {
      waited = true
    },
  })
  await waiting.ask('list_servers')
  expect(waited).toBe(true)
})

test('G7: agent_id goes through the hook on every meta-tool; an agent that the caller may not be is refused', async () => {
  const here = gateway()
  const args: Record<string, object> = {
    get_server_tools: { server: 'files' },
    execute_tool: { server: 'files', tool: 'read', args: {} },
    call_read_tool: { server: 'toolway', tool: 'list_servers' },
    call_write_tool: { server: 'files', tool: 'read', args: {} },
    execute_tools: { calls: [{ server: 'files', tool: 'read', args: {} }] },
    find_tool: { query: 'read' },
    describe_tools: { names: ['files.read'] },
    get_skill: { skill: 'none' },
  }
  const tools = here
    .view({} as never)
    .list('tool')
    .filter(({ entry }) => entry.server === 'toolway')
  expect(tools).toHaveLength(14)
  for (const { entry } of tools) {
    const refusal = await refusalOf(here.ask(entry.name, { ...args[entry.name], agent_id: 'somebody' }))
    expect(refusal.code, entry.name).toBe('INVALID_AGENT_ID')
    if (entry.name === 'get_gateway_status' || entry.name === 'get_skill') continue
    await expect(here.ask(entry.name, { ...args[entry.name], agent_id: 'default' })).resolves.toBeDefined()
  }
})
