import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { goodHeaders, rawRequest, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

const open = new AsyncDisposableStack()
const allow = { servers: ['*'] }
const config = {
  mcpServers: { web: stdioServers.manyTools('web', 3), files: stdioServers.manyTools('files', 4) },
  agents: { default: { allow }, researcher: { allow, deny: { tools: { web: ['tool_2'] } } } },
  defaults: { agent: 'default' },
  endpoints: {
    research: { description: 'Papers and notes', servers: ['web'], tools: { files: ['tool_1'] }, agent: 'researcher' },
    everything: { expose: 'direct' as const },
  },
  registry: { serve: true },
}

let toolway: LocalToolway
let origin: string

beforeAll(async () => {
  toolway = open.use(await startToolway(config))
  origin = new URL(toolway.url).origin
  await toolway.gateway.refresh()
})

afterAll(() => open.disposeAsync())

async function get(path: string, headers: Record<string, string> = {}) {
  const response = await rawRequest(origin + path, { method: 'GET', headers })
  return { ...response, json: response.text === '' ? undefined : JSON.parse(response.text) }
}

const initialize = rpc(1, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'a', version: '1' },
})
const connect = (url: string, token: string) =>
  rawRequest(url, { headers: goodHeaders({ ...toolway, url, token }), body: initialize })

test('V15: an editor finds the endpoints in the registry, and connects to the one it has chosen', async () => {
  const { status, headers, json } = await get('/v0.1/servers?version=latest', { origin: 'https://editor.example' })
  expect([status, headers['access-control-allow-origin'], json.metadata.count]).toEqual([200, '*', 3])
  const [, { server, _meta }] = json.servers
  expect(server).toMatchObject({
    name: 'toolway.127.0.0.1/research',
    description: 'Papers and notes',
    remotes: [{ type: 'streamable-http', url: `${toolway.url}/research`, headers: [{ name: 'Authorization' }] }],
  })
  expect(_meta['io.modelcontextprotocol.registry/official']).toMatchObject({ status: 'active', isLatest: true })
  const name = encodeURIComponent(server.name)
  expect((await get(`/v0.1/servers/${name}/versions`)).json.servers).toEqual([{ server, _meta }])
  expect((await get(`/v0.1/servers/${name}/versions/latest`)).json).toEqual({ server, _meta })
  expect((await get(`/v0.1/servers/${name}/versions/${server.version}`)).json).toEqual({ server, _meta })
  expect((await connect(server.remotes[0].url, toolway.token)).status).toBe(200)
})

test('V15: the dashboard gets the endpoints, with their tools and costs', async () => {
  const { json } = await get('/admin/api/endpoints', { authorization: `Bearer ${toolway.token}` })
  expect(json).toMatchObject([
    { name: 'research', path: '/mcp/research', url: `${toolway.url}/research`, agent: 'researcher', tools: 3 },
    { name: 'everything', agent: null, expose: 'direct' },
  ])
  expect(json[0].tokens.direct).toBeLessThan(json[1].tokens.direct)
})

test('V15: a key that the command line creates for an endpoint connects there alone, also after a rotation', async () => {
  const shell = { cwd: toolway.folder, env: process.env as Record<string, string> }
  const words = ['--config', toolway.configFile, '--json']
  const run = async (...args: string[]) => JSON.parse((await command([...args, ...words], shell)).stdout)
  const { key } = await run('keys', 'create', 'reader', '--agent', 'researcher', '--endpoint', 'research')
  const rotated = await run('keys', 'rotate', 'reader')
  for (const secret of [key, rotated.key]) {
    await expect.poll(async () => (await connect(`${toolway.url}/research`, secret)).status).toBe(200)
    expect((await connect(toolway.url, secret)).status).toBe(403)
    expect((await connect(`${toolway.url}/everything`, secret)).status).toBe(403)
  }
})

test('V15: connect gives one client several endpoints, and removes one of them', async () => {
  await using home = await temporaryFolder()
  const configFile = join(home.path, 'toolway.yaml')
  await writeFile(configFile, JSON.stringify({ ...config, server: { port: 4400 } }))
  const shell = { cwd: home.path, env: { HOME: home.path, PATH: process.env.PATH ?? '' } }
  const run = (...args: string[]) => command(['connect', ...args], shell)
  for (const more of [['--endpoint', 'research'], ['--endpoint', 'everything'], []])
    expect((await run('cursor', '--yes', ...more)).code).toBe(0)
  const entries = async () => JSON.parse(await readFile(join(home.path, '.cursor', 'mcp.json'), 'utf8')).mcpServers
  expect(Object.keys(await entries())).toEqual(['toolway-research', 'toolway-everything', 'toolway'])
  expect((await entries())['toolway-research'].args.slice(-2)).toEqual(['--endpoint', 'research'])
  expect((await run('cursor', '--remove', '--endpoint', 'research', '--yes')).code).toBe(0)
  expect(Object.keys(await entries())).toEqual(['toolway-everything', 'toolway'])
})
