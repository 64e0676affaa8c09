import { describe, expect, test } from 'vitest'
import type { Config, ServerConfig } from '../config/schema.ts'
import { Policy } from './decide.ts'
import { agentOf, openPolicy } from './policies.fixture.ts'
import { createReplay, type PastCall } from './replay.ts'

const policyOf = (changes: Partial<Config>) => {
  const defaults = {
    denyOnMissingAgent: true,
    expose: 'both',
    autoThreshold: 10_000,
    autoAbove: 'meta',
    alwaysLoad: [] as string[],
    timeout: 1,
    maxTimeout: 1,
    debug: false,
  } as const
  const policy = { ...openPolicy, toolsNeedServer: false, hideDenied: false, pins: 'warn' as const }
  return new Policy({ config: { agents: {}, policy, defaults, mcpServers: {}, ...changes } })
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

function replay(changes: Partial<Config>, calls: readonly PastCall[], serversProposed = 'mcpServers' in changes) {
  const { mcpServers = {} } = changes
  const replaying = createReplay({ policy: policyOf(changes), servers: mcpServers, serversProposed })
  for (const call of calls) replaying.add(call)
  return replaying.result()
}

/** Servers of which only what matters is written down. */
const serversOf = (written: Record<string, Partial<ServerConfig>>): Config['mcpServers'] =>
  Object.fromEntries(
    Object.entries(written).map(([name, server]) => {
      const plain = { readOnly: false, readTools: [], trustAnnotations: false, tools: { include: ['*'], exclude: [] } }
      return [name, { ...plain, disabled: false, ...server } as unknown as ServerConfig]
    }),
  )

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

  test('leaves out what was never found, whose server was not ready, and what names nothing', () => {
    const { tool: _, ...list } = past()
    const failed = ['tool_not_found', 'server_unhealthy', 'auth_required']
    const lookups = failed.map((reason) => past({ decision: 'ERROR', reason }))
    expect(replay({ agents }, [...lookups, list]).calls).toBe(0)
  })

  test('on a server that becomes read-only, the proposed readTools decide what is a read, not the record', () => {
    const mcpServers = serversOf({ files: { readOnly: true, readTools: ['ec*'] } })
    const { denied, allowed } = replay({ mcpServers }, [
      past({ tool: 'echo', write: true }),
      past({ tool: 'read', write: false }),
      past({ kind: 'resource', tool: 'file:///a', write: false }),
    ])
    expect(denied).toMatchObject([{ tool: 'read', after: 'mcpServers.files.readOnly' }])
    expect(allowed).toEqual([])
  })

  test('a refused write that the proposed readTools list would now be allowed', () => {
    const refused = { decision: 'DENY', reason: 'write_not_allowed', rule: 'mcpServers.files.readOnly' } as const
    const calls = ['write', 'move'].map((tool) => past({ tool, write: true, ...refused }))
    const mcpServers = serversOf({ files: { readOnly: true, readTools: ['echo', 'write'] } })
    expect(replay({ mcpServers }, calls)).toMatchObject({
      denied: [],
      allowed: [{ tool: 'write', before: 'mcpServers.files.readOnly', after: 'agents (none configured)' }],
    })
  })

  test('if the proposal trusts annotations, recorded reads are reads', () => {
    const calls = [past(), past({ tool: 'write', write: true })]
    const deniedWith = (server: Partial<ServerConfig>) =>
      replay({ mcpServers: serversOf({ files: { readOnly: true, ...server } }) }, calls).denied.map(({ tool }) => tool)
    expect(deniedWith({ trustAnnotations: true })).toEqual(['write'])
    expect(deniedWith({})).toEqual(['read', 'write'])
  })

  test('a call that a pin refused is not a change, whatever the proposed rules say', () => {
    const pinned = past({ decision: 'DENY', reason: 'quarantined', rule: 'policy.pins' })
    const none = { calls: 1, denied: [], allowed: [], gone: [] }
    expect(replay({ agents }, [pinned])).toEqual(none)
    expect(replay({ agents }, [{ ...pinned, server: 'db' }])).toEqual(none)
    expect(replay({ mcpServers: serversOf({ db: {} }) }, [pinned])).toEqual(none)
  })

  test('a meta-tool that was refused for its inner call, or for lack of an agent, is not a change', () => {
    const refused = { decision: 'DENY', reason: 'tool_not_allowed', rule: 'agents.a.deny.tools.files[0]' } as const
    const meta = { server: 'toolway', tool: 'execute_tool', call: 'outer' }
    const noAgent = { decision: 'DENY', reason: 'no_fallback_configured', agent: '(none)' } as const
    const { calls, denied, allowed } = replay({ agents }, [
      past({ ...refused, tool: 'write', call: 'inner', parent: 'outer' }),
      past({ ...refused, ...meta }),
      past({ ...noAgent, ...meta, call: 'other' }),
    ])
    expect([calls, denied, allowed]).toEqual([3, [], []])
    const denial = past({ ...meta, ...refused })
    expect(replay({ agents }, [denial]).allowed).toMatchObject([{ tool: 'execute_tool', calls: 1 }])
  })

  test('what the proposed servers no longer offer is shown apart, with the line that takes it away', () => {
    const mcpServers = serversOf({
      off: { disabled: true },
      files: { tools: { include: ['*'], exclude: ['x', 'wri*'] } },
      db: { tools: { include: ['read*'], exclude: [] } },
    })
    const calls = [
      past(),
      past({ tool: 'write' }),
      past({ tool: 'write', time: '2026-01-02T00:00:00.000Z' }),
      past({ server: 'db', tool: 'query' }),
      past({ server: 'db', kind: 'prompt', tool: 'hello' }),
      past({ server: 'off' }),
      past({ server: 'constructor' }),
      past({ server: 'native', tool: 'hash' }),
      past({ server: 'toolway', tool: 'list_servers' }),
    ]
    const { gone, denied, allowed } = replay({ mcpServers }, calls)
    expect(gone).toMatchObject([
      { server: 'files', tool: 'write', calls: 2, last: '2026-01-02T00:00:00.000Z', before: 'old' },
      { server: 'db', tool: 'query', calls: 1 },
      { server: 'off', tool: 'read', calls: 1 },
      { server: 'constructor', tool: 'read', calls: 1 },
    ])
    expect(gone.map(({ after }) => after)).toEqual([
      'mcpServers.files.tools.exclude[1]',
      'mcpServers.db.tools.include',
      'mcpServers.off.disabled',
      'mcpServers.constructor',
    ])
    expect([denied, allowed]).toEqual([[], []])
  })

  test('a refused call to a removed server is not a change; a call to a removed server is not also listed as denied', () => {
    const refused = past({ decision: 'DENY', reason: 'tool_blocked', rule: 'policy.blockedTools[0]' })
    const mcpServers = serversOf({ db: {} })
    expect(replay({ mcpServers }, [refused])).toMatchObject({ denied: [], allowed: [], gone: [] })
    const closed = replay({ agents: { a: agentOf({}) }, mcpServers }, [past()])
    expect(closed).toMatchObject({ denied: [], gone: [{ after: 'mcpServers.files' }] })
  })

  test('a proposal without servers takes none away', () => {
    const mcpServers = serversOf({ db: { disabled: true } })
    expect(replay({ mcpServers }, [past(), past({ server: 'db' })], false)).toMatchObject({ denied: [], gone: [] })
  })

  test('selects the agent of a caller whose calls were recorded without agents', () => {
    const defaults = {
      agent: 'a',
      denyOnMissingAgent: true,
      expose: 'both',
      autoThreshold: 10_000,
      autoAbove: 'meta',
      alwaysLoad: [] as string[],
      timeout: 1,
      maxTimeout: 1,
      debug: false,
    } as const
    expect(replay({ agents, defaults }, [past({ agent: 'default' })]).denied).toEqual([])
    expect(replay({ agents }, [past({ agent: 'default' })]).denied).toMatchObject([
      { agent: '(none)', after: 'defaults.denyOnMissingAgent' },
    ])
    expect(replay({ agents }, [past({ agent: 'gone' })]).denied).toMatchObject([{ after: 'agents (default deny)' }])
  })

  test('distinguishes anonymous callers', () => {
    const policy = {
      ...openPolicy,
      toolsNeedServer: false,
      hideDenied: false,
      pins: 'warn' as const,
      requireAuth: ['files.*'],
    }
    const { denied } = replay({ policy }, [past(), past({ anonymous: true })])
    expect(denied).toMatchObject([{ calls: 1, after: 'policy.requireAuth[0]' }])
  })
})
