import { describe, expect, test } from 'vitest'
import type { Kind } from '../core/entry.ts'
import type { WrittenAgent } from './agent-rules.ts'
import { agentOf, openPolicy } from './policies.fixture.ts'
import type { GlobalPolicy } from './rules.ts'
import { Rules } from './rules.ts'

const servers = ['files', 'postgres', 'search']

/** Asks `agent server.name`, as an authenticated caller unless told otherwise. */
function setUp(agents: Record<string, WrittenAgent>, policy: Partial<GlobalPolicy> = {}) {
  const rules = new Rules({ agents, policy: { ...openPolicy, ...policy }, servers })
  return (agent: string, server: string, name: string, { kind = 'tool' as Kind, authenticated = true } = {}) => {
    const decision = rules.decide({ agent, authenticated }, { kind, server, name })
    return `${decision.allowed ? 'allow' : decision.code}: ${decision.rule}`
  }
}

describe('G6: the precedence', () => {
  const ask = setUp({
    frontend: agentOf({
      allow: {
        servers: ['search', 'files', 'post*'],
        tools: { postgres: ['query', 'read_*', 'drop_table'], files: ['*'] },
      },
      deny: {
        servers: ['secret*'],
        tools: { postgres: ['drop_table', 'read_secret*', 'query_all'], '*': ['shutdown'] },
      },
    }),
  })

  test('explicit deny comes first, also before an explicit allow of the same tool', () => {
    expect(ask('frontend', 'postgres', 'drop_table')).toBe('DENIED_BY_POLICY: agents.frontend.deny.tools.postgres[0]')
  })

  test('wildcard deny comes before any allow', () => {
    expect(ask('frontend', 'postgres', 'read_secrets')).toBe('DENIED_BY_POLICY: agents.frontend.deny.tools.postgres[1]')
    expect(ask('frontend', 'files', 'shutdown')).toBe('DENIED_BY_POLICY: agents.frontend.deny.tools.*[0]')
    expect(ask('frontend', 'secrets', 'x')).toBe('DENIED_BY_POLICY: agents.frontend.deny.servers[0]')
  })

  test('explicit allow, then wildcard allow', () => {
    expect(ask('frontend', 'postgres', 'query')).toBe('allow: agents.frontend.allow.tools.postgres[0]')
    expect(ask('frontend', 'postgres', 'read_rows')).toBe('allow: agents.frontend.allow.tools.postgres[1]')
  })

  test('an allowed server without a list of tools grants them all; one with a list grants those alone', () => {
    expect(ask('frontend', 'search', 'anything')).toBe('allow: agents.frontend.allow.servers[0]')
    expect(ask('frontend', 'postgres', 'insert')).toBe('DENIED_BY_POLICY: agents.frontend (default deny)')
  })

  test('a list of denied tools does not deny the others', () => {
    const ask = setUp({ a: agentOf({ allow: { servers: ['files'] }, deny: { tools: { files: ['write_*'] } } }) })
    expect(ask('a', 'files', 'read')).toBe('allow: agents.a.allow.servers[0]')
    expect(ask('a', 'files', 'write_it')).toBe('DENIED_BY_POLICY: agents.a.deny.tools.files[0]')
  })

  test('a tool may be allowed without its server', () => {
    const ask = setUp({ a: agentOf({ allow: { tools: { files: ['read'] } } }) })
    expect(ask('a', 'files', 'read')).toBe('allow: agents.a.allow.tools.files[0]')
    expect(ask('a', 'files', 'write')).toBe('DENIED_BY_POLICY: agents.a (default deny)')
  })

  test('an empty list of tools allows none of them', () => {
    const ask = setUp({ a: agentOf({ allow: { servers: ['files'], tools: { files: [] } } }) })
    expect(ask('a', 'files', 'read')).toBe('DENIED_BY_POLICY: agents.a (default deny)')
  })

  test('with no agents everything is allowed to every caller; with one, nothing that is not allowed', () => {
    expect(setUp({})('anyone', 'files', 'read')).toBe('allow: agents (none configured)')
    const ask = setUp({ a: agentOf({}) })
    expect(ask('a', 'files', 'read')).toBe('DENIED_BY_POLICY: agents.a (default deny)')
    expect(ask('anyone', 'files', 'read')).toBe('DENIED_BY_POLICY: agents (default deny)')
  })

  test('names are exact: case, blanks and look-alikes make another name', () => {
    const ask = setUp({ a: agentOf({ allow: { tools: { files: ['read'] } } }) })
    for (const name of ['Read', 'read ', 'rеad', 'read\u200b', '*', ''])
      expect(ask('a', 'files', name)).toMatch(/^DENIED/)
    expect(ask('a', 'Files', 'read')).toMatch(/^DENIED/)
    expect(ask('A', 'files', 'read')).toBe('DENIED_BY_POLICY: agents (default deny)')
  })

  test('native tools and sinks are named like any server', () => {
    const ask = setUp({ a: agentOf({ allow: { servers: ['sink'], tools: { native: ['hash'] } } }) })
    expect(ask('a', 'native', 'hash')).toBe('allow: agents.a.allow.tools.native[0]')
    expect(ask('a', 'native', 'fetch')).toBe('DENIED_BY_POLICY: agents.a (default deny)')
    expect(ask('a', 'sink', 'reports')).toBe('allow: agents.a.allow.servers[0]')
  })
})

