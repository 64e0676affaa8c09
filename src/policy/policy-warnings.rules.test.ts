import { expect, test } from 'vitest'
import type { WrittenAgent } from './agent-rules.ts'
import { agentOf, openPolicy } from './policies.fixture.ts'
import { ruleWarnings } from './policy-warnings.ts'
import type { GlobalPolicy } from './rules.ts'

const warnings = (
  agents: Record<string, WrittenAgent>,
  policy: Partial<GlobalPolicy> = {},
  servers = ['filesystem', 'everything'],
) => ruleWarnings({ agents, policy: { ...openPolicy, ...policy }, servers })

const all = agentOf({ allow: { servers: ['*'] } })

test('G6: the rules of the example cause no warning', () => {
  const agents = {
    researcher: agentOf({
      allow: { servers: ['filesystem', 'everything'], tools: { everything: ['echo', 'get-*'] } },
      deny: { tools: { filesystem: ['write_*', 'move_file'] } },
    }),
    'researcher.junior': agentOf({ deny: { servers: ['everything'] } }),
    default: agentOf({ deny: { servers: ['*'] } }),
  }
  const policy = { blockedTools: ['filesystem.edit_file', 'everything.drop_*'], requireAuth: ['everything.*'] }
  expect(warnings(agents, policy)).toEqual([])
  expect(warnings({})).toEqual([])
})

test('G8: a rule about a server that does not exist is a warning that names its place', () => {
  const agents = {
    a: agentOf({ allow: { servers: ['*', 'filesystm'] }, deny: { tools: { other: ['x'], 'oth*': ['x'] } } }),
  }
  const policy = {
    allowedServers: ['*', 'evrything'],
    blockedTools: ['filesystm.edit', 'edit_file', '*.edit', 'filesystem.*', 'every*'],
  }
  expect(warnings(agents, policy)).toEqual([
    'agents.a.allow.servers[1]: there is no server filesystm; did you mean "filesystem"?',
    'agents.a.deny.tools.other: there is no server other',
    'policy.allowedServers[1]: there is no server evrything; did you mean "everything"?',
    'policy.blockedTools[0]: there is no server filesystm; did you mean "filesystem"?',
    'policy.blockedTools[1]: edit_file matches nothing; write it as server.tool',
  ])
})

test('G6, F7: a rule whose pattern cannot match any tool is a warning', () => {
  const tools = ['everything.echo', 'everything__echo', 'ec?o', 'everything_echo', 'get.*']
  const agents = { a: agentOf({ allow: { servers: ['*'] }, deny: { tools: { everything: tools } } }) }
  const policy = { blockedTools: ['delete_*', '*.delete_*', '*delete*', 'everything.get_[ab]', 'every*'] }
  expect(warnings(agents, policy)).toEqual([
    "agents.a.deny.tools.everything[0]: everything.echo includes the server's name; if its tool is called echo, write it as echo",
    "agents.a.deny.tools.everything[1]: everything__echo includes the server's name; if its tool is called echo, write it as echo",
    'agents.a.deny.tools.everything[2]: ec?o matches nothing, because only * is a wildcard',
    expect.stringContaining('did you mean get*?'),
    'policy.blockedTools[0]: delete_* matches nothing; write it as server.tool',
    'policy.blockedTools[3]: everything.get_[ab] matches nothing, because only * is a wildcard',
  ])
})

test('G7: a parent that does not exist is a warning, which names the ancestor that replaces it', () => {
  expect(warnings({ 'a.b': all, c: all, 'c.d.e': agentOf({}) })).toEqual([
    'agents.a.b: there is no agent a, so it inherits no rules',
    'agents.c.d.e: there is no agent c.d, so it inherits from c',
  ])
})

test('G6: an agent that may use nothing is a warning, unless it says so itself', () => {
  expect(
    warnings({ a: agentOf({ deny: { tools: { everything: ['x'] } } }), b: agentOf({ deny: { servers: ['*'] } }) }),
  ).toEqual(['agents.a may use only the meta-tools: its rules allow no server'])
})

