import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { calls, modelServer, type Reply, says } from '../../../src/chat/models/server.fixture.ts'
import { type ModelApi, modelApis, refusals } from '../../../src/core/portable/model-apis.fixture.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { begunIn } from '../audit/records.ts'
import { complete } from '../chat/completions.ts'

const open = new AsyncDisposableStack()
const apis = Object.keys(modelApis) as ModelApi[]
const allow = { servers: ['*'] }
const mcpServers = { odd: stdioServers.schemas() }
const agents = {
  plain: { allow, expose: 'both' },
  portable: { allow, expose: 'both', schemas: 'portable' },
  'portable.child': { expose: 'both', allow },
}

let toolway: LocalToolway

beforeAll(async () => {
  toolway = open.use(await startToolway({ mcpServers, agents }))
  await toolway.gateway.refresh()
})

afterAll(() => open.disposeAsync())

type Era = 'session' | 'stateless'

async function connect(agent: string, era: Era, name = 'story', to = toolway): Promise<Client> {
  const mode = era === 'stateless' ? { pin: '2026-07-28' } : 'legacy'
  const client = new Client({ name, version: '1.0.0' }, { versionNegotiation: { mode } })
  const headers = { authorization: `Bearer ${to.token}`, 'toolway-agent': agent }
  await client.connect(new StreamableHTTPClientTransport(new URL(to.url), { requestInit: { headers } }))
  open.defer(() => client.close())
  return client
}

const textOf = ({ content }: { readonly content?: unknown }): string =>
  (content as readonly { readonly text: string }[]).map(({ text }) => text).join('')

/** What the server was called with. */
const reached = async (client: Client, name: string, args: Record<string, unknown>): Promise<unknown> =>
  JSON.parse(textOf(await client.callTool({ name, arguments: args })))

/** Arguments for the server's schema, and the same ones for the portable one. */
const pairs = [
  {
    tool: 'odd__everything',
    plain: {
      'filter[id]': null,
      $top: 5,
      unit: 'metric',
      level: 3,
      target: { kind: 'sms', number: '123' },
      point: [1, 2],
      tree: { name: 'a', children: [{ name: 'b', children: [{ name: 'c' }] }] },
      labels: { a: 'b' },
      anything: { x: [1] },
      mixed: { a: 'a' },
      deep: { l2: { l3: [{ l2: {} }] } },
      'x-more': 'y',
    },
    portable: {
      _top: 5,
      unit: 'metric',
      level: 3,
      target: { kind: 'sms', number: '123' },
      point: [1, 2],
      tree: { name: 'a', children: ['{"name":"b","children":[{"name":"c"}]}'] },
      labels: '{"a":"b"}',
      anything: '{"x":[1]}',
      mixed: { a: 'a' },
      deep: { l2: { l3: [{ l2: '{}' }] } },
      additional_properties: '{"x-more":"y"}',
    },
  },
  { tool: 'odd__choice', plain: { url: 'https://a.example/' }, portable: { url: 'https://a.example/' } },
  { tool: 'odd__nothing', plain: {}, portable: { no_arguments: true } },
]

