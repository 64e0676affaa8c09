import type {
  AgentView,
  CallDetail,
  CallView,
  ChainView,
  ConfigView,
  Figures,
  Overview,
  ReloadEvent,
  ServerDetail,
  ServerView,
  ToolDetail,
  ToolView,
} from './contract.ts'

/** Things of the contract as they may well be. */
export const figures: Figures = {
  ...{ calls: 3, errors: 1, denials: 1, perSecond: 0.5 },
  ...{ averageMs: 2.5, p50Ms: 2, p95Ms: 4, p99Ms: 4 },
}

export const overview: Overview = {
  version: '1.2.3',
  startedAt: 1,
  endpoint: 'http://127.0.0.1:4322/mcp',
  calls: figures,
  ...{ inFlight: 0, queued: 0, sessions: 2, budgets: [] },
  cache: { hits: 1, misses: 2, joined: 0, hitRate: 1 / 3 },
  tokens: { direct: 100, exposed: 40, saved: 60 },
  servers: { healthy: 1, degraded: 0, unhealthy: 0, 'needs-auth': 0, starting: 0, stale: 0, disabled: 0 },
  unhealthy: 0,
  tools: 4,
  breakers: [{ server: 'files', state: 'open', since: 5 }],
  reload: { attempts: 1, successes: 1, lastAt: 6, lastError: null },
}

export const server: ServerView = {
  ...{ name: 'files', description: 'Files', health: 'healthy', reason: '', since: 1, transport: 'stdio' },
  ...{ era: 'legacy', protocolVersion: '2025-11-25', breaker: 'closed', tools: 4, latencyMs: null, lastError: null },
  process: { pid: 12, startedAt: 1, restarts: 0 },
  calls: figures,
  findings: [],
  paused: false,
}

export const serverDetail: ServerDetail = {
  ...server,
  ...{ launch: 'node server.js', callsSince: 1, toolTokens: 48 },
  offers: [{ kind: 'resource', name: 'readme', uri: 'file:///readme', description: '' }],
  connections: {
    total: 1,
    open: [{ scope: 'shared', pid: 12, openedAt: 1, principal: null, sessions: 1, inUse: false }],
  },
  events: [{ at: 1, kind: 'started', pid: 12, reason: null, times: 1 }],
  stderr: [{ at: 1, text: 'ready' }],
}

export const tool: ToolView = {
  ...{ name: 'files__read', server: 'files', tool: 'read', title: null, description: 'Reads', access: 'read' },
  ...{ tokens: 12, pin: 'pinned', flags: [] },
}

export const toolDetail: ToolDetail = {
  ...tool,
  definition: { name: 'files__read', inputSchema: { type: 'object' } },
  agents: [{ agent: 'default', allowed: true, rule: 'no agents' }],
  calls: figures,
}

export const call = (changes: Partial<CallView> = {}): CallView => ({
  ...{ id: 'c1', parent: null, at: 10, ms: 4, agent: 'default', principal: 'token', operation: 'call_tool' },
  ...{ server: 'files', name: 'read', outcome: 'answered', code: null, cache: null },
  ...changes,
})

export const callDetail: CallDetail = {
  ...call(),
  steps: [{ name: 'attempt', startMs: 1, ms: 2, error: null }],
  children: [],
  audit: { begin: { seq: 1 }, end: null },
}

export const chain: ChainView = { state: 'unknown', checkedAt: null, records: null, problems: [] }

export const agent: AgentView = {
  ...{ name: 'default', inherits: null, expose: 'both', isDefault: true, tools: 4 },
  tokens: { direct: 400, exposed: 500, saved: 0 },
  ...{ perMinute: null, concurrency: 2, calls: figures },
}

export const reloaded: ReloadEvent = { at: 7, ok: true, error: null, changes: ['server files added'] }

export const configView: ConfigView = {
  files: [{ path: '/etc/toolway.yaml', dialect: 'toolway' }],
  config: { version: 1 },
  warnings: [],
  reload: overview.reload,
  history: [reloaded],
}
