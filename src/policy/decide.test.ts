import { expect, test } from 'vitest'
import { type Config, configSchema } from '../config/schema.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { Policy } from './decide.ts'
import { agentOf } from './policies.fixture.ts'

const open = {
  allowedServers: ['*'],
  allowedTools: [],
  blockedTools: [],
  requireAuth: [],
  toolsNeedServer: false,
  hideDenied: false,
  pins: 'warn' as const,
}
const { caller } = callOf()
const defaults = {
  denyOnMissingAgent: true,
  expose: 'both',
  autoThreshold: 10_000,
  autoAbove: 'meta',
  alwaysLoad: [] as string[],
  timeout: 30_000,
  maxTimeout: 600_000,
  debug: false,
} as const
const policyOf = (changes: Partial<Config> = {}) =>
  new Policy({ config: { agents: {}, policy: open, defaults, mcpServers: {}, ...changes } })
const decideBy = (policy: Config['policy']) => policyOf({ policy }).decide
const tool = (server: string, name: string) => entryOf({ server, name })

test('F7: with nothing configured everything is allowed', () => {
  expect(decideBy(open)(caller, tool('files', 'read'))).toMatchObject({ allowed: true })
})

test('F7: a blocked tool is refused by the rule that blocks it, also where it is allowed elsewhere', () => {
  const decide = decideBy({ ...open, allowedTools: ['*'], blockedTools: ['a.b', 'files.*'] })
  expect(decide(caller, tool('files', 'read'))).toMatchObject({ code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[1]' })
  expect(decide(caller, tool('other', 'read'))).toMatchObject({ allowed: true })
})

test('F3: a tool that is denied or blocked under one of its names is so under all of them', () => {
  const find = entryOf({ server: 'toolway', name: 'find_tool', aliases: ['search_tools'] })
  for (const name of ['find_tool', 'search_tools', 'search_*']) {
    const blocking = policyOf({ policy: { ...open, blockedTools: [`toolway.${name}`] } })
    expect(blocking.decide(caller, find)).toMatchObject({ code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]' })
    const denying = policyOf({ agents: { [caller.agent]: agentOf({ deny: { tools: { toolway: [name] } } }) } as never })
    const rule = `agents.${caller.agent}.deny.tools.toolway[0]`
    expect(denying.decide(caller, find)).toMatchObject({ allowed: false, rule })
    expect(denying.explain(caller.agent, find)).toMatchObject({ rule, decision: { allowed: false } })
  }
  expect(policyOf().explain(caller.agent, find).decision).toMatchObject({ allowed: true })
})

test('F7: only the allowed servers may be used; meta-tools need not be listed but can be blocked', () => {
  const decide = decideBy({ ...open, allowedServers: ['files'], blockedTools: ['toolway.execute_tools'] })
  expect(decide(caller, tool('files', 'read'))).toMatchObject({ allowed: true })
  expect(decide(caller, tool('native', 'hash'))).toMatchObject({ code: 'NAMESPACE_NOT_ALLOWED' })
  expect(decide(caller, tool('toolway', 'list_servers'))).toMatchObject({ allowed: true })
  expect(decide(caller, tool('toolway', 'execute_tools'))).toMatchObject({ code: 'TOOL_BLOCKED' })
})

test('F7: a list of allowed tools excludes every other tool, not resources and prompts', () => {
  const decide = decideBy({ ...open, allowedTools: ['files.read*'] })
  expect(decide(caller, tool('files', 'read_text'))).toMatchObject({ allowed: true })
  expect(decide(caller, tool('files', 'write'))).toMatchObject({
    code: 'DENIED_BY_POLICY',
    rule: 'policy.allowedTools',
  })
  expect(decide(caller, entryOf({ kind: 'prompt', name: 'hello' }))).toMatchObject({ allowed: true })
})

test('F7: some tools need an authenticated caller', () => {
  const decide = decideBy({ ...open, requireAuth: ['db.*'] })
  expect(decide(caller, tool('db', 'query'))).toMatchObject({ allowed: true })
  expect(decide({ ...caller, authenticated: false }, tool('db', 'query'))).toMatchObject({
    code: 'AUTH_REQUIRED',
    rule: 'policy.requireAuth[0]',
  })
})

const agents = {
  team: { ...agentOf({ allow: { servers: ['files'], tools: {} } }), expose: 'meta' as const },
  'team.junior': agentOf({ deny: { servers: [], tools: { files: ['write'] } } }),
  other: agentOf({ allow: { servers: ['files'], tools: {} } }),
}

test("W8: an agent's own schemas apply, else those of an agent it inherits from, else the default, else the client's", () => {
  const allow = { allow: { servers: ['files'], tools: {} } }
  const agents = {
    team: { ...agentOf(allow), schemas: 'portable' as const },
    'team.dev': agentOf(allow),
    'team.ops': { ...agentOf(allow), schemas: 'verbatim' as const },
    other: agentOf(allow),
  }
  const isPortable = (agent: string, client?: string, schemas?: Config['schemas']) =>
    policyOf({ agents, ...(schemas && { schemas }) }).isPortable({ ...caller, agent, client })
  expect(['team', 'team.dev', 'team.ops', 'other'].map((agent) => isPortable(agent))).toEqual([
    true,
    true,
    false,
    false,
  ])
  expect([isPortable('other', undefined, 'portable'), isPortable('team.ops', undefined, 'portable')]).toEqual([
    true,
    false,
  ])
  const gemini = 'gemini-cli-mcp-client-files'
  expect([isPortable('other', gemini), isPortable('other', gemini, 'verbatim')]).toEqual([true, false])
  expect([isPortable('team.ops', gemini), isPortable('other', 'claude-code')]).toEqual([false, false])
})

test("B3: an agent's own exposure applies, else that of an agent it inherits from, else the default", () => {
  const exposing = policyOf({ agents })
  const exposureOf = (agent: string) => exposing.exposureOf(agent)
  expect(['team', 'team.junior', 'other', 'nobody'].map(exposureOf)).toEqual(['meta', 'meta', 'both', 'both'])
})

test("G5: an agent's own debug setting applies, else that of its nearest parent, else the default", () => {
  const told = {
    ...agents,
    team: { ...agents.team, debug: true },
    'team.junior.new': { ...agents.other, debug: false },
  }
  const names = ['team', 'team.junior', 'team.junior.new', 'other', 'nobody']
  const closing = policyOf({ agents: told })
  const closed = (agent: string) => closing.mayDebug(agent)
  expect(names.filter((name) => closed(name).allowed)).toEqual(['team', 'team.junior'])
  const opening = policyOf({ agents: told, defaults: { ...defaults, debug: true } })
  const open = (agent: string) => opening.mayDebug(agent)
  expect(names.filter((name) => !open(name).allowed)).toEqual(['team.junior.new'])
  expect(names.map((name) => closed(name).rule)).toEqual([
    ...['agents.team.debug', 'agents.team.debug', 'agents.team.junior.new.debug'],
    ...['defaults.debug', 'defaults.debug'],
  ])
})

test('G7: a caller without an agent may use the meta-tools, where it can name one, and nothing else', () => {
  const chosen = policyOf({ agents })
  const { decide } = chosen
  const choose: Policy['agentOf'] = (...asked) => chosen.agentOf(...asked)
  const agent = choose({ agents: '*' }, undefined)
  const nobody = { ...caller, agent }
  expect(decide(nobody, tool('toolway', 'execute_tool'))).toMatchObject({ allowed: true })
  expect(decide(nobody, tool('files', 'read'))).toMatchObject({
    allowed: false,
    code: 'NO_FALLBACK_CONFIGURED',
    rule: 'defaults.denyOnMissingAgent',
  })
  expect(choose({ agents: '*' }, 'team')).toBe('team')
  expect(() => choose({ agents: ['other'] }, 'team')).toThrow('may not act as the agent "team"')
})

test('G7: an empty agent_id is one that is missing', () => {
  const policy = policyOf({ agents })
  const entry = tool('toolway', 'execute_tool')
  const act = (agent: string, asked: string) => policy.actAs({ caller: { ...caller, agent }, entry }, asked).agent
  expect(act('team', '')).toBe('team')
  expect(act('team', 'other')).toBe('other')
  expect(() => act('(none)', '')).toThrow('No agent was specified')
})

test('G7: a server is closed to a caller without an agent for the same reason as its tools, to others for their own', () => {
  const policy = policyOf({ agents: { other: agentOf({ allow: { servers: ['files'] } }) } as never })
  for (const agent of ['(none)', 'stranger', 'other']) {
    const asked = { ...caller, agent }
    const { auditReason: _, ...closed } = (policy.closed(asked, 'search') ?? {}) as Record<string, unknown>
    const { auditReason: __, ...denied } = policy.decide(asked, tool('search', 'find')) as unknown as typeof closed
    expect([agent, closed]).toEqual([agent, denied])
  }
})

test('G7: a blocked meta-tool is blocked for a caller without an agent too', () => {
  const policy = { ...open, blockedTools: ['toolway.execute_tool'] }
  const blocking = policyOf({ agents, policy })
  const { decide } = blocking
  const choose: Policy['agentOf'] = (...asked) => blocking.agentOf(...asked)
  const nobody = { ...caller, agent: choose({ agents: '*' }, undefined) }
  expect(decide(nobody, tool('toolway', 'execute_tool'))).toMatchObject({ code: 'TOOL_BLOCKED' })
})

const mcpServers = { files: { readOnly: true }, other: { readOnly: false } } as unknown as Config['mcpServers']
const reading = { readOnly: true, idempotent: true, timeoutMs: 1 }

test('J2: on a read-only server only what is known to be a read may be used', () => {
  const { decide } = policyOf({ mcpServers })
  expect(decide(caller, tool('files', 'write'))).toMatchObject({
    code: 'WRITE_NOT_ALLOWED',
    rule: 'mcpServers.files.readOnly',
    reason: expect.stringMatching(/^Write not allowed/),
  })
  expect(decide(caller, { ...tool('files', 'read'), traits: reading })).toMatchObject({ allowed: true })
  expect(decide(caller, tool('other', 'write'))).toMatchObject({ allowed: true })
})

test('J2, B5: an explanation has the same outcome as the decision for read-only servers and quarantine', () => {
  const quarantined = ({ name }: { name: string }) =>
    name === 'changed'
      ? ({ allowed: false, code: 'QUARANTINED', rule: 'policy.pins', reason: 'It has changed.' } as const)
      : undefined
  const { config } = { config: { agents: {}, policy: open, defaults: {} as Config['defaults'], mcpServers } }
  const quarantining = new Policy({ config, quarantined })
  const { decide } = quarantining
  for (const entry of [
    tool('files', 'write'),
    { ...tool('files', 'changed'), traits: reading },
    { ...tool('files', 'read'), traits: reading },
  ]) {
    const { decision, considered } = quarantining.explain('default', entry)
    expect(decision).toEqual(decide(caller, entry))
    expect(considered.at(-1)).toMatchObject({ outcome: decision.allowed ? 'allows' : 'denies', rule: decision.rule })
  }
})

test('V15: at an endpoint, an agent in code mode may run programs, and other agents may not', () => {
  const allow = { servers: ['*'] }
  const { data } = configSchema.safeParse({
    agents: { coder: { allow, expose: 'code' }, reader: { allow, expose: 'meta' }, chooser: { allow, expose: 'auto' } },
    endpoints: { research: { servers: ['web'] } },
    defaults: { autoAbove: 'code' },
  })
  const policy = new Policy({ config: data as Config })
  const entry = entryOf({ server: 'native', name: 'execute_code' })
  const runs = (agent: string) => {
    const caller = { ...callOf().caller, agent, endpoint: 'research' }
    expect(policy.closed(caller, 'native') === undefined).toBe(policy.decide(caller, entry).allowed)
    return policy.decide(caller, entry).allowed
  }
  expect(['coder', 'reader', 'chooser'].map(runs)).toEqual([true, false, true])
})
