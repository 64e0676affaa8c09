import type { Overview, ServerHealth, Stats } from '../../../src/admin/contract.ts'
import type { Scene } from './scene.ts'
import { figuresOf, noFigures } from './servers.ts'

const budgetsOf = (busy: boolean): Overview['budgets'] => [
  { name: 'calls', used: busy ? 3 : 0, limit: 256, perCaller: 192, largest: busy ? 2 : 0, refused: 0 },
  { name: 'queued_calls', used: 0, limit: 256, perCaller: 128, largest: 0, refused: busy ? 12 : 0 },
  {
    name: 'request_bytes',
    used: busy ? 48_217 : 0,
    limit: 134_217_728,
    perCaller: 33_554_432,
    largest: busy ? 31_833 : 0,
    refused: 0,
  },
  { name: 'sessions', used: busy ? 5 : 0, limit: 10_000, perCaller: 5_000, largest: busy ? 4 : 0, refused: 0 },
  {
    name: 'streams',
    used: busy ? 768 : 0,
    limit: 4_096,
    perCaller: 768,
    largest: busy ? 768 : 0,
    refused: busy ? 7 : 0,
  },
]

/** Overview of a scene. */
export function overviewOf(scene: Scene, startedAt: number, now: number): Overview {
  const count = (health: ServerHealth) => scene.servers.filter((server) => server.health === health).length
  const direct = scene.tools.reduce((sum, { tokens }) => sum + tokens, 0)
  const busy = scene.name !== 'empty'
  return {
    ...{ version: '0.7.0', startedAt, endpoint: 'http://127.0.0.1:4322/mcp' },
    calls: busy ? figuresOf(557, 8.6, 22, 15) : noFigures,
    ...{ inFlight: busy ? 3 : 0, queued: 0, sessions: busy ? 5 : 0, budgets: budgetsOf(busy) },
    cache: busy
      ? { hits: 1840, misses: 912, joined: 44, hitRate: 0.668 }
      : { hits: 0, misses: 0, joined: 0, hitRate: null },
    tokens: { direct, exposed: Math.round(direct * 0.12), saved: Math.round(direct * 0.88) },
    servers: {
      healthy: count('healthy'),
      degraded: count('degraded'),
      unhealthy: count('unhealthy'),
      'needs-auth': count('needs-auth'),
      starting: count('starting'),
      stale: count('stale'),
      disabled: count('disabled'),
    },
    unhealthy: count('unhealthy') + count('needs-auth') + count('degraded'),
    tools: scene.tools.length,
    breakers: scene.servers
      .filter(({ breaker }) => breaker !== 'closed')
      .map(({ name, breaker, since }) => ({ server: name, state: breaker, since })),
    reload: { attempts: busy ? 4 : 0, successes: busy ? 3 : 0, lastAt: busy ? now - 900_000 : null, lastError: null },
  }
}

/** Statistics by the requested grouping. */
export function statsOf({ servers, tools, agents, name }: Scene, by: Stats['by'], since: number, to: number): Stats {
  const names = {
    agent: agents,
    server: servers.filter(({ calls }) => calls.calls > 0).map((server) => server.name),
    operation: name === 'empty' ? [] : ['call_tool', 'list', 'read_resource', 'find'],
    'agent-operation': agents.map((agent) => `${agent}.call_tool`),
    tool: tools.map(({ server, tool }) => `${server}.${tool}`),
  }[by]
  return {
    by,
    since,
    to,
    rows: names.map((one, index) => ({ name: one, ...figuresOf(900 - index * 61, 4 + index * 9, index * 3, index) })),
  }
}
