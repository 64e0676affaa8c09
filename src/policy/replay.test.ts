import { describe, expect, test } from 'vitest'
import type { Config } from '../config/schema.ts'
import { createPolicy } from './decide.ts'
import { agentOf, openPolicy } from './policies.fixture.ts'
import { createReplay, type PastCall } from './replay.ts'

const policyOf = (changes: Partial<Config>) => {
  const defaults = { denyOnMissingAgent: true, expose: 'both', timeout: 1, debug: false } as const
  const policy = { ...openPolicy, pins: 'warn' as const }
  return createPolicy({ config: { agents: {}, policy, defaults, mcpServers: {}, ...changes } })
}

const past = (changes: Partial<PastCall> = {}): PastCall => ({
  time: '2026-01-01T00:00:00.000Z',
  agent: 'a',
  kind: 'tool',
  server: 'files',
  tool: 'read',
  write: false,
  decision: 'ALLOW',
  rule: 'old',
  ...changes,
})

function replay(changes: Partial<Config>, calls: readonly PastCall[]) {
  const replaying = createReplay(policyOf(changes))
  for (const call of calls) replaying.add(call)
  return replaying.result()
}

const agents = { a: agentOf({ allow: { servers: ['files'] }, deny: { tools: { files: ['write*'] } } }) }

describe('B12: a proposed policy over recorded calls', () => {
  test('shows what would now be denied, how often it was done and when last, most often first', () => {
    const write = past({ tool: 'write', write: true })
    const { calls, denied, allowed } = replay({ agents }, [
      past(),
      past({ server: 'db', tool: 'query' }),
      write,
      { ...write, time: '2026-01-03T00:00:00.000Z' },
      { ...write, time: '2026-01-02T00:00:00.000Z', decision: 'ERROR', reason: 'timeout' },
    ])
    expect(calls).toBe(5)
    expect(allowed).toEqual([])
    expect(denied).toMatchObject([
      {
        agent: 'a',
        server: 'files',
        tool: 'write',
        calls: 3,
        last: '2026-01-03T00:00:00.000Z',
        before: 'old',
        after: 'agents.a.deny.tools.files[0]',
        reason: expect.stringContaining('may not use files.write'),
      },
      { server: 'db', tool: 'query', calls: 1, after: 'agents.a (default deny)' },
    ])
  })

  test('shows what would now be allowed', () => {
    const refused = past({ decision: 'DENY', reason: 'tool_not_allowed', rule: 'agents.a (default deny)' })
    expect(replay({ agents }, [refused])).toMatchObject({
      denied: [],
      allowed: [{ calls: 1, before: 'agents.a (default deny)', after: 'agents.a.allow.servers[0]' }],
    })
  })

  test('counts what a limit or a guard refused as allowed by policy', () => {
    const limited = past({ decision: 'DENY', reason: 'rate_limited' })
    expect(replay({ agents }, [limited])).toMatchObject({ calls: 1, denied: [], allowed: [] })
    expect(replay({ agents }, [{ ...limited, server: 'db' }]).denied).toHaveLength(1)
  })

  test('leaves out what was never found, and what names nothing', () => {
    const { tool: _, ...list } = past()
    expect(replay({ agents }, [past({ decision: 'ERROR', reason: 'tool_not_found' }), list]).calls).toBe(0)
  })

  test('knows writes on servers that become read-only', () => {
    const mcpServers = { files: { readOnly: true } } as unknown as Config['mcpServers']
    const { denied } = replay({ mcpServers }, [past(), past({ tool: 'write', write: true })])
    expect(denied).toMatchObject([{ tool: 'write', after: 'mcpServers.files.readOnly' }])
  })

  test('asks who a caller would be where there were no agents yet', () => {
    const defaults = { agent: 'a', denyOnMissingAgent: true, expose: 'both', timeout: 1, debug: false } as const
    expect(replay({ agents, defaults }, [past({ agent: 'default' })]).denied).toEqual([])
    expect(replay({ agents }, [past({ agent: 'default' })]).denied).toMatchObject([
      { agent: '(none)', after: 'defaults.denyOnMissingAgent' },
    ])
    expect(replay({ agents }, [past({ agent: 'gone' })]).denied).toMatchObject([{ after: 'agents (default deny)' }])
  })

  test('knows who was anonymous', () => {
    const policy = { ...openPolicy, pins: 'warn' as const, requireAuth: ['files.*'] }
    const { denied } = replay({ policy }, [past(), past({ anonymous: true })])
    expect(denied).toMatchObject([{ calls: 1, after: 'policy.requireAuth[0]' }])
  })
})
