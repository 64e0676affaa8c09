import { expect, test } from 'vitest'
import { brief, project } from '../project.fixture.ts'

const servers = `{"mcpServers": {
  "brave-search": {"command": "npx", "args": ["-y", "brave"], "env": {"KEY": "\${BRAVE_KEY:-none}"}},
  "postgres": {"command": "uvx", "args": ["pg"], "session": "shared"}
}}`

const rules = `{
  "agents": {
    "researcher": {"allow": {"servers": ["brave-search"], "tools": {"brave-search": ["*"]}}},
    "backend": {"allow": {"servers": ["postgres"]}, "deny": {"tools": {"postgres": ["drop_*"]}}},
    "default": {"deny": {"servers": ["*"]}}
  },
  "defaults": {"deny_on_missing_agent": false}
}`

const pair = { '.mcp.json': servers, '.mcp-gateway-rules.json': rules }

test('G6: a pair of .mcp.json and rules beside it is read as one configuration', async () => {
  const { load, at } = await project(pair)
  const { config, files, notes, warnings } = await load()
  expect(files).toEqual([
    { path: at('.mcp.json'), dialect: 'mcpServers' },
    { path: at('.mcp-gateway-rules.json'), dialect: 'gateway-rules' },
  ])
  expect(notes[1]).toMatch(/read as .*rules: 3 agents; .*session: caller/)
  expect(warnings).toEqual([])
  expect(config.agents).toEqual({
    researcher: {
      allow: { servers: ['brave-search'], tools: { 'brave-search': ['*'] } },
      deny: { servers: [], tools: {} },
    },
    backend: { allow: { servers: ['postgres'], tools: {} }, deny: { servers: [], tools: { postgres: ['drop_*'] } } },
    default: { allow: { servers: [], tools: {} }, deny: { servers: ['*'], tools: {} } },
  })
  expect(config.defaults.denyOnMissingAgent).toBe(false)
  expect(config.policy.toolsNeedServer).toBe(true)
})

test('G3: in such a pair sessions belong to callers unless a server says otherwise', async () => {
  const { load } = await project(pair)
  const { mcpServers } = (await load()).config
  expect(mcpServers['brave-search']?.session).toBe('caller')
  expect(mcpServers.postgres?.session).toBe('shared')
  const alone = await project({ '.mcp.json': servers })
  expect((await alone.load()).config.mcpServers['brave-search']?.session).toBe('shared')
})

test('G7: a caller without an agent is refused if the rules do not mention it, even if an earlier file allows it', async () => {
  const { load } = await project({
    'base.yaml': 'defaults: { denyOnMissingAgent: false }',
    'servers.json': servers,
    '.mcp-gateway-rules.json': '{"agents": {}}',
    'last.yaml': 'defaults: { denyOnMissingAgent: false }',
  })
  expect((await load({ paths: ['base.yaml', 'servers.json'] })).config.defaults.denyOnMissingAgent).toBe(true)
  const { config, files } = await load({ paths: ['servers.json', 'last.yaml'] })
  expect(config.defaults.denyOnMissingAgent).toBe(false)
  expect(files.map(({ dialect }) => dialect)).toEqual(['mcpServers', 'gateway-rules', 'toolway'])
})

test('the variables of that gateway are understood', async () => {
  const { load, at } = await project({ 'deep/servers.json': servers, 'other/rules.json': rules })
  const env = {
    GATEWAY_MCP_CONFIG: 'deep/servers.json',
    GATEWAY_RULES: 'other/rules.json',
    GATEWAY_DEFAULT_AGENT: 'backend',
  }
  const { config, files } = await load({ env })
  expect(files.map(({ path }) => path)).toEqual([at('deep/servers.json'), at('other/rules.json')])
  expect(config.defaults.agent).toBe('backend')
  expect(config.mcpServers['brave-search']?.session).toBe('caller')
  expect((await load({ env: { ...env, TOOLWAY_DEFAULT_AGENT: 'researcher' } })).config.defaults.agent).toBe(
    'researcher',
  )
})

test('rules that were named but are not there stop the start: nothing runs without its rules', async () => {
  const { problems, at } = await project({ '.mcp.json': servers })
  expect(await problems({ env: { GATEWAY_RULES: 'gone.json' } })).toMatchObject([{ file: at('gone.json') }])
})

test('rules that belong to nothing are a warning', async () => {
  const { load } = await project({ 'toolway.yaml': 'server: { port: 1 }', 'rules.json': rules })
  expect((await load({ env: { GATEWAY_RULES: 'rules.json' } })).warnings).toEqual([
    expect.stringContaining('GATEWAY_RULES has no effect'),
  ])
})

test('both files of a pair may be named, in any order', async () => {
  const { load } = await project(pair)
  for (const paths of [Object.keys(pair), Object.keys(pair).reverse()]) {
    const { config, files } = await load({ paths })
    expect(files).toHaveLength(2)
    expect(config.mcpServers['brave-search']?.session).toBe('caller')
    expect(Object.keys(config.agents)).toEqual(['researcher', 'backend', 'default'])
  }
})

test('a misspelt key in the rules is refused, never dropped', async () => {
  const { problems } = await project({
    '.mcp.json': servers,
    '.mcp-gateway-rules.json':
      '{"agents": {"a": {"alow": {}}},\n "defaults": {"deny_on_mising_agent": false},\n "agent": {}}',
  })
  expect(brief(await problems())).toEqual([
    '1:19 agents.a.alow: unknown key `alow`; did you mean `allow`?',
    '2:15 defaults.deny_on_mising_agent: unknown key `deny_on_mising_agent`; did you mean `deny_on_missing_agent`?',
    '3:2 agent: unknown key `agent`; did you mean `agents`?',
  ])
})
