import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { goodHeaders, rawRequest, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { type ServerEntry, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { reloadUnderLoad } from './under-load.ts'

const one = stdioServers.manyTools('one', 5)
const two = stdioServers.manyTools('two', 5)
const args = { message: 'x' }

const toolNames = async (toolway: LocalToolway, agent?: string) => {
  const session = await rawSession(toolway, agent === undefined ? {} : { headers: { 'toolway-agent': agent } })
  const { result } = await session.answer('tools/list')
  const tools = (result?.tools ?? []) as { name: string }[]
  return tools.map(({ name }) => name).filter((name) => name.includes('__'))
}

const reloaded = ({ gateway }: LocalToolway, successes: number) =>
  until(() => gateway.reloadStatus().successes >= successes, { what: `${successes} reloads` })

// At once, because each test has a gateway of its own and waits for it to read its file.
describe.concurrent('G8: while it runs', () => {
  test('servers are added and removed with the file, and clients are notified', async () => {
    await using toolway = await startToolway({ mcpServers: { one } }, { watch: true })
    await using client = await connect('v2', { endpoint: toolway })
    expect((await client.listTools()).some(({ name }) => name === 'one__tool_1')).toBe(true)
    let told = 0
    client.onNotification('notifications/tools/list_changed', () => told++)
    await toolway.rewrite({ mcpServers: { one, two } })
    await reloaded(toolway, 1)
    await until(() => told > 0, { what: 'the client to be told' })
    expect((await client.callTool('two__tool_1', args)).content).toEqual([{ type: 'text', text: 'two tool_1: x' }])
    await toolway.rewrite({ mcpServers: { two } })
    await until(async () => !(await toolNames(toolway)).includes('one__tool_1'), { what: 'one to go' })
    await expect(client.callTool('one__tool_1', args)).rejects.toMatchObject({ code: -32602 })
    await until(() => toolway.servers().length === 1, { what: 'the process of one to end' })
  })

  test('rules, read-only servers and blocked tools change without touching a server', async () => {
    await using toolway = await startToolway({ mcpServers: { one } }, { watch: true })
    await toolNames(toolway)
    const [process] = toolway.servers()
    await toolway.rewrite({
      mcpServers: { one },
      agents: { reader: { allow: { tools: { one: ['tool_1'] } } } },
      policy: { blockedTools: ['one.tool_3'] },
    })
    await reloaded(toolway, 1)
    expect(await toolNames(toolway, 'reader')).toEqual(['one__tool_1'])
    expect(toolway.servers()).toEqual([process])
  })

  test('a key that leaves the file no longer gives access', async () => {
    const key = `twk_ci_${'a'.repeat(43)}`
    const digest = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(key))).toString('hex')
    const keys = [{ id: 'ci', hash: `sha256:${digest}`, agents: [] }]
    await using toolway = await startToolway({ mcpServers: {}, auth: { keys } }, { watch: true })
    const status = async () =>
      (await rawRequest(toolway.url, { headers: goodHeaders({ ...toolway, token: key }), body: initialize })).status
    expect(await status()).toBe(200)
    await toolway.rewrite({ mcpServers: {} })
    await until(async () => (await status()) === 401, { what: 'the key to be refused' })
  })

  test('a broken file changes nothing, and the status has its error and the time', async () => {
    await using toolway = await startToolway({ mcpServers: { one } }, { watch: true })
    await toolNames(toolway)
    await writeFile(toolway.configFile, '{ "mcpServers": { "one": { "comand": "x" } } }')
    await until(() => toolway.gateway.reloadStatus().last_error !== null, { what: 'the fault to be told' })
    const session = await rawSession(toolway)
    const status = await session.ask('tools/call', { name: 'get_gateway_status', arguments: {} })
    expect(JSON.parse(status).result.structuredContent.reload_status).toMatchObject({
      attempts: 1,
      successes: 0,
      last_error: expect.stringMatching(/comand/),
      last_error_at: expect.stringMatching(/^\d{4}-/),
    })
    const { result } = await session.answer('tools/call', { name: 'one__tool_1', arguments: args })
    expect(result?.isError).toBeFalsy()
  })

  test('a file that the configuration names and that comes later is noticed', async () => {
    await using toolway = await startToolway({ mcpServers: {} }, { watch: true })
    await toolway.rewrite({ mcpServers: { one: { ...one, description: '${file:./late}' } } })
    await until(() => toolway.gateway.reloadStatus().last_error?.includes('late'), { what: 'the error' })
    await writeFile(join(toolway.folder, 'late'), 'here I am\n', { mode: 0o600 })
    await reloaded(toolway, 1)
    expect(toolway.gateway.loaded.config.mcpServers.one?.description).toBe('here I am')
  })

  test('G6: a server that the rules now deny can no longer question the client of an open session', async () => {
    const asking: ServerEntry = { command: process.execPath, args: ['-e', askingServer] }
    const config = (rules: object) => ({ mcpServers: { asking }, agents: { asked: rules } })
    await using toolway = await startToolway(config({ allow: { servers: ['*'] } }), { watch: true })
    const client = new Client({ name: 'asked', version: '1' }, { capabilities: { elicitation: {} } })
    let asked = 0
    client.setRequestHandler(ElicitRequestSchema, () => {
      asked++
      return { action: 'decline' }
    })
    const headers = { Authorization: `Bearer ${toolway.token}`, 'Toolway-Agent': 'asked' }
    const transport = new StreamableHTTPClientTransport(new URL(toolway.url), { requestInit: { headers } })
    await client.connect(transport)
    await client.callTool({ name: 'asking__start' })
    await until(() => asked > 1, { what: 'the questions' })
    const { length } = toolway.servers()
    await toolway.rewrite(config({ deny: { servers: ['asking'] } }))
    await until(() => toolway.servers().length < length, { what: 'a question to be refused' })
    await client.close()
  })

  test('a call under way on a server that goes ends on it', async () => {
    const everything = stdioServers.everything()
    await using toolway = await startToolway({ mcpServers: { everything, one } }, { watch: true })
    await toolNames(toolway)
    const session = await rawSession(toolway)
    const name = 'everything__trigger-long-running-operation'
    const under = session.answer('tools/call', { name, arguments: { duration: 2, steps: 2 } })
    await toolway.rewrite({ mcpServers: { one } })
    await reloaded(toolway, 1)
    expect(await toolNames(toolway)).not.toContain(name)
    const { result } = await under
    expect(result?.isError).toBeFalsy()
    await until(() => toolway.servers().length === 1, { what: 'the old process to end' })
  })
})

/** A server that questions its client again and again after a call, and exits if the client cannot be asked. */
const askingServer = `
  const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }))
  const params = { message: 'Well?', requestedSchema: { type: 'object', properties: {} } }
  let number = 0
  const ask = () => setTimeout(() => send({ id: 'q' + ++number, method: 'elicitation/create', params }), 10)
  const results = {
    initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'asking', version: '1' } }),
    ping: () => ({}),
    'tools/list': () => ({ tools: [{ name: 'start', inputSchema: { type: 'object' } }] }),
    'tools/call': () => {
      ask()
      return { content: [] }
    },
  }
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, error } = JSON.parse(line)
    if (error) process.exit()
    if (method === undefined) ask()
    else if (id !== undefined && results[method]) send({ id, result: results[method]() })
  }).on('close', () => process.exit())
`

const initialize = rpc(1, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'x', version: '1' },
})

test('G8: reloads under load, half of them broken: no call fails, and every broken file is rejected', async () => {
  const { failures, rejected, calls } = await reloadUnderLoad(20)
  expect(failures.slice(0, 3)).toEqual([])
  expect(rejected).toBe(10)
  expect(calls).toBeGreaterThan(100)
})
