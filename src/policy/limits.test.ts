import { describe, expect, test } from 'vitest'
import type { LimitedEntry } from '../core/stores.ts'
import { compileLimits, compileResultLimits, type LimitsOptions } from './limits.ts'

const traits = { readOnly: false, idempotent: false, timeoutMs: 1 }
const tool = (server: string, name: string): LimitedEntry => ({ kind: 'tool', server, name, traits })
const carrier = (name: string): LimitedEntry => ({ ...tool('toolway', name), traits: { ...traits, carries: true } })

const as = (agent: string, principal = 'key:1') => ({ agent, principal })

const compiled = (limits: Partial<LimitsOptions['limits']>, agents: LimitsOptions['agents'] = {}) =>
  compileLimits({ limits: { servers: {}, tools: {}, ...limits }, agents })

const rules = (limitsOf: ReturnType<typeof compiled>, entry: LimitedEntry, agent = 'default') =>
  limitsOf(as(agent), entry).map(({ rule, perMinute }) => `${rule}: ${perMinute}`)

describe('F8: which limits a call meets', () => {
  test('none unless configured', () => {
    expect(compiled({})(as('default'), tool('files', 'read'))).toEqual([])
    expect(compiled({ servers: { web: 5 } })(as('default'), tool('files', 'read'))).toEqual([])
  })

  test('the most particular of tool, server and default', () => {
    const limitsOf = compiled({ perMinute: 600, servers: { files: 100 }, tools: { 'files.read': 10 } })
    expect(rules(limitsOf, tool('files', 'read'))).toEqual(['limits.tools.files.read: 10'])
    expect(rules(limitsOf, tool('files', 'write'))).toEqual(['limits.servers.files: 100'])
    expect(rules(limitsOf, tool('web', 'get'))).toEqual(['limits.perMinute: 600'])
  })

  test('the limit for every server is of servers only: each has its own, native, meta-tools and sinks have none', () => {
    const limitsOf = compiled({ servers: { '*': 3, web: 5 }, tools: { 'files.read': 1 } })
    expect(rules(limitsOf, tool('files', 'write'))).toEqual(['limits.servers.*: 3'])
    expect(rules(limitsOf, tool('files', 'read'))).toEqual(['limits.tools.files.read: 1'])
    expect(rules(limitsOf, { ...tool('mail', 'a://b'), kind: 'resource' })).toEqual(['limits.servers.*: 3'])
    expect(rules(limitsOf, tool('web', 'get'))).toEqual(['limits.servers.web: 5'])
    for (const server of ['native', 'toolway', 'sink']) expect(rules(limitsOf, tool(server, 'any'))).toEqual([])
    const [of, other] = ['files', 'mail'].map((server) => limitsOf(as('a'), tool(server, 'x'))[0])
    expect(of).toMatchObject({ scope: ' to the server files' })
    expect(of?.key).not.toBe(other?.key)
    expect(limitsOf(as('a'), tool('files', 'y'))[0]?.key).toBe(of?.key)
    expect(rules(compiled({ perMinute: 9, servers: { '*': 3 } }), tool('native', 'hash'))).toEqual([
      'limits.perMinute: 9',
    ])
  })

  test('an exact name before any pattern, and of patterns the one with the longest prefix', () => {
    const written = {
      '*': 1,
      'files.*': 2,
      'files.re*': 3,
      'files.re*d': 4,
      'files.r*e*d': 5,
      'files.read': 6,
      '*.get': 7,
    }
    const backwards = Object.fromEntries(Object.entries(written).reverse())
    for (const tools of [written, backwards]) {
      const limitsOf = compiled({ tools })
      expect(rules(limitsOf, tool('files', 'read'))).toEqual(['limits.tools.files.read: 6'])
      expect(rules(limitsOf, tool('files', 'rewind'))).toEqual(['limits.tools.files.re*d: 4'])
      expect(rules(limitsOf, tool('files', 'remove'))).toEqual(['limits.tools.files.re*: 3'])
      expect(rules(limitsOf, tool('files', 'write'))).toEqual(['limits.tools.files.*: 2'])
      expect(rules(limitsOf, tool('web', 'get'))).toEqual(['limits.tools.*.get: 7'])
      expect(rules(limitsOf, tool('web', 'put'))).toEqual(['limits.tools.*: 1'])
    }
  })

  test('the total of an agent counts beside them', () => {
    const limitsOf = compiled({ tools: { 'files.read': 10 } }, { ci: { perMinute: 120 } })
    expect(rules(limitsOf, tool('files', 'read'), 'ci')).toEqual([
      'limits.tools.files.read: 10',
      'agents.ci.perMinute: 120',
    ])
    expect(rules(limitsOf, tool('web', 'get'), 'ci')).toEqual(['agents.ci.perMinute: 120'])
    expect(rules(limitsOf, tool('web', 'get'), 'other')).toEqual([])
  })

  test('limits for tools apply to tools only; resources and prompts use those of the server and the default', () => {
    const limitsOf = compiled({ perMinute: 600, servers: { web: 5 }, tools: { '*': 1 } })
    expect(rules(limitsOf, { ...tool('files', 'read'), kind: 'prompt' })).toEqual(['limits.perMinute: 600'])
    expect(rules(limitsOf, { ...tool('web', 'a://b'), kind: 'resource' })).toEqual(['limits.servers.web: 5'])
  })

  test('a call that only carries others has only limits that name it or its server', () => {
    const general = compiled({ perMinute: 1, tools: { '*': 1, '*.execute_tool': 1 } }, { ci: { perMinute: 1 } })
    expect(rules(general, carrier('execute_tool'), 'ci')).toEqual([])
    expect(rules(general, tool('toolway', 'find_tool'), 'ci')).toEqual(['limits.tools.*: 1', 'agents.ci.perMinute: 1'])
    const own = compiled({ servers: { toolway: 3 }, tools: { 'toolway.execute_tools': 2 } })
    expect(rules(own, carrier('execute_tool'))).toEqual(['limits.servers.toolway: 3'])
    expect(rules(own, carrier('execute_tools'))).toEqual(['limits.tools.toolway.execute_tools: 2'])
    expect(rules(compiled({ tools: { 'toolway.*': 4 } }), carrier('execute_tool'))).toEqual([
      'limits.tools.toolway.*: 4',
    ])
  })

  test('a program counts as one call', () => {
    const program = { ...tool('native', 'execute_code'), traits: { ...traits, carries: true, counted: true } as const }
    const agents = { ci: { perMinute: 1 } }
    expect(rules(compiled({ perMinute: 2 }, agents), program, 'ci')).toEqual([
      'limits.perMinute: 2',
      'agents.ci.perMinute: 1',
    ])
    expect(rules(compiled({ perMinute: 2, tools: { '*.execute_*': 3 } }), program)).toEqual([
      'limits.tools.*.execute_*: 3',
    ])
  })

  test('aliases share one bucket: the lowest limit of any name, under the name that the entry has', () => {
    const find = { ...tool('toolway', 'find_tool'), aliases: ['search_tools'] }
    const limited = compiled({ tools: { 'toolway.find_tool': 9, 'toolway.search_tools': 3 } })
    expect(rules(limited, find)).toEqual(['limits.tools.toolway.search_tools: 3'])
    expect(limited(as('default'), find)[0]?.key).toBe('default tool toolway find_tool')
    expect(rules(compiled({ tools: { 'toolway.search_*': 4 } }), find)).toEqual(['limits.tools.toolway.search_*: 4'])
  })

  test('names of Object.prototype are not limits', () => {
    const limitsOf = compiled({ servers: { files: 1 } }, { ci: { perMinute: 1 } })
    expect(limitsOf(as('constructor'), tool('constructor', 'toString'))).toEqual([])
  })
})