describe('G6: meta-tools are allowed unless denied', () => {
  test('no allow need name them, nor can one narrow them', () => {
    const ask = setUp({ a: agentOf({ allow: { tools: { '*': ['read_*'] } } }) })
    expect(ask('a', 'toolway', 'find_tool')).toBe('allow: agents.a (meta-tools)')
  })

  test('a deny holds for them as for any tool', () => {
    const ask = setUp({
      a: agentOf({ deny: { tools: { toolway: ['execute_tools'] } } }),
      b: agentOf({ deny: { servers: ['*'] } }),
    })
    expect(ask('a', 'toolway', 'execute_tools')).toBe('DENIED_BY_POLICY: agents.a.deny.tools.toolway[0]')
    expect(ask('a', 'toolway', 'find_tool')).toBe('allow: agents.a (meta-tools)')
    expect(ask('b', 'toolway', 'find_tool')).toBe('DENIED_BY_POLICY: agents.b.deny.servers[0]')
  })

  test('they are not for agents without rules', () => {
    expect(setUp({ a: agentOf({}) })('b', 'toolway', 'find_tool')).toMatch(/^DENIED/)
  })
})

describe('G6: resources, templates and prompts follow the rules for servers', () => {
  const ask = setUp({
    a: agentOf({
      allow: { servers: ['files'], tools: { files: ['read'], postgres: ['query'] } },
      deny: { tools: { files: ['*'] } },
    }),
    b: agentOf({ allow: { servers: ['*'] }, deny: { servers: ['postgres'] } }),
  })

  test.each(['resource', 'template', 'prompt'] as const)('%s', (kind) => {
    expect(ask('a', 'files', 'file:///x', { kind })).toBe('allow: agents.a.allow.servers[0]')
    expect(ask('a', 'postgres', 'query', { kind })).toBe('DENIED_BY_POLICY: agents.a (default deny)')
    expect(ask('b', 'files', 'x', { kind })).toBe('allow: agents.b.allow.servers[0]')
    expect(ask('b', 'postgres', 'x', { kind })).toBe('DENIED_BY_POLICY: agents.b.deny.servers[0]')
  })

  test('a tool and a prompt of one name are two things, also in memory', () => {
    expect(ask('a', 'files', 'read')).toBe('DENIED_BY_POLICY: agents.a.deny.tools.files[0]')
    expect(ask('a', 'files', 'read', { kind: 'prompt' })).toBe('allow: agents.a.allow.servers[0]')
    expect(ask('a', 'files', 'read')).toBe('DENIED_BY_POLICY: agents.a.deny.tools.files[0]')
  })
})

describe('G7: team.role inherits from team and narrows it', () => {
  const ask = setUp({
    team: agentOf({ allow: { servers: ['files', 'search'] }, deny: { tools: { files: ['write_*'] } } }),
    'team.junior': agentOf({ deny: { servers: ['search'] } }),
    'team.reader': agentOf({ allow: { tools: { files: ['*'] }, servers: ['postgres'] } }),
    'team.reader.night.shift': agentOf({}),
    teamster: agentOf({}),
  })

  test('without an allow of its own it has what the parent allows, less what it denies', () => {
    expect(ask('team.junior', 'files', 'read')).toBe('allow: agents.team.allow.servers[0]')
    expect(ask('team.junior', 'search', 'find')).toBe('DENIED_BY_POLICY: agents.team.junior.deny.servers[0]')
  })

  test('a deny of the parent holds, whatever the child allows', () => {
    expect(ask('team.reader', 'files', 'write_it')).toBe('DENIED_BY_POLICY: agents.team.deny.tools.files[0]')
  })

  test('its own allow is all that it has, and only as far as the parent allows it too', () => {
    expect(ask('team.reader', 'files', 'read')).toBe('allow: agents.team.reader.allow.tools.files[0]')
    expect(ask('team.reader', 'search', 'find')).toBe('DENIED_BY_POLICY: agents.team.reader (default deny)')
    expect(ask('team.reader', 'postgres', 'query')).toBe('DENIED_BY_POLICY: agents.team (default deny)')
  })

  test('a missing ancestor is skipped', () => {
    expect(ask('team.reader.night.shift', 'files', 'read')).toBe('allow: agents.team.reader.allow.tools.files[0]')
    expect(ask('team.reader.night.shift', 'search', 'x')).toBe('DENIED_BY_POLICY: agents.team.reader (default deny)')
  })

  test('only a dot makes a child, and a child without rules is not an agent', () => {
    expect(ask('teamster', 'files', 'read')).toBe('DENIED_BY_POLICY: agents.teamster (default deny)')
    expect(ask('team.intern', 'files', 'read')).toBe('DENIED_BY_POLICY: agents (default deny)')
  })
})

