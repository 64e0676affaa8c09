import assert from 'node:assert/strict'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RawAsk, rawLines, rawModern } from '../../fixtures/raw-callers.ts'
import { messageOf, messagesOf, type RpcAnswer, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

const agents = {
  reader: {
    allow: { servers: ['files'], tools: { db: ['tool_1*', 'tool_3'] } },
    deny: { tools: { files: ['tool_2'], db: ['tool_11'] } },
  },
  'reader.junior': { deny: { servers: ['db'], tools: { files: ['tool_1*'] } } },
  closed: {},
  free: { allow: { servers: ['*'] } },
}
const policy = { blockedTools: ['files.tool_7', 'db.*_5'] }
const tools = (['files', 'db'] as const).flatMap((server) =>
  Array.from({ length: 12 }, (_, number) => ({ server, tool: `tool_${number}` })),
)
/** Without those about which every rule says the same as about another one. */
const alike = {
  files: ['tool_3', 'tool_4', 'tool_5', 'tool_6', 'tool_8', 'tool_9', 'tool_11'],
  db: ['tool_2', 'tool_6', 'tool_7', 'tool_8', 'tool_9'],
}
const differing = tools.filter(({ server, tool }) => !alike[server].includes(tool))
const args = { message: 'x' }

const open = new AsyncDisposableStack()
let toolway: LocalToolway

beforeAll(async () => {
  toolway = open.use(
    await startToolway({
      mcpServers: {
        files: stdioServers.manyTools('files', 12),
        db: { ...stdioServers.manyTools('db', 12), readOnly: true, readTools: ['tool_1', 'tool_3', 'tool_4'] },
      },
      agents,
      policy,
    }),
  )
  await toolway.gateway.refresh()
})

afterAll(() => open.disposeAsync())

/** `allowed`, or the code and the rule of the refusal. */
type Outcome = string

interface Refusal {
  readonly code?: string
  readonly rule?: string
}

const outcomeOf = ({ result, error }: RpcAnswer): Outcome => {
  const meta = result?._meta as Record<string, unknown> | undefined
  const refusal = (meta?.['dev.toolway/error'] ?? error?.data) as Refusal | undefined
  if (refusal) return `${refusal.code} ${refusal.rule}`
  return result && !result.isError ? 'allowed' : `unexpected ${JSON.stringify({ result, error })}`
}

const asked = async (ask: RawAsk, method: string, params: object) => outcomeOf(JSON.parse(await ask(method, params)))

/** The ways to make one call as one agent. */
async function waysOf(agent: string): Promise<Record<string, (server: string, tool: string) => Promise<Outcome>>> {
  const { gateway } = toolway
  const header = { 'toolway-agent': agent }
  const byHeader = await rawSession(toolway, { headers: header })
  const byQuery = await rawSession({ ...toolway, url: `${toolway.url}?agent=${agent}` })
  const nobody = await rawSession(toolway)
  const oldest = await rawSession(toolway, { headers: header, revision: '2025-03-26' })
  const modern = rawModern(toolway, {}, header)
  const legacyLine = open.use(await rawLines(gateway, 'legacy'))
  const modernLine = open.use(await rawLines(gateway, 'modern'))
  const meta = { _meta: { 'dev.toolway/agent': agent } }
  const direct = (server: string, tool: string) => ({ name: `${server}.${tool}`, arguments: args })
  const carried = (server: string, tool: string, more: object = {}) => ({
    name: 'execute_tool',
    arguments: { server, tool, args, ...more },
  })
  const batch = async (server: string, tool: string) => {
    const body = JSON.stringify([
      JSON.parse(rpc('other', 'ping')),
      JSON.parse(rpc('it', 'tools/call', direct(server, tool))),
    ])
    const answers = messagesOf<RpcAnswer>((await oldest.send(body)).text)
    return outcomeOf(answers.find(({ id }) => id === 'it') as RpcAnswer)
  }
  const batchTool = async (server: string, tool: string) => {
    const calls = [
      { server, tool, args },
      { server: 'native', tool: 'time', args: {} },
    ]
    const answer = JSON.parse(await byHeader.ask('tools/call', { name: 'execute_tools', arguments: { calls } }))
    const [first] = answer.result.structuredContent.results
    if (first.error) return `${first.error.code} ${first.error.rule}`
    return outcomeOf({ id: 1, result: first.result ?? first })
  }
  const spelt = (name: (server: string, tool: string) => string) => (server: string, tool: string) =>
    asked(byHeader.ask, 'tools/call', { name: name(server, tool), arguments: args })

  return {
    'session, header': spelt((server, tool) => `${server}.${tool}`),
    ...Object.fromEntries(
      ['::', '__', '/'].flatMap((sign) => [
        [`spelt with ${sign}`, spelt((server, tool) => `${server}${sign}${tool}`)],
        [`spelt with ${sign} behind our name`, spelt((server, tool) => `toolway${sign}${server}${sign}${tool}`)],
      ]),
    ),
    'spelt with one _': spelt((server, tool) => `toolway_${server}_${tool}`),
    'session, query': (server, tool) => asked(byQuery.ask, 'tools/call', direct(server, tool)),
    'session without an agent, _meta': (server, tool) =>
      asked(nobody.ask, 'tools/call', { ...direct(server, tool), ...meta }),
    'stateless, header': (server, tool) => asked(modern, 'tools/call', direct(server, tool)),
    'stateless, _meta': (server, tool) => asked(rawModern(toolway), 'tools/call', { ...direct(server, tool), ...meta }),
    'stdio, session, _meta': (server, tool) =>
      asked(legacyLine.ask, 'tools/call', { ...direct(server, tool), ...meta }),
    'stdio, stateless, _meta': (server, tool) =>
      asked(modernLine.ask, 'tools/call', { ...direct(server, tool), ...meta }),
    'a batch of messages': batch,
    execute_tool: (server, tool) => asked(byHeader.ask, 'tools/call', carried(server, tool)),
    'execute_tool, agent_id': (server, tool) =>
      asked(nobody.ask, 'tools/call', carried(server, tool, { agent_id: agent })),
    'execute_tool, stateless': (server, tool) => asked(modern, 'tools/call', carried(server, tool)),
    execute_tools: batchTool,
  }
}

describe.each(Object.keys(agents))('G6: %s', (agent) => {
  test('gets the same decision for every spelling, era, batch, meta-tool and direct call, and `why` agrees', async () => {
    const { gateway } = toolway
    const ways = await waysOf(agent)
    for (const { server, tool } of differing) {
      const { decision } = await gateway.why(agent, `${server}.${tool}`)
      const expected = decision.allowed ? 'allowed' : `${decision.code} ${decision.rule}`
      for (const [way, call] of Object.entries(ways)) {
        assert.equal(await call(server, tool), expected, `${way}: ${server}.${tool}`)
      }
    }
  })

  test('sees what it may call, and nothing else, in every list', async () => {
    const { gateway } = toolway
    const may = []
    for (const { server, tool } of tools) {
      if ((await gateway.why(agent, `${server}.${tool}`)).decision.allowed) may.push(`${server}.${tool}`)
    }
    const header = { 'toolway-agent': agent }
    const session = await rawSession(toolway, { headers: header })
    const nobody = await rawSession(toolway)
    const tool = async (ask: RawAsk, name: string, given: object) => {
      const { result } = JSON.parse(await ask('tools/call', { name, arguments: given }))
      return result.structuredContent
    }
    const ours = (names: string[]) => names.filter((name) => /^(files|db)\./.test(name)).sort()
    const listed = async (ask: RawAsk) => {
      const { result } = JSON.parse(await ask('tools/list', {}))
      const all = result.tools as { name: string; _meta: Record<string, string> }[]
      return ours(all.map(({ name, _meta }) => `${_meta['dev.toolway/server']}.${name.split('__')[1]}`))
    }
    const expected = [...may].sort()
    expect(await listed(session.ask)).toEqual(expected)
    expect(await listed(rawModern(toolway, {}, header))).toEqual(expected)
    for (const [ask, as] of [
      [session.ask, {}],
      [nobody.ask, { agent_id: agent }],
    ] as const) {
      const { tools: named } = await tool(ask, 'list_tools', as)
      expect(ours(named.map((one: { server: string; name: string }) => `${one.server}.${one.name}`))).toEqual(expected)
      const { matches: found } = await tool(ask, 'find_tool', { query: 'looks up record', limit: 30, ...as })
      const names = found.map((one: { server: string; name: string }) => `${one.server}.${one.name}`)
      expect(ours(names)).toEqual(expected)
      const { servers } = await tool(ask, 'list_servers', as)
      for (const server of ['files', 'db']) {
        const count = may.filter((name) => name.startsWith(`${server}.`)).length
        expect(servers.find(({ name }: { name: string }) => name === server)?.tools ?? 0).toBe(count)
        const { tools: defined, error } = await tool(ask, 'get_server_tools', { server, ...as })
        expect(defined.length).toBe(count)
        if (count === 0) expect(error.code).toMatch(/^(DENIED_BY_POLICY|TOOL_BLOCKED|WRITE_NOT_ALLOWED)$/)
      }
    }
  })
})

test.each(['closed', 'reader.junior'])(
  'G6: %s cannot find out what a server has that is closed to it',
  async (agent) => {
    const { ask } = await rawSession(toolway, { headers: { 'toolway-agent': agent } })
    const told = async (tool: string) => {
      const named = await ask('tools/call', { name: `db.${tool}`, arguments: args })
      const carried = await ask('tools/call', { name: 'execute_tool', arguments: { server: 'db', tool, args } })
      const described = await ask('tools/call', { name: 'describe_tools', arguments: { names: [`db.${tool}`] } })
      return [named, carried, described].map((text) => text.replaceAll(tool, '').replace(/"id":\d+/, ''))
    }
    expect(await told('tool_1')).toEqual(await told('no_such'))
  },
)

test('G7: a caller without an agent may call nothing, and the error says how to choose one', async () => {
  const nobody = await rawSession(toolway)
  const { result } = JSON.parse(await nobody.ask('tools/call', { name: 'files.tool_1', arguments: args }))
  expect(result._meta['dev.toolway/error']).toMatchObject({ code: 'NO_FALLBACK_CONFIGURED' })
  expect(result.content[0].text).toMatch(/Toolway-Agent/)
  const inner = JSON.parse(await nobody.ask('tools/call', { name: 'list_servers', arguments: {} }))
  expect(inner.result._meta['dev.toolway/error']).toMatchObject({ code: 'NO_FALLBACK_CONFIGURED' })
})

test('G7: an agent that does not exist is refused with its near miss, by every way to name one', async () => {
  const { url, token } = toolway
  const initialize = rpc(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'toolway-agent': 'reder' }
  const response = await fetch(url, { method: 'POST', headers, body: initialize })
  const answer = JSON.parse(messageOf(await response.text())) as RpcAnswer
  expect([response.status, answer.error?.data]).toEqual([403, { code: 'INVALID_AGENT_ID' }])
  expect(answer.error?.message).toContain('did you mean "reader"?')
  const nobody = await rawSession(toolway)
  const inMeta = { name: 'files.tool_1', arguments: args, _meta: { 'dev.toolway/agent': 'reder' } }
  expect(await asked(nobody.ask, 'tools/call', inMeta)).toMatch(/^INVALID_AGENT_ID/)
  const inArguments = { name: 'execute_tool', arguments: { server: 'files', tool: 'tool_1', args, agent_id: 'reder' } }
  expect(await asked(nobody.ask, 'tools/call', inArguments)).toMatch(/^INVALID_AGENT_ID/)
})

test('G7: the argument agent_id of a forwarded tool does not change the agent', async () => {
  const nobody = await rawSession(toolway)
  const call = { name: 'files.tool_1', arguments: { ...args, agent_id: 'free' } }
  expect(await asked(nobody.ask, 'tools/call', call)).toMatch(/^NO_FALLBACK_CONFIGURED/)
})
