import fc from 'fast-check'
import { expect, test } from 'vitest'
import { agentOf, callerOf, cases, entryOf, openPolicy } from './policies.fixture.ts'
import { Rules } from './rules.ts'

test('a cached decision is the one that the rules make', () => {
  fc.assert(
    fc.property(cases(20), ([written, asked]) => {
      const rules = new Rules({ ...written, servers: [] })
      // All agents ask about the same entries, as they do about those of a catalog.
      const entries = new Map(asked.map((query) => [JSON.stringify(entryOf(query)), entryOf(query)]))
      for (const query of [...asked, ...asked]) {
        const entry = entries.get(JSON.stringify(entryOf(query)))!
        expect(rules.decide(callerOf(query), entry)).toEqual(rules.decide(callerOf(query), entryOf(query)))
      }
    }),
  )
})

test('B7: the decision about an entry is made once for each agent, however long its name is', () => {
  const agents = { a: agentOf({ allow: { servers: ['files'] } }), b: agentOf({ allow: { servers: ['*'] } }) }
  const rules = new Rules({ agents, policy: openPolicy, servers: ['files'] })
  let reads = 0
  const entry = {
    kind: 'resource' as const,
    server: 'files',
    get name() {
      reads++
      return `x://${'y'.repeat(300)}`
    },
  }
  const decide = (agent: string) => rules.decide({ agent, authenticated: true }, entry)
  const first = [decide('a'), decide('b')]
  const before = reads
  expect([decide('a'), decide('b'), decide('a')]).toEqual([...first, first[0]])
  expect(reads).toBe(before)
})

test('entries keep their decisions, tools and others apart, with and without authentication', () => {
  const agents = { a: agentOf({ allow: { tools: { files: ['x'] } } }) }
  const rules = new Rules({ agents, policy: { ...openPolicy, requireAuth: ['files.x'] }, servers: ['files'] })
  const tool = { kind: 'tool' as const, server: 'files', name: 'x' }
  const prompt = { ...tool, kind: 'prompt' as const }
  for (let round = 0; round < 3; round++) {
    expect(rules.decide({ agent: 'a', authenticated: true }, tool)).toMatchObject({ allowed: true })
    expect(rules.decide({ agent: 'a', authenticated: false }, tool)).toMatchObject({ code: 'AUTH_REQUIRED' })
    expect(rules.decide({ agent: 'a', authenticated: true }, prompt)).toMatchObject({ code: 'DENIED_BY_POLICY' })
  }
})

test('more decisions than can be cached are made correctly', () => {
  const names = Array.from({ length: 2 ** 16 + 10 }, (_, index) => `agent${index}`)
  const agents = Object.fromEntries(names.map((name) => [name, agentOf({ allow: { servers: ['files'] } })]))
  const rules = new Rules({ agents, policy: openPolicy, servers: ['files'] })
  const entry = { kind: 'tool' as const, server: 'files', name: 'x' }
  for (const agent of [...names, ...names.slice(-20), ...names.slice(0, 20)]) {
    const decision = rules.decide({ agent, authenticated: true }, entry)
    if (decision.rule !== `agents.${agent}.allow.servers[0]`) expect.fail(agent)
  }
})