describe.each(['session', 'stateless'] as const)('a client of the %s era', (era) => {
  test('W8: an agent with portable schemas gets definitions that no API refuses, others the ones of the server', async () => {
    const { tools: plain } = await (await connect('plain', era)).listTools()
    for (const api of apis) expect(plain.some((tool) => refusals(api, { ...tool }).length > 0)).toBe(true)
    expect(plain.find(({ name }) => name === 'odd__everything')?.inputSchema).toHaveProperty('$defs')
    for (const agent of ['portable', 'portable.child']) {
      const { tools } = await (await connect(agent, era)).listTools()
      expect(tools.map(({ name }) => name)).toEqual(plain.map(({ name }) => name))
      for (const tool of tools) for (const api of apis) expect(refusals(api, { ...tool }), tool.name).toEqual([])
    }
  })

  test('W8: calls with the arguments of either definition reach the server with the same arguments', async () => {
    const plain = await connect('plain', era)
    const portable = await connect('portable', era)
    for (const { tool, ...args } of pairs) {
      expect(await reached(plain, tool, args.plain), tool).toEqual(args.plain)
      expect(await reached(portable, tool, args.portable), tool).toEqual(args.plain)
      // Who knows the original may use it.
      if (tool !== 'odd__nothing') expect(await reached(portable, tool, args.plain), tool).toEqual(args.plain)
    }
  })

  test('W8: arguments are validated against the original, which the audit log records', async () => {
    const portable = await connect('portable', era)
    const refused = await portable.callTool({
      name: 'odd__choice',
      arguments: { path: 'a', url: 'https://a.example/' },
    })
    expect(refused.isError).toBe(true)
    const seen = begunIn(toolway.folder).length
    for (const { tool, portable: args } of pairs) await portable.callTool({ name: tool, arguments: args })
    const recorded = begunIn(toolway.folder)
      .slice(seen)
      .map((record) => record.arguments)
    expect(recorded).toEqual(pairs.map(({ plain }) => plain))
  })

  test('W8: the meta-tools show portable schemas, and run calls with their arguments', async () => {
    const portable = await connect('portable', era)
    const ask = async (name: string, args: Record<string, unknown>) =>
      textOf(await portable.callTool({ name, arguments: args }))
    const { tools } = JSON.parse(await ask('get_server_tools', { server: 'odd' }))
    const { matches } = JSON.parse(await ask('find_tool', { query: 'tool everything choice nothing', detail: 'full' }))
    for (const tool of [...tools, ...matches.filter(({ server }: { server: string }) => server === 'odd')])
      for (const api of apis) expect(refusals(api, tool), tool.name).toEqual([])
    expect(matches.length).toBeGreaterThan(0)
    const [{ plain, portable: args }] = pairs as [(typeof pairs)[number]]
    const text = await ask('execute_tool', { server: 'odd', tool: 'everything', args })
    expect(text).toContain(JSON.stringify(plain.tree))
    expect(text).toContain('"filter[id]":null')
  })
})

test('W8: clients that are known to need it get portable schemas, unless the configuration says otherwise', async () => {
  const free = open.use(await startToolway({ mcpServers }))
  const verbatim = open.use(await startToolway({ mcpServers, schemas: 'verbatim' }))
  await Promise.all([free.gateway.refresh(), verbatim.gateway.refresh()])
  const refusedFor = async (to: LocalToolway, name: string) => {
    const { tools } = await (await connect('default', 'session', name, to)).listTools()
    return tools.some((tool) => refusals('gemini', { ...tool }).length > 0)
  }
  expect(await refusedFor(free, 'gemini-cli-mcp-client')).toBe(false)
  expect(await refusedFor(free, 'story')).toBe(true)
  expect(await refusedFor(verbatim, 'gemini-cli-mcp-client')).toBe(true)
})

test('W8: models of chats get portable schemas, and their calls reach the server', async () => {
  const [{ plain, portable: args }] = pairs as [(typeof pairs)[number]]
  const reply: Reply = (asked, response) => {
    const [result] = asked.body.messages.filter(({ role }) => role === 'tool')
    const step = result ? says(String(result.content)) : calls({ name: 'odd__everything', arguments: args, id: 'a' })
    return step(asked, response)
  }
  const model = open.use(await modelServer(reply))
  const chats = open.use(
    await startToolway({
      mcpServers,
      schemas: 'portable',
      native: { tools: [] },
      models: { local: { kind: 'openai', baseUrl: model.baseUrl, model: 'scripted' } },
      chat: { model: 'local', mode: 'agent' },
    }),
  )
  await chats.gateway.refresh()
  const { text } = await complete(chats, { stream: false, messages: [{ role: 'user', content: 'Call everything.' }] })
  expect(JSON.parse(text)).toEqual(plain)
  const offered = model.asked[0]?.body.tools as { function: { name: string; parameters: Record<string, unknown> } }[]
  for (const { function: tool } of offered)
    for (const api of apis) expect(refusals(api, { ...tool, inputSchema: tool.parameters }), tool.name).toEqual([])
})