describe('F7: global policy comes first', () => {
  const all = { a: agentOf({ allow: { servers: ['*'] } }) }

  test('with the code and the rule of its own', () => {
    const ask = setUp(all, {
      allowedServers: ['files', 'search'],
      allowedTools: ['files.*', 'search.find'],
      blockedTools: ['x.y', 'files.edit'],
      requireAuth: ['*.find'],
    })
    expect(ask('a', 'files', 'edit')).toBe('TOOL_BLOCKED: policy.blockedTools[1]')
    expect(ask('a', 'postgres', 'query')).toBe('NAMESPACE_NOT_ALLOWED: policy.allowedServers')
    expect(ask('a', 'search', 'index')).toBe('DENIED_BY_POLICY: policy.allowedTools')
    expect(ask('a', 'search', 'find', { authenticated: false })).toBe('AUTH_REQUIRED: policy.requireAuth[0]')
    expect(ask('a', 'search', 'find')).toBe('allow: agents.a.allow.servers[0]')
    expect(ask('a', 'toolway', 'find')).toBe('allow: agents.a (meta-tools)')
  })

  test('the first line that matches is named, exact or not', () => {
    expect(setUp(all, { blockedTools: ['*.edit', 'files.edit'] })('a', 'files', 'edit')).toMatch(/\[0\]$/)
    expect(setUp(all, { blockedTools: ['files.edit', '*.edit'] })('a', 'files', 'edit')).toMatch(/\[0\]$/)
  })

  test('a call that it allows still needs a rule of the agent', () => {
    expect(setUp({ a: agentOf({}) }, { allowedTools: ['files.read'] })('a', 'files', 'read')).toMatch(/default deny/)
  })
})

test('F11: a denial has a word for audit and a sentence that says what to do', () => {
  const agents = {
    a: agentOf({ allow: { tools: { files: ['read'] } }, deny: { servers: ['search'], tools: { files: ['rm'] } } }),
  }
  const policy = { ...openPolicy, blockedTools: ['files.edit'], requireAuth: ['files.read'] }
  const { decide } = new Rules({ agents, policy, servers })
  const denial = (server: string, name: string, agent = 'a') =>
    decide({ agent, authenticated: false }, { kind: 'tool', server, name })
  expect(denial('search', 'find')).toEqual({
    allowed: false,
    code: 'DENIED_BY_POLICY',
    rule: 'agents.a.deny.servers[0]',
    reason:
      'The agent a may not use the server search: agents.a.deny.servers[0] denies it. Use another server, or ask the operator.',
    auditReason: 'server_not_allowed',
  })
  expect(denial('postgres', 'query')).toMatchObject({
    auditReason: 'server_not_allowed',
    reason: expect.stringContaining('add it to agents.a.allow'),
  })
  expect(denial('files', 'rm')).toMatchObject({ auditReason: 'tool_not_allowed' })
  expect(denial('files', 'write')).toMatchObject({ auditReason: 'tool_not_allowed' })
  expect(denial('files', 'edit')).toMatchObject({ auditReason: 'tool_blocked' })
  expect(denial('files', 'read')).toMatchObject({ auditReason: 'auth_required' })
  expect(denial('files', 'x', 'nobody')).toMatchObject({ auditReason: 'agent_not_in_rules' })
})