describe('F8: which calls share a bucket', () => {
  const limitsOf = compiled(
    { perMinute: 600, servers: { files: 100 }, tools: { 'web.*': 10 } },
    { team: { perMinute: 50 }, 'team.role': {} },
  )
  const keys = (agent: string, entry: LimitedEntry) => limitsOf(as(agent), entry).map(({ key }) => key)

  test('tools of a server without limits of their own, and whatever has no limit at all', () => {
    expect(keys('a', tool('files', 'read'))).toEqual(keys('a', tool('files', 'write')))
    expect(keys('a', tool('mail', 'send'))).toEqual(keys('a', tool('chat', 'send')))
    expect(keys('a', tool('mail', 'send'))).not.toEqual(keys('a', tool('files', 'send')))
  })

  test('each tool that a pattern matches has its own', () => {
    expect(keys('a', tool('web', 'get'))).not.toEqual(keys('a', tool('web', 'put')))
    expect(keys('a', tool('web', 'get'))).toEqual(keys('a', tool('web', 'get')))
  })

  test('no two agents, also if one inherits from the other', () => {
    expect(keys('a', tool('files', 'read'))).not.toEqual(keys('b', tool('files', 'read')))
    const [, parent] = limitsOf(as('team'), tool('files', 'read'))
    const [, child] = limitsOf(as('team.role'), tool('files', 'read'))
    expect(child).toMatchObject({ perMinute: 50, rule: 'agents.team.perMinute' })
    expect(child?.key).not.toBe(parent?.key)
  })

  test('the nearest total of the family holds', () => {
    const agents = { a: { perMinute: 5 }, 'a.b': { perMinute: 9 }, 'a.b.c.d': {} }
    expect(rules(compiled({}, agents), tool('x', 'y'), 'a.b.c.d')).toEqual(['agents.a.b.perMinute: 9'])
  })

  test('no two different entries, however their names are composed', () => {
    const odd = compiled({ tools: { '*': 1 }, perMinute: 1 })
    const all = [
      tool('a', 'b c'),
      tool('a.b', 'c'),
      tool('a', 'b.c'),
      tool('a', 'tool b'),
      { ...tool('a', 'b'), kind: 'prompt' as const },
    ]
    const found = all.flatMap((entry) => odd(as('default'), entry).map(({ key }) => key))
    expect(new Set(found).size).toBe(all.length)
  })

  test('W12: per client, those of one principal, whichever agent it acts as; a total is of its calls as that agent', () => {
    const agents = { ci: { perMinute: 50 }, cd: { perMinute: 50 } }
    const perClient = compiled({ per: 'client', perMinute: 600, servers: { files: 100 } }, agents)
    const found = (agent: string, principal: string) =>
      perClient(as(agent, principal), tool('files', 'read')).map(({ key }) => key)
    const [own, total] = found('ci', 'key:1')
    expect(found('ci', 'key:1')).toEqual([own, total])
    expect(found('cd', 'key:1')).toEqual([own, expect.not.stringContaining(total as string)])
    for (const key of found('ci', 'key:2')) expect([own, total]).not.toContain(key)
    // A principal with the text of another one's key is still another one.
    expect(found('ci', 'key:1" server files')).not.toContain(own)
  })
})

