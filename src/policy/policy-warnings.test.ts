import { expect, test } from 'vitest'
import { type Config, configSchema } from '../config/schema.ts'
import { policyWarnings } from './policy-warnings.ts'

const doubtsOf = (written: object) => policyWarnings(configSchema.parse(written) as Config)

test('G8: rules and limits about servers that do not exist are warnings with a near miss', () => {
  const doubts = doubtsOf({
    mcpServers: { filesystem: { command: 'x' } },
    agents: {
      a: {
        allow: { servers: ['filesystm', 'native', '*'], tools: { ghost: ['*'] } },
        deny: { tools: { filesystem: ['x'] } },
      },
    },
    policy: { allowedServers: ['*', 'filesystem', 'other'] },
    limits: { servers: { nobody: 5 } },
  })
  for (const doubt of [
    'agents.a.allow.servers[0]: there is no server filesystm; did you mean "filesystem"?',
    'agents.a.allow.tools.ghost: there is no server ghost',
    'policy.allowedServers[2]: there is no server other',
    'limits.servers.nobody: there is no server nobody',
  ]) {
    expect(doubts).toContain(doubt)
  }
})

test('V8: an approval that is never asked for, and other lists that name no tool, are warnings', () => {
  const server = { command: 'x', approve: ['files.write', 'write', '*'], tools: { exclude: ['files__edit'] } }
  expect(
    doubtsOf({
      mcpServers: { files: server },
      agents: { a: { allow: { servers: ['*'] }, approve: ['write', 'files.*', 'writes'] } },
      chat: { approve: ['delete_*', '*.delete_*', 'writes'] },
    }),
  ).toEqual([
    expect.stringMatching(/^mcpServers\.files\.approve\[0\].*write it as write$/),
    expect.stringMatching(/^mcpServers\.files\.tools\.exclude\[0\].*write it as edit$/),
    'agents.a.approve[0]: write matches nothing; write it as server.tool',
    'chat.approve[0]: delete_* matches nothing; write it as server.tool',
  ])
})

test('G7: an agent that a key or a default names and that has no rules is a warning', () => {
  const agents = { researcher: { allow: { servers: ['*'] } } }
  const keys = [{ id: 'ci', hash: `sha256:${'0'.repeat(64)}`, agents: ['researcher', 'resercher'] }]
  expect(doubtsOf({ agents, defaults: { agent: 'nobody' }, auth: { keys } })).toEqual([
    'auth.keys[0].agents[1]: there is no agent resercher; did you mean "researcher"?',
    'defaults.agent: there is no agent nobody',
  ])
  expect(doubtsOf({ defaults: { agent: 'nobody' } })).toEqual([])
})

test('G7: agents that any caller may act as are a warning', () => {
  const agents = { researcher: { allow: { servers: ['*'] } } }
  const jwt = { issuer: 'https://id.test', audience: 'a', jwksUrl: 'https://id.test/keys' }
  expect(doubtsOf({ agents, auth: { token: 'none' } })).toEqual([expect.stringContaining('may act as any agent')])
  expect(doubtsOf({ agents, auth: { token: 'none', jwt } })).toEqual([])
  expect(doubtsOf({ agents })).toEqual([])
  expect(doubtsOf({ auth: { token: 'none' } })).toEqual([])
})

test('B5: servers whose names look alike are a warning', () => {
  const servers = ['github', 'gitlab', 'g1thub', 'files', 'f1les', 'file'].map((name) => [name, { command: 'x' }])
  expect(doubtsOf({ mcpServers: Object.fromEntries(servers) })).toEqual([
    expect.stringMatching(/mcpServers\.g1thub looks like mcpServers\.github/),
    expect.stringMatching(/mcpServers\.f1les looks like mcpServers\.files/),
  ])
})

test('G7: an agent named default that is not the default agent is a warning that says what happens instead', () => {
  const agents = { default: { allow: { servers: ['*'] } }, other: { allow: { servers: ['*'] } } }
  expect(doubtsOf({ agents })).toEqual([
    'agents.default is not the default agent: callers that name no agent are rejected (defaults.denyOnMissingAgent); set defaults.agent: default, or rename it',
  ])
  expect(doubtsOf({ agents, defaults: { agent: 'other' } })).toEqual([
    expect.stringContaining('act as other (defaults.agent); set defaults.agent: default'),
  ])
  expect(doubtsOf({ agents, defaults: { agent: 'default' } })).toEqual([])
  expect(doubtsOf({ agents, defaults: { denyOnMissingAgent: false } })).toEqual([])
})

test('V15: a rule that names a tool as callers see it is a warning that says what to write', () => {
  const tools = { create_issue: { name: 'file_bug' }, list: { name: 'open' }, open: {} }
  const doubts = doubtsOf({
    mcpServers: { github: { command: 'x', tools, approve: ['file_bug'], readTools: ['open'] } },
    agents: { a: { allow: { servers: ['github'] }, deny: { tools: { github: ['file_bug', 'create_issue'] } } } },
    policy: { blockedTools: ['github.file_bug', 'github.create_issue'] },
    limits: { tools: { 'github.file_bug': 1 } },
  })
  const advice = 'github.file_bug is a name for callers only; rules name the tool github.create_issue'
  expect(doubts).toEqual(
    ['policy.blockedTools[0]', 'agents.a.deny.tools.github[0]', 'mcpServers.github.approve[0]']
      .concat('limits.tools.github.file_bug')
      .map((key) => `${key}: ${advice}`),
  )
})

test('V15: endpoints that serve what does not exist, and keys for endpoints that do not exist, are warnings', () => {
  const hash = `sha256:${'0'.repeat(64)}`
  expect(
    doubtsOf({
      mcpServers: { files: { command: 'x' } },
      endpoints: { research: { servers: ['file', 'fil*'], tools: { files: ['files.read', 'write'], ghost: ['*'] } } },
      auth: { keys: [{ id: 'ci', hash, admin: true, endpoints: ['reserch', 'research'] }] },
    }),
  ).toEqual([
    'endpoints.research.servers[0]: there is no server file; did you mean "files"?',
    expect.stringMatching(/^endpoints\.research\.tools\.files\[0\].*write it as read$/),
    'endpoints.research.tools.ghost: there is no server ghost',
    'auth.keys[0].endpoints[0]: there is no endpoint reserch; did you mean "research"?',
    'auth.keys[0].admin has no effect beside endpoints',
  ])
})
