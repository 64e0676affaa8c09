import assert from 'node:assert/strict'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { matches } from '../lib/wildcard.ts'
import { lineage } from './agents.ts'
import { bothSay, callerOf, cases, entryOf, policies } from './policies.fixture.ts'
import type { WrittenPolicy } from './rules.model.fixture.ts'
import { Rules } from './rules.ts'

const each = runs(120, 20_000)

test('G6, F7: random policies decide as the model does, by the same step and with the same code', () => {
  fc.assert(
    fc.property(cases(5), ([written, asked]) => {
      for (const { said, modelled, decision, explained } of bothSay(written, asked)) {
        assert.deepEqual(said, modelled)
        assert.deepEqual(explained, decision)
      }
    }),
    runs(150, 20_000),
  )
})

test('the random policies and calls reach every step, allow often and deny often', () => {
  const steps = new Map<string, number>()
  for (const [written, asked] of fc.sample(cases(5), { numRuns: 400, seed: 4 })) {
    for (const { said } of bothSay(written, asked)) steps.set(said.step!, (steps.get(said.step!) ?? 0) + 1)
  }
  expect(steps.size).toBe(11)
  expect(Math.min(...steps.values())).toBeGreaterThan(20)
})

test('G7: an agent cannot use what the agents that it inherits from cannot use', () => {
  fc.assert(
    fc.property(cases(5), ([written, asked]) => {
      const rules = new Rules({ ...written, servers: [] })
      for (const question of asked) {
        if (!rules.agents.has(question.agent) || !rules.decide(callerOf(question), entryOf(question)).allowed) continue
        for (const agent of lineage(question.agent, rules.agents)) {
          assert.ok(rules.decide({ ...callerOf(question), agent }, entryOf(question)).allowed)
        }
      }
    }),
    each,
  )
})

test('G6: nothing can be used of a server that is closed to an agent', () => {
  let closed = 0
  const some = runs(100, 5_000)
  fc.assert(
    fc.property(cases(5), ([written, asked]) => {
      const rules = new Rules({ ...written, servers: [] })
      for (const question of asked) {
        if (rules.closed(callerOf(question), question.server) === undefined) continue
        closed++
        assert.ok(!rules.decide(callerOf(question), entryOf(question)).allowed)
      }
    }),
    some,
  )
  expect(closed).toBeGreaterThan(some.numRuns / 5)
})

test('G6: one more deny never allows anything', () => {
  fc.assert(
    fc.property(cases(5), policies, ([written, asked], other) => {
      const more = new Rules({ ...withDeniesOf(written, other), servers: [] })
      const before = new Rules({ ...written, servers: [] })
      for (const question of asked) {
        const [caller, entry] = [callerOf(question), entryOf(question)]
        assert.ok(before.decide(caller, entry).allowed || !more.decide(caller, entry).allowed)
      }
    }),
    each,
  )
})

test('G6: the order of agents, servers, tools and patterns changes no decision and no code', () => {
  fc.assert(
    fc.property(cases(5), ([written, asked]) => {
      const before = new Rules({ ...written, servers: [] })
      const after = new Rules({ ...reversed(written), servers: [] })
      for (const question of asked) {
        const one = before.decide(callerOf(question), entryOf(question))
        const other = after.decide(callerOf(question), entryOf(question))
        assert.deepEqual({ ...other, rule: '', reason: '' }, { ...one, rule: '', reason: '' })
      }
    }),
    each,
  )
})

test('G6: a line that a decision names is in the configuration and matches', () => {
  fc.assert(
    fc.property(cases(5), ([written, asked]) => {
      const lines = linesOf(written)
      const rules = new Rules({ ...written, servers: [] })
      for (const question of asked) {
        const { rule } = rules.decide(callerOf(question), entryOf(question))
        if (!rule.endsWith(']')) continue
        const { server, name } = question
        const line = lines.find((candidate) => candidate.rule === rule)
        assert.ok(line?.whole ? matches(line.whole, `${server}.${name}`) : matches(line!.server, server))
        if (line?.tool !== undefined) assert.ok(matches(line.tool, name))
      }
    }),
    each,
  )
})

const effects = ['allow', 'deny'] as const

function withDeniesOf(written: WrittenPolicy, other: WrittenPolicy): WrittenPolicy {
  const denies = new Map(Object.entries(other.agents).map(([name, { deny }]) => [name, deny]))
  const agents = Object.entries(written.agents).map(([name, { allow, deny }]) => {
    const more = denies.get(name)
    const lists = [...Object.entries(deny.tools), ...Object.entries(more?.tools ?? {})]
    const tools = new Map<string, string[]>()
    for (const [server, list] of lists) tools.set(server, [...(tools.get(server) ?? []), ...list])
    const servers = [...deny.servers, ...(more?.servers ?? [])]
    return [name, { allow, deny: { servers, tools: Object.fromEntries(tools) } }]
  })
  return { ...written, agents: Object.fromEntries(agents) }
}

function reversed(value: WrittenPolicy): WrittenPolicy
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.toReversed()
  if (typeof value !== 'object' || value === null) return value
  const pairs = Object.entries(value).map(([key, member]) => [key, reversed(member as WrittenPolicy)])
  return Object.fromEntries(pairs.reverse())
}

interface Line {
  readonly rule: string
  readonly server: string
  readonly tool?: string
  /** For global policy: the pattern of server and tool together. */
  readonly whole?: string
}

const linesOf = ({ agents, policy }: WrittenPolicy): Line[] => [
  ...(['blockedTools', 'requireAuth'] as const).flatMap((list) =>
    policy[list].map((whole, index) => ({ rule: `policy.${list}[${index}]`, server: '', whole })),
  ),
  ...Object.entries(agents).flatMap(([agent, rules]) =>
    effects.flatMap((effect) => [
      ...rules[effect].servers.map((server, index) => ({
        rule: `agents.${agent}.${effect}.servers[${index}]`,
        server,
      })),
      ...Object.entries(rules[effect].tools).flatMap(([server, list]) =>
        list.map((tool, index) => ({ rule: `agents.${agent}.${effect}.tools.${server}[${index}]`, server, tool })),
      ),
    ]),
  ),
]
