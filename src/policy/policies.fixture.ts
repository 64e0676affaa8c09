import fc from 'fast-check'
import type { WrittenAgent } from './agent-rules.ts'
import type { PolicyQuery } from './explanation.ts'
import { model, type WrittenPolicy } from './rules.model.fixture.ts'
import { Rules } from './rules.ts'

/** A policy that says nothing. */
export const openPolicy = { allowedServers: ['*'], allowedTools: [], blockedTools: [], requireAuth: [] }

/** An agent of which only what matters is written down. */
export const agentOf = ({
  allow = {},
  deny = {},
}: {
  allow?: Partial<WrittenAgent['allow']>
  deny?: Partial<WrittenAgent['deny']>
}): WrittenAgent => ({
  allow: { servers: [], tools: {}, ...allow },
  deny: { servers: [], tools: {}, ...deny },
})

// Few names that are easily confused: with dots, as parts of one another, and as properties of every object.
const servers = ['a', 'b', 'ab', 'a.b', 'native', 'sink', 'toolway', 'constructor', '__proto__']
const tools = ['x', 'y', 'xy', 'b.x', 'x.y', 'toString', '__proto__']
const agents = ['t', 't.r', 't.r.s', 't.q.z', 'u', 'u.v', 'default', '__proto__', 'constructor', 'a']
const stars = ['*', '**', 'a*', '*b', 'a*b', 'x*', '*y', '*o*', 'to*', '*.*', 'A*', 'a.*', '*.x', '*x*y*']

const server = fc.constantFrom('a', 'a', 'b', ...servers)
const tool = fc.constantFrom('x', 'x', 'y', ...tools)
const agent = fc.constantFrom(...agents)
const star = fc.constantFrom(...stars)
const list = (names: fc.Arbitrary<string>, maxLength = 3) =>
  fc.array(fc.oneof({ weight: 3, arbitrary: names }, { weight: 1, arbitrary: star }), { maxLength, size: 'max' })
const wholeTool = fc.tuple(server, tool).map(([one, other]) => `${one}.${other}`)

/** `Object.fromEntries` makes `__proto__` a key like any other. */
const byName = <Value>(keys: fc.Arbitrary<string>, values: fc.Arbitrary<Value>, maxLength: number) =>
  fc
    .array(fc.tuple(keys, values), { maxLength, size: 'max' })
    .map((pairs) => Object.fromEntries(pairs) as Record<string, Value>)

const rules = fc.record({ servers: list(server), tools: byName(fc.oneof(server, server, star), list(tool), 3) })
const noRules: typeof rules = fc.constant({ servers: [], tools: {} })

/** Random policies; most leave most lists empty, since a single deny of everything hides all the rest. */
export const policies: fc.Arbitrary<WrittenPolicy> = fc.record({
  agents: byName(
    agent,
    fc.record({ allow: fc.oneof(rules, rules, noRules), deny: fc.oneof(rules, noRules, noRules) }),
    8,
  ),
  policy: fc.record({
    allowedServers: mostly(['*'], list(server)),
    allowedTools: mostly([], list(wholeTool)),
    blockedTools: mostly([], list(wholeTool, 2)),
    requireAuth: mostly([], list(wholeTool, 2)),
  }),
})

function mostly<Value>(usual: Value, other: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })
}

/** A random policy and random questions to it, mostly by agents that it knows. */
export const cases = (count: number): fc.Arbitrary<readonly [WrittenPolicy, readonly PolicyQuery[]]> =>
  fc.tuple(policies, fc.array(questions, { minLength: count, maxLength: count })).map(([written, asked]) => {
    const known = Object.keys(written.agents)
    return [
      written,
      asked.map(({ pick, ...question }) => ({
        ...question,
        agent: (pick > 0 && known[pick % known.length]) || question.agent,
      })),
    ] as const
  })

const questions = fc.record({
  agent: fc.constantFrom(...agents, 't.x', 'T', '', 'toString'),
  /** Which of the agents that the policy has; 0 is anyone. */
  pick: fc.nat({ max: 9 }),
  server: fc.oneof({ weight: 9, arbitrary: server }, { weight: 1, arbitrary: fc.constantFrom('other', 'A') }),
  name: fc.oneof({ weight: 9, arbitrary: tool }, { weight: 1, arbitrary: fc.constantFrom('other', 'X') }),
  isTool: fc.constantFrom(true, true, true, false),
  authenticated: fc.boolean(),
})

export const callerOf = ({ agent, authenticated }: PolicyQuery) => ({ agent, authenticated })

export const entryOf = ({ server, name, isTool }: PolicyQuery) => ({
  kind: isTool ? ('tool' as const) : ('resource' as const),
  server,
  name,
})

/** What the compiled rules and the model say about the same questions, in the same form. */
export function bothSay(written: WrittenPolicy, asked: readonly PolicyQuery[]) {
  const compiled = new Rules({ ...written, servers: [] })
  // Each question twice: the second answer comes from memory.
  return [...asked, ...asked].map((question) => {
    const { kind, server, name } = entryOf(question)
    const decision = compiled.decide(callerOf(question), { kind, server, name })
    const { decision: explained, considered } = compiled.explain(question.agent, server, name, { ...question, kind })
    const deciding = decision.allowed ? considered.find(({ outcome }) => outcome === 'allows') : considered.at(-1)
    const code = decision.allowed ? undefined : decision.code
    return {
      said: { allowed: decision.allowed, code, step: deciding?.step },
      modelled: { code: undefined, ...model(written, question) },
      decision,
      explained,
    }
  })
}