test('G6: a refusal by the rules for a server reveals nothing of its content', () => {
  const agents = { a: agentOf({ allow: { servers: ['files'] } }), b: agentOf({ deny: { servers: ['search'] } }) }
  const { decide, closed } = new Rules({ agents, policy: openPolicy, servers })
  for (const agent of ['a', 'b', 'nobody']) {
    const caller = { agent, authenticated: true }
    const unknown = closed(caller, 'search')
    expect(unknown).toMatchObject({ code: 'DENIED_BY_POLICY', reason: expect.not.stringContaining('*') })
    for (const kind of ['tool', 'prompt', 'template'] as const) {
      expect(decide(caller, { kind, server: 'search', name: 'x://{secret}' })).toEqual(unknown)
    }
  }
})

test('agents, servers and tools may be called like the properties of every object', () => {
  const odd = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']
  const none = setUp({ a: agentOf({}) })
  for (const name of odd) expect(none(name, name, name)).toBe('DENIED_BY_POLICY: agents (default deny)')
  const tools = Object.fromEntries([['__proto__', ['constructor']]])
  const ask = setUp(Object.fromEntries([['__proto__', agentOf({ allow: { tools } })]]))
  expect(ask('__proto__', '__proto__', 'constructor')).toBe('allow: agents.__proto__.allow.tools.__proto__[0]')
  for (const name of odd) expect(ask('__proto__', 'constructor', name)).toMatch(/default deny/)
})

test('more entries than are cached are decided correctly', () => {
  const { decide } = new Rules({
    agents: { a: agentOf({ allow: { tools: { files: ['*7'] } } }) },
    policy: openPolicy,
    servers,
  })
  const allowed = (name: string) =>
    decide({ agent: 'a', authenticated: true }, { kind: 'tool', server: 'files', name }).allowed
  for (let number = 0; number < 70_000; number++) {
    if (allowed(`tool${number}`) !== (number % 10 === 7)) expect.fail(`tool${number}`)
  }
  expect(allowed('tool7')).toBe(true)
})

describe('G6: rules for tools that need a rule for their server, too', () => {
  const agents = {
    both: agentOf({ allow: { servers: ['files'], tools: { files: ['read'], postgres: ['query'], '*': ['help'] } } }),
    tools: agentOf({ allow: { tools: { files: ['read'] } } }),
    'both.child': agentOf({ allow: { tools: { files: ['*'], postgres: ['*'] } } }),
    star: agentOf({ allow: { servers: ['*'], tools: { postgres: ['query'] } } }),
  }
  const ask = setUp(agents, { toolsNeedServer: true })

  test('a list of tools grants nothing of a server that is not listed', () => {
    expect(ask('both', 'files', 'read')).toBe('allow: agents.both.allow.tools.files[0]')
    expect(ask('both', 'files', 'help')).toBe('allow: agents.both.allow.tools.*[0]')
    expect(ask('both', 'files', 'write')).toBe('DENIED_BY_POLICY: agents.both (default deny)')
    expect(ask('both', 'postgres', 'query')).toBe('DENIED_BY_POLICY: agents.both (default deny)')
    expect(ask('both', 'search', 'help')).toBe('DENIED_BY_POLICY: agents.both (default deny)')
    expect(ask('tools', 'files', 'read')).toBe('DENIED_BY_POLICY: agents.tools (default deny)')
    expect(ask('star', 'postgres', 'query')).toBe('allow: agents.star.allow.tools.postgres[0]')
    expect(ask('star', 'files', 'x')).toBe('allow: agents.star.allow.servers[0]')
  })

  test('an agent without rules for servers uses those of its parent', () => {
    expect(ask('both.child', 'files', 'read')).toBe('allow: agents.both.child.allow.tools.files[0]')
    expect(ask('both.child', 'postgres', 'query')).toBe('DENIED_BY_POLICY: agents.both (default deny)')
  })

  test('meta-tools stay allowed, and a server without a rule is closed', () => {
    expect(ask('tools', 'toolway', 'find_tool')).toBe('allow: agents.tools (meta-tools)')
    const rules = new Rules({ agents, policy: { ...openPolicy, toolsNeedServer: true }, servers })
    expect(rules.closed({ agent: 'both', authenticated: true }, 'postgres')).toMatchObject({ allowed: false })
    expect(rules.closed({ agent: 'both', authenticated: true }, 'files')).toBeUndefined()
    expect(rules.explain('both', 'postgres', 'query').considered.at(-1)?.note).toContain('policy.toolsNeedServer')
  })

  test('without that setting the documented precedence holds', () => {
    expect(setUp(agents)('both', 'postgres', 'query')).toBe('allow: agents.both.allow.tools.postgres[0]')
    expect(setUp(agents)('tools', 'files', 'read')).toBe('allow: agents.tools.allow.tools.files[0]')
  })
})
