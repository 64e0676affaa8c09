import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { keyFor } from '../admin/people.ts'

const keys = Object.fromEntries(['ann', 'bob', 'cleo', 'dora', 'mallory'].map((name) => [name, keyFor(name, ['desk'])]))
const closed = keyFor('closed', ['closed'])
const open = new AsyncDisposableStack()
let toolway: LocalToolway

beforeAll(async () => {
  toolway = open.use(
    await startToolway({
      mcpServers: { weather: stdioServers.weather(), arithmetic: stdioServers.arithmetic() },
      agents: { desk: { allow: { servers: ['*'] } }, closed: { allow: { servers: ['arithmetic'] } } },
      auth: { keys: [...Object.values(keys), closed].map(({ configured }) => configured) },
      search: { learn: true, pool: 'all', examples: { 'arithmetic.add': ['how much do I owe altogether'] } },
    }),
  )
  await toolway.gateway.refresh()
})
afterAll(() => open.disposeAsync())

async function connect(token: string): Promise<Client> {
  const client = new Client({ name: 'story', version: '1.0.0' }, { versionNegotiation: { mode: 'legacy' } })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(toolway.url), { requestInit }))
  open.defer(() => client.close())
  return client
}

async function find(client: Client, query: string): Promise<string[]> {
  const { structuredContent } = await client.callTool({ name: 'find_tool', arguments: { query } })
  return (structuredContent as { matches: { server: string; name: string }[] }).matches.map(
    ({ server, name }) => `${server}.${name}`,
  )
}

const query = 'umbrella needed for the sky'
const teach = async (client: Client) => {
  await find(client, `${query} temperature`)
  const args = { city: 'Rome' }
  const { isError } = await client.callTool({
    name: 'execute_tool',
    arguments: { server: 'weather', tool: 'temperature', args },
  })
  expect(isError).not.toBe(true)
}

test('V13: a search learns from its caller at once, and from others only when three agree; examples help everybody', async () => {
  const [ann, bob, cleo, dora] = await Promise.all(
    ['ann', 'bob', 'cleo', 'dora'].map((name) => connect(keys[name]?.key ?? '')),
  )
  if (!ann || !bob || !cleo || !dora) throw new Error('not connected')
  expect(await find(dora, query)).toEqual([])
  expect(await find(dora, 'what do I owe altogether')).toEqual(['arithmetic.add'])
  await teach(ann)
  await until(async () => (await find(ann, query)).length > 0, { what: 'the own search to be learned' })
  expect(await find(ann, query)).toEqual(['weather.temperature'])
  await teach(bob)
  expect(await find(dora, query)).toEqual([])
  await teach(cleo)
  await until(async () => (await find(dora, query)).length > 0, { what: 'the searches of three to be learned' })
  expect(await find(await connect(closed.key), query)).toEqual([])
})

test('V13: the operator sees what was learned without its words, and can forget it', async () => {
  const shell = async (words: readonly string[]) => {
    const options = ['--config', toolway.configFile, '--json']
    const { code, stdout, stderr } = await command([...words, ...options], { cwd: toolway.folder, env: process.env })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).not.toContain('umbrella')
    return stdout
  }
  const explained = JSON.parse(await shell(['search', 'explain', query, '--agent', 'desk']))
  expect(explained.matches[0]).toMatchObject({ tool: 'weather.temperature', base: 0, queries: 3, principals: 3 })
  expect(explained.matches[0].learned).toBeGreaterThan(0)
  expect(JSON.parse(await shell(['search', 'forget', '--tool', 'weather.temperature']))).toEqual({ forgotten: 3 })
  const ann = await connect(keys.ann?.key ?? '')
  await until(async () => (await find(ann, query)).length === 0, { what: 'the search to be forgotten' })
})
