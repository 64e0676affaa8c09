import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { ToolwayError } from '../core/errors.ts'
import { type AgentSelection, compileCapture, refusalOfNone, selectAgent } from './agents.ts'

const rules = new Set(['researcher', 'researcher.junior', 'backend', 'default'])

interface Asked {
  readonly mine?: readonly string[] | '*'
  readonly asked?: string
  readonly agents?: ReadonlySet<string>
  readonly defaults?: Partial<AgentSelection['defaults']>
}

const select = ({ mine = '*', asked, agents = rules, defaults }: Asked): string =>
  selectAgent({
    credential: { agents: mine },
    asked,
    agents,
    defaults: { denyOnMissingAgent: true, ...defaults },
  }).agent

function refusal(asked: Asked): ToolwayError {
  try {
    select(asked)
  } catch (error) {
    if (error instanceof ToolwayError) return error
    throw error
  }
  return expect.fail('an agent was selected')
}

test('G7: with no agents configured every caller is default, whatever it asks for', () => {
  const agents = new Set<string>()
  expect(select({ agents })).toBe('default')
  expect(select({ agents, mine: ['researcher'], asked: 'backend', defaults: { agent: 'x' } })).toBe('default')
})

describe('G7: an agent was asked for', () => {
  test('a credential may be each of its agents, a local caller all of them', () => {
    expect(select({ mine: ['researcher', 'backend'], asked: 'backend' })).toBe('backend')
    expect(select({ mine: '*', asked: 'researcher.junior' })).toBe('researcher.junior')
  })

  test('any other is an error that does not reveal which agents exist', () => {
    const error = refusal({ mine: ['researcher'], asked: 'backend' })
    expect(error.code).toBe('INVALID_AGENT_ID')
    expect(error.message).toBe('This credential may not act as the agent "backend"; use researcher, or omit it.')
    const unknown = refusal({ mine: ['researcher'], asked: 'nothing' })
    expect(unknown.message.replace('nothing', 'backend')).toBe(error.message)
  })

  test('a parent is not its children, nor the other way round', () => {
    expect(refusal({ mine: ['researcher'], asked: 'researcher.junior' }).code).toBe('INVALID_AGENT_ID')
    expect(refusal({ mine: ['researcher.junior'], asked: 'researcher' }).code).toBe('INVALID_AGENT_ID')
  })

  test('one without rules is an error, with the near misses', () => {
    expect(refusal({ asked: 'reseacher' }).message).toBe('There is no agent "reseacher"; did you mean "researcher"?')
    const gone = refusal({ mine: ['gone', 'backend'], asked: 'gone' })
    expect(gone).toMatchObject({ code: 'INVALID_AGENT_ID' })
    expect(gone.message).toBe('The configuration has no rules for the agent "gone"; use backend, or omit it.')
  })

  test('names are exact, and nothing is found that every object has', () => {
    for (const asked of ['', 'Researcher', 'researcher ', '*', '__proto__', 'constructor', 'rеsearcher'])
      expect(refusal({ asked }).code).toBe('INVALID_AGENT_ID')
    expect(refusal({ mine: [], asked: '*', defaults: { agent: 'backend' } }).code).toBe('INVALID_AGENT_ID')
  })

  test('a long or strange name is shown short and plain', () => {
    const { message } = refusal({ asked: `\u001b[2J\u202e\n${'x'.repeat(1_000_000)}` })
    expect(message.length).toBeLessThan(300)
    expect(message).toMatch(/^[\x20-\x7e…]+$/)
  })
})