const resultLimits = (results: object, agents: object = {}) =>
  compileResultLimits({ results: { tools: {}, keep: 1, compact: false, ...results }, agents } as never)

const limitOf = (limits: ReturnType<typeof resultLimits>, agent: string, tool = 'files.read', client?: string) => {
  const [server = '', name = ''] = tool.split('.')
  return limits?.of({ caller: { agent, client } as never, entry: { server, name } as never })
}

test('W7: the limit for a result is that of the tool, of the agent or a parent, of all, or of the client', () => {
  const agents = { team: { results: { maxTokens: 10 } }, 'team.child': {}, free: { results: { maxTokens: 0 } } }
  const limits = resultLimits({ maxTokens: 20, tools: { 'files.*': 30, 'files.list': 0 } }, agents)
  expect(['files.read', 'files.list', 'db.get'].map((tool) => limitOf(limits, 'team', tool))).toEqual([30, 0, 10])
  expect(['team.child', 'free', 'other'].map((agent) => limitOf(limits, agent, 'db.get'))).toEqual([10, 0, 20])
  expect(limitOf(limits, 'other', 'db.get', 'claude-code')).toBe(20)
  const unset = resultLimits({}, agents)
  const clients = ['Claude Code', 'other', undefined]
  expect(clients.map((client) => limitOf(unset, 'other', 'db.get', client))).toEqual([20_000, 0, 0])
  expect(limitOf(unset, 'free', 'db.get', 'claude-code')).toBe(0)
  expect([unset?.mayCut({ agent: 'free', client: 'claude-code' }), unset?.mayCut({ agent: 'team' })]).toEqual([
    false,
    true,
  ])
})

test('W7: with 0 there are no limits for results at all', () => {
  expect(resultLimits({ maxTokens: 0 })).toBeUndefined()
  expect(resultLimits({ maxTokens: 0, compact: true })?.isForAll).toBe(true)
})
