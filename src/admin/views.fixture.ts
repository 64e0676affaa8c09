import type {
  AgentTools,
  AgentView,
  ApprovalView,
  CallDetail,
  CallView,
  ChainView,
  ConfigView,
  EndpointView,
  Figures,
  GrantView,
  InboxView,
  KeyView,
  Overview,
  PinDetail,
  PolicyPreview,
  PolicyReplay,
  PolicySettings,
  ReloadEvent,
  ServerDetail,
  ServerView,
  SkillDetail,
  SkillView,
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

export const approval: ApprovalView = {
  ...{ id: 'a1', call: 'c1', agent: 'dev', principal: 'key:dev', session: '0a1b2c3d', server: 'files', tool: 'write' },
  ...{ arguments: '{}', rule: 'agents.dev.approve[0]', askedAt: 1, until: 2, mayAnswer: true },
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
  ...{ tokens: 12, pin: 'approved', quarantined: false, flags: [] },
}

export const agentTools: AgentTools = {
  ...{ all: [], shown: { direct: [], meta: [], both: [], code: [] } },
  ...{ expose: 'both', servers: [], refusal: null },
}

export const toolDetail: ToolDetail = {
  ...tool,
  definition: { name: 'files__read', inputSchema: { type: 'object' } },
  agents: [{ agent: 'default', allowed: true, rule: 'no agents' }],
  calls: figures,
}

export const inbox: InboxView = {
  items: [
    {
      ...{ id: 'server:files', kind: 'server', severity: 'warning', title: 'files is not working', detail: 'x' },
      ...{ since: 2, link: '/servers/files', actions: [{ name: 'Restart', path: 'servers/files/restart' }] },
    },
  ],
  ...{ dismissed: 0, left: 0 },
}

export const skillView: SkillView = {
  ...{ name: 'skill://files/tidy/SKILL.md', server: 'files', title: 'tidy', description: 'Tidies folders.' },
  ...{ label: 'skill:files.skill://tidy/SKILL.md', hash: 'a'.repeat(64), pin: 'changed', quarantined: true, flags: [] },
}
export const skill: SkillDetail = {
  ...skillView,
  files: [{ path: 'SKILL.md', digest: `sha256:${'b'.repeat(64)}`, size: 40 }],
  text: '---\nname: tidy\ndescription: Tidies folders.\n---\nList the folder first.',
  ...{ failure: null, findings: [] },
}
export const pin: PinDetail = {
  ...{ label: 'files.read', server: 'files', kind: 'tool', name: 'read', state: 'changed', mode: 'quarantine' },
  ...{ quarantined: true, open: true, hash: 'a'.repeat(64), seenAt: 3, approvedAt: 1 },
  ...{ approvedBy: 'first sight', changed: ['description'], flags: [], definitions: [] },
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
  captured: null,
  rerun: { possible: false, reason: 'Not captured.', write: true },
}

export const chain: ChainView = { state: 'unknown', checkedAt: null, records: null, problems: [] }

export const agent: AgentView = {
  ...{ name: 'default', inherits: null, expose: 'both', isDefault: true, tools: 4 },
  tokens: { direct: 400, exposed: 500, saved: 0 },
  ...{ perMinute: null, concurrency: 2, limitsPer: 'agent', calls: figures },
}

export const reloaded: ReloadEvent = { at: 7, ok: true, error: null, changes: ['server files added'] }

export const configView: ConfigView = {
  files: [{ path: '/etc/toolway.yaml', dialect: 'toolway' }],
  config: { version: 1 },
  warnings: [],
  reload: overview.reload,
  history: [reloaded],
}

export const endpoint: EndpointView = {
  ...{ name: 'research', path: '/mcp/research', url: 'http://127.0.0.1:4322/mcp/research', description: 'Papers' },
  ...{ agent: 'dev', expose: 'auto', tools: 3, tokens: { direct: 90, exposed: 90, saved: 0 } },
}

export const key: KeyView = {
  ...{ id: 'ci', agents: ['dev'], admin: false, created: 1, expires: null, expired: false },
  ...{ lastUsed: 2, source: 'file', previous: null },
}

export const policySettings: PolicySettings = {
  file: '/etc/toolway.yaml',
  editable: { ok: true },
  parts: [{ kind: 'agent', title: 'Agent dev', path: ['agents', 'dev'], value: {}, yaml: '{}\n', hash: 'p1' }],
  schemas: { agent: { type: 'object' } },
}

export const policyPreview: PolicyPreview = {
  agents: ['dev'],
  rows: [{ server: 'files', tool: 'read', before: [true], after: [false] }],
  ...{ changed: 1, total: 4, omitted: 0 },
}

const noChanges = { calls: 0, changes: [], omitted: 0 }

export const policyReplay: PolicyReplay = {
  ...{ since: 1, calls: 12, complete: true, allowed: noChanges, gone: noChanges },
  denied: {
    calls: 3,
    changes: [
      {
        ...{ agent: 'dev', server: 'files', tool: 'read', calls: 3, last: 2 },
        ...{ before: 'agents.dev.allow.servers[0]', after: 'agents.dev.deny.tools.files[0]', examples: ['c1'] },
      },
    ],
    omitted: 0,
  },
}

export const grant: GrantView = {
  ...{ principal: null, issuer: 'https://id.example.com', scopes: ['read'] },
  ...{ grantedAt: 0, expiresAt: null, renewable: true },
}