describe('G7: no agent was asked for', () => {
  test('the only agent of the credential', () => {
    expect(select({ mine: ['backend'], defaults: { agent: 'researcher' } })).toBe('backend')
    expect(select({ mine: ['backend', 'backend'] })).toBe('backend')
  })

  test('its only agent without rules is an error, not another agent', () => {
    const error = refusal({ mine: ['gone'], defaults: { agent: 'researcher', denyOnMissingAgent: false } })
    expect(error.code).toBe('FALLBACK_AGENT_NOT_IN_RULES')
    expect(error.message).toContain('add agents.gone, or assign another agent')
  })

  test('else the configured default agent, also where missing agents are denied', () => {
    expect(select({ defaults: { agent: 'researcher' } })).toBe('researcher')
    expect(select({ mine: [], defaults: { agent: 'researcher' } })).toBe('researcher')
    expect(select({ mine: ['backend', 'researcher'], defaults: { agent: 'researcher' } })).toBe('researcher')
  })

  test('a configured default agent without rules is an error, not another agent', () => {
    const error = refusal({ defaults: { agent: 'gone', denyOnMissingAgent: false } })
    expect(error).toMatchObject({ code: 'FALLBACK_AGENT_NOT_IN_RULES', details: { rule: 'defaults.agent' } })
    expect(error.message).toContain('add agents.gone, or correct defaults.agent')
    // Also for a credential that lists it: it must not get the other agent, which may be allowed more.
    const listing = refusal({ mine: ['gone', 'backend'], defaults: { agent: 'gone' } })
    expect(listing).toMatchObject({ code: 'FALLBACK_AGENT_NOT_IN_RULES', details: { rule: 'defaults.agent' } })
  })

  test('else the agent called default, unless missing agents are denied', () => {
    expect(select({ defaults: { denyOnMissingAgent: false } })).toBe('default')
    const error = refusal({})
    expect(error).toMatchObject({ code: 'NO_FALLBACK_CONFIGURED', details: { rule: 'defaults.denyOnMissingAgent' } })
    expect(error.message).toContain('set defaults.agent')
  })

  test('else an error that says how to name one', () => {
    const agents = new Set(['backend'])
    const error = refusal({ agents, defaults: { denyOnMissingAgent: false } })
    expect(error.code).toBe('NO_FALLBACK_CONFIGURED')
    expect(error.message).toContain('Toolway-Agent')
    expect(refusal({ mine: ['backend', 'researcher'] }).message).toContain('specify backend or researcher')
  })

  test('agents without rules beside others are ignored, and never replaced by the default agent', () => {
    const defaults = { agent: 'backend', denyOnMissingAgent: false }
    expect(select({ mine: ['employees', 'researcher', 'staff'], defaults })).toBe('researcher')
    expect(refusal({ mine: ['employees', 'staff'], defaults }).code).toBe('NO_FALLBACK_CONFIGURED')
    expect(refusal({ mine: ['employees'], defaults }).code).toBe('FALLBACK_AGENT_NOT_IN_RULES')
  })

  test('a credential that names agents does not get the default agent', () => {
    const mine = ['backend', 'researcher.junior']
    const defaults = { agent: 'researcher', denyOnMissingAgent: false }
    const { code, message } = refusal({ mine, defaults })
    expect(code).toBe('NO_FALLBACK_CONFIGURED')
    // The message gives the reason, but not the name of an agent that the credential may not act as.
    expect(message).toContain('may not act as the default agent')
    expect(message).not.toMatch(/no default agent|researcher\b(?!\.junior)/)
  })

  test('a credential that names none is what callers without an agent are, and may ask for that alone', () => {
    const defaults = { agent: 'researcher' }
    expect(select({ mine: [], defaults })).toBe('researcher')
    expect(select({ mine: [], asked: 'researcher', defaults })).toBe('researcher')
    expect(refusal({ mine: [], asked: 'backend', defaults }).code).toBe('INVALID_AGENT_ID')
    expect(refusal({ mine: [], asked: 'backend' }).code).toBe('INVALID_AGENT_ID')
  })
})

test('G7: a selected agent has rules, and is one of the agents of the credential if it names any', () => {
  const name = fc.constantFrom(...rules, 'gone', '__proto__', '*', '')
  const selections = fc.record({
    mine: fc.oneof(fc.constant('*' as const), fc.array(name, { maxLength: 3 })),
    asked: fc.option(name, { nil: undefined }),
    agent: fc.option(name, { nil: undefined }),
    denyOnMissingAgent: fc.boolean(),
  })
  let selected = 0
  const some = runs(400, 20_000)
  fc.assert(
    fc.property(selections, ({ mine, asked, agent, denyOnMissingAgent }) => {
      try {
        const found = select({ mine, ...(asked !== undefined && { asked }), defaults: { agent, denyOnMissingAgent } })
        selected++
        expect(rules.has(found)).toBe(true)
        if (asked !== undefined) expect(found).toBe(asked)
        if (mine !== '*' && mine.length > 0) expect(mine).toContain(found)
        else if (asked === undefined || mine !== '*') expect([agent, 'default']).toContain(found)
      } catch (error) {
        if (!(error instanceof ToolwayError)) throw error
        expect(error.code).toMatch(/^(INVALID_AGENT_ID|FALLBACK_AGENT_NOT_IN_RULES|NO_FALLBACK_CONFIGURED)$/)
        expect(error.code === 'INVALID_AGENT_ID').toBe(asked !== undefined)
      }
    }),
    some,
  )
  expect(selected).toBeGreaterThan(some.numRuns / 20)
})

test('G7: the error for a missing agent shows a model how to name one, and no agent that it may not be', () => {
  const selection = {
    credential: { agents: ['a', 'b'] },
    agents: new Set(['a', 'b', 'secret']),
    defaults: { denyOnMissingAgent: true },
  }
  const { code, message } = refusalOfNone(selection)
  expect(code).toBe('NO_FALLBACK_CONFIGURED')
  expect(message).toContain('"agent_id": "a"')
  expect(message).toContain('Toolway-Agent: a')
  expect(refusalOfNone({ ...selection, credential: { agents: [] } }).message).not.toMatch(/secret|"a"/)
})

type Options = Parameters<typeof compileCapture>[0]
const captured = (mcpServers: object, agents: object) => compileCapture({ mcpServers, agents } as Options)
const call = (server: string, agent: string) =>
  callOf({ entry: entryOf({ server }), caller: { ...callOf().caller, agent } })

test('V11: without an opt-in nothing is captured', () => {
  expect(captured({ files: { capture: false } }, { team: {} })).toBeUndefined()
})

test('V11: a server or an agent opts in; a child inherits it and may turn it off', () => {
  const wants = captured(
    { files: { capture: true }, git: {} },
    { team: { capture: true }, 'team.a': {}, 'team.b': { capture: false } },
  )
  expect(wants?.(call('files', 'default'))).toBe(true)
  expect(wants?.(call('git', 'default'))).toBe(false)
  expect(wants?.(call('git', 'team'))).toBe(true)
  expect(wants?.(call('git', 'team.a'))).toBe(true)
  expect(wants?.(call('git', 'team.b'))).toBe(false)
})
