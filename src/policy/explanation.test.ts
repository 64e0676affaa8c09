import assert from 'node:assert/strict'
import { expect, test } from 'vitest'
import type { WrittenAgent } from './agent-rules.ts'
import { agentOf, openPolicy } from './policies.fixture.ts'
import { Rules } from './rules.ts'

const servers = Array.from({ length: 25 }, (_, number) => `server${number}`)
const verbs = ['read', 'write', 'list', 'drop']
const tools = servers.flatMap((server) =>
  Array.from({ length: 20 }, (_, number) => ({ server, name: `${verbs[number % 4]}_${number}` })),
)

/** 50 agents in three generations, with rules of every kind. */
const agents = Object.fromEntries(
  Array.from({ length: 50 }, (_, number): [string, WrittenAgent] => {
    const team = `team${number % 5}`
    const name =
      number < 5 ? team : number < 25 ? `${team}.role${number}` : `${team}.role${number - 20}.person${number}`
    const some = (count: number, step: number) =>
      Array.from({ length: count }, (_, index) => `server${(number + index * step) % 25}`)
    const allow: WrittenAgent['allow'] = {
      servers: number % 7 === 0 ? ['*'] : number % 3 === 0 ? [] : [...some(8, 3), 'server1*'],
      tools: number % 4 === 1 ? { [`server${number % 25}`]: ['read_*', 'list_2'], 'server2*': ['write_1', '*_3'] } : {},
    }
    const deny: WrittenAgent['deny'] = {
      servers: number % 6 === 2 ? some(3, 7) : number % 11 === 3 ? ['*4'] : [],
      tools: number % 5 === 0 ? { '*': ['drop_*'] } : { [`server${(number * 3) % 25}`]: ['write_5', '*_7'] },
    }
    return [name, agentOf({ allow, deny })]
  }),
)
const policy = {
  ...openPolicy,
  allowedServers: ['server*'],
  blockedTools: ['server7.drop_*', '*.drop_19'],
  requireAuth: ['server9.*'],
}

test('B11: why and the decision agree for every pair of 50 agents and 500 tools', () => {
  const rules = new Rules({ agents, policy, servers })
  expect([rules.agents.size, tools.length]).toEqual([50, 500])
  const codes = new Map<string, number>()
  for (const agent of rules.agents) {
    for (const { server, name } of tools) {
      for (const authenticated of [true, false]) {
        const decision = rules.decide({ agent, authenticated }, { kind: 'tool', server, name })
        const explanation = rules.explain(agent, server, name, { authenticated })
        // Plain comparisons: `expect` would take most of the time of 50,000 decisions.
        assert.deepEqual(explanation.decision, decision)
        assert.equal(explanation.rule, decision.rule)
        const { considered } = explanation
        const denials = considered.filter(({ outcome }) => outcome === 'denies')
        if (decision.allowed) {
          assert.equal(denials.length, 0)
          assert.equal(considered.find(({ outcome }) => outcome === 'allows')?.rule, decision.rule)
        } else {
          assert.deepEqual(denials, [considered.at(-1)])
          assert.equal(considered.at(-1)?.rule, decision.rule)
        }
        const code = decision.allowed ? 'allowed' : decision.code
        codes.set(code, (codes.get(code) ?? 0) + 1)
      }
    }
  }
  // An example in which everything were denied would prove nothing.
  expect(
    Math.min(...['allowed', 'DENIED_BY_POLICY', 'TOOL_BLOCKED', 'AUTH_REQUIRED'].map((code) => codes.get(code)!)),
  ).toBeGreaterThan(500)
})

test('B11: an explanation lists all considered rules in order', () => {
  const rules = new Rules({
    agents: {
      team: agentOf({ allow: { servers: ['files'] } }),
      'team.junior': agentOf({ deny: { tools: { files: ['rm'] } } }),
    },
    policy: openPolicy,
    servers: ['files'],
  })
  const told = (agent: string, server: string, name: string) =>
    rules.explain(agent, server, name).considered.map(({ step, rule, outcome }) => `${step}: ${rule} ${outcome}`)
  expect(told('team.junior', 'files', 'read')).toEqual([
    'blocked tools: policy.blockedTools passes',
    'allowed servers: policy.allowedServers[0] passes',
    'allowed tools: policy.allowedTools passes',
    'authentication: policy.requireAuth passes',
    'explicit deny: agents.team.junior.deny passes',
    'explicit deny: agents.team.deny passes',
    'wildcard deny: agents.team.junior.deny passes',
    'wildcard deny: agents.team.deny passes',
    'explicit allow: agents.team.junior.allow passes',
    'explicit allow: agents.team.allow passes',
    'wildcard allow: agents.team.allow passes',
    'implicit grant: agents.team.allow.servers[0] allows',
  ])
  expect(told('team.junior', 'files', 'rm').at(-1)).toBe('explicit deny: agents.team.junior.deny.tools.files[0] denies')
  expect(told('nobody', 'files', 'rm').at(-1)).toBe('agent: agents (default deny) denies')
})

test('B11: a question about a server that does not exist says so', () => {
  const rules = new Rules({ agents: {}, policy: openPolicy, servers: ['files'] })
  expect(rules.explain('me', 'files', 'read')).toMatchObject({ serverExists: true })
  expect(rules.explain('me', 'native', 'hash')).toMatchObject({ serverExists: true })
  expect(rules.explain('me', 'flies', 'read')).toMatchObject({ serverExists: false, decision: { allowed: true } })
})