test('G6, G7: an allow that can allow nothing names what stands against it', () => {
  const agents = {
    team: agentOf({ allow: { servers: ['filesystem'] } }),
    'team.more': agentOf({
      allow: { servers: ['filesystem', 'everything'], tools: { native: ['hash'], filesystem: [] } },
    }),
    exception: agentOf({ allow: { servers: ['filesystem'] }, deny: { servers: ['*'] } }),
    meta: agentOf({ allow: { servers: ['everything'], tools: { toolway: ['find_tool'] } } }),
  }
  expect(warnings(agents)).toEqual([
    'agents.team.more.allow.servers[1] has no effect because of agents.team (default deny)',
    'agents.team.more.allow.tools.native has no effect because of agents.team (default deny)',
    'agents.team.more.allow.tools.filesystem is empty, so no tools on filesystem are allowed',
    'agents.exception.allow.servers[0] has no effect because of agents.exception.deny.servers[0]',
    'agents.meta.allow.tools.toolway has no effect: meta-tools are allowed unless denied',
  ])
})

test('G6: a list of tools of a server that allow.servers leaves out is a warning', () => {
  const agents = {
    a: agentOf({ allow: { servers: ['filesystem'], tools: { everything: ['echo'], filesystem: ['read'] } } }),
    b: agentOf({ allow: { tools: { everything: ['echo'] } } }),
    c: agentOf({ allow: { servers: ['every*'], tools: { everything: ['echo'] } } }),
  }
  expect(warnings(agents)).toEqual([
    expect.stringMatching(/^agents\.a\.allow\.tools\.everything allows .*policy\.toolsNeedServer/),
  ])
  expect(warnings({ a: agents.a }, { toolsNeedServer: true })).toEqual([
    expect.stringMatching(/^agents\.a\.allow\.tools\.everything has no effect: .*policy\.toolsNeedServer/),
  ])
})

test('F7: a list of tools that can be read in two ways, or is not asked at all, is a warning', () => {
  const policy = {
    allowedTools: ['a.b.c', 'a.*', 'a.x', 'toolway.find_tool'],
    requireAuth: ['toolway.*', 'a.b.c'],
    blockedTools: ['toolway.execute_tools', 'a.b.c'],
  }
  expect(warnings({}, policy, ['a', 'a.b'])).toEqual([
    'policy.allowedTools[0] is ambiguous: it allows tools on a and a.b',
    'policy.allowedTools[1] is ambiguous: it allows tools on a and a.b',
    'policy.allowedTools[3] has no effect: meta-tools are allowed unless blocked or denied',
    'policy.requireAuth[0] has no effect: meta-tools are allowed unless blocked or denied',
  ])
})

test('G6: a rule that looks like a regular expression is a warning that says what to write', () => {
  const agents = {
    a: agentOf({
      allow: { servers: ['*'], tools: { everything: ['get.*', '/echo/', '^print.+$', '.*'] } },
      deny: { servers: ['file.*', 'every*'] },
    }),
  }
  const policy = {
    blockedTools: ['filesystem.write.*', 'filesystem.*', '/filesystem.edit/', '.*'],
    allowedServers: ['.*'],
  }
  expect(warnings(agents, policy).filter((warning) => warning.includes('wildcard'))).toEqual([
    'agents.a.deny.servers[0]: file.* matches only names with a dot there, because only * is a wildcard; did you mean file*?',
    'agents.a.allow.tools.everything[0]: get.* matches only names with a dot there, because only * is a wildcard; did you mean get*?',
    'agents.a.allow.tools.everything[1]: /echo/ matches nothing, because only * is a wildcard; did you mean echo?',
    'agents.a.allow.tools.everything[2]: ^print.+$ matches nothing, because only * is a wildcard; did you mean print*?',
    'agents.a.allow.tools.everything[3]: .* matches nothing, because only * is a wildcard; did you mean *?',
    'policy.allowedServers[0]: .* matches nothing, because only * is a wildcard; did you mean *?',
    'policy.blockedTools[0]: filesystem.write.* matches only names with a dot there, because only * is a wildcard; did you mean filesystem.write*?',
    'policy.blockedTools[2]: /filesystem.edit/ matches nothing, because only * is a wildcard; did you mean filesystem.edit?',
    expect.stringContaining('policy.blockedTools[3]: .* matches nothing'),
  ])
})
