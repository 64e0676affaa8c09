import type { Figures, ServerDetail } from '../../../src/admin/contract.ts'

const minute = 60_000
const hour = 60 * minute

export const noFigures: Figures = {
  ...{ calls: 0, errors: 0, denials: 0, perSecond: 0 },
  ...{ averageMs: null, p50Ms: null, p95Ms: null, p99Ms: null },
}

/** Statistics around a typical duration. */
export const figuresOf = (calls: number, usualMs: number, errors = 0, denials = 0): Figures => ({
  ...{ calls, errors, denials, perSecond: calls / 60 },
  ...{ averageMs: usualMs * 1.3, p50Ms: usualMs, p95Ms: usualMs * 3.4, p99Ms: usualMs * 7.2 },
})

const healthy = (now: number) => ({
  health: 'healthy' as const,
  reason: 'answers its pings',
  since: now - 3 * hour,
  era: 'legacy' as const,
  protocolVersion: '2025-11-25',
  breaker: 'closed' as const,
  lastError: null,
  findings: [] as ServerDetail['findings'],
  paused: false,
  ...{ launch: null, callsSince: now - 3 * hour, toolTokens: 2_350 },
  offers: [
    { kind: 'resource' as const, name: 'readme', uri: 'file:///project/README.md', description: 'What the project is' },
    { kind: 'template' as const, name: 'file', uri: 'file:///project/{path}', description: '' },
    { kind: 'prompt' as const, name: 'summarize', uri: null, description: 'Summarizes a file' },
  ],
  connections: {
    total: 2,
    open: [
      { scope: 'shared' as const, pid: null, openedAt: now - hour, principal: null, sessions: 3, inUse: true },
      { scope: 'session' as const, pid: null, openedAt: now - minute, principal: 'key:ci', sessions: 1, inUse: false },
    ],
  },
  events: [] as ServerDetail['events'],
  stderr: [] as ServerDetail['stderr'],
})

/** Lines of output, ten seconds apart, the last one now. */
const written = (now: number, ...lines: string[]): ServerDetail['stderr'] =>
  lines.map((text, index) => ({ at: now - (lines.length - 1 - index) * 10_000, text }))

/** Eight servers, covering every state. */
export const usualServers = (now: number): readonly ServerDetail[] => [
  {
    ...healthy(now),
    ...{ name: 'filesystem', description: 'Files under ./sandbox', transport: 'stdio', tools: 14, latencyMs: 1.2 },
    process: { pid: 48211, startedAt: now - 3 * hour, restarts: 0 },
    calls: figuresOf(312, 2.1, 3, 4),
    stderr: written(
      now,
      'Secure MCP Filesystem Server running on stdio',
      'Client does not support MCP Roots, using allowed directories',
    ),
  },
  {
    ...healthy(now),
    ...{ name: 'github', description: 'Issues, pull requests and code of the team', transport: 'http', tools: 51 },
    ...{ health: 'unhealthy', reason: '5 calls in a row failed; it is left alone for 15 seconds', since: now - 40_000 },
    ...{ breaker: 'open', lastError: 'connect ECONNREFUSED 140.82.121.6:443', latencyMs: null, process: null },
    ...{ era: 'modern', protocolVersion: '2026-07-28' },
    calls: figuresOf(48, 240, 17, 0),
  },
  {
    ...healthy(now),
    ...{ name: 'browser', description: 'A browser with one tab for each caller', transport: 'stdio', tools: 21 },
    ...{ health: 'degraded', reason: 'slow: its last ping took 2.4 s', since: now - 4 * minute, latencyMs: 2400 },
    process: { pid: 48377, startedAt: now - 11 * minute, restarts: 2 },
    launch: "npx -y '@playwright/mcp@latest' --token [redacted]",
    events: [
      { at: now - 11 * minute, kind: 'started', pid: 48377, reason: null, times: 1 },
      { at: now - 12 * minute, kind: 'failed', pid: null, reason: 'browser did not finish its handshake.', times: 4 },
      { at: now - 13 * minute, kind: 'lost', pid: 48301, reason: 'browser ended (exit code 1).', times: 1 },
      { at: now - 3 * hour, kind: 'restarted', pid: null, reason: null, times: 1 },
    ],
    findings: [
      {
        ...{ kind: 'too-many-entries', method: 'tools/list', count: 50_000, limit: 10_000 },
        setting: 'discovery.maxEntries',
        message:
          'tools/list has more than 10,000 entries (discovery.maxEntries); the rest is left out. At least 50,000 are left out.',
      },
      { kind: 'repeated-cursor', message: 'prompts/list returned the same cursor twice; entries may be missing.' },
    ],
    calls: figuresOf(22, 1450, 2, 0),
    stderr: written(
      now,
      '[playwright] launching chromium',
      '[playwright] navigated to https://example.com in 1834 ms',
      '(node:48377) Warning: page.waitForNavigation is deprecated',
    ),
  },
  {
    ...healthy(now),
    ...{
      name: 'postgres',
      description: 'The reporting replica, read-only',
      transport: 'http',
      tools: 6,
      latencyMs: 3.8,
    },
    ...{ era: 'modern', protocolVersion: '2026-07-28', process: null },
    calls: figuresOf(96, 12, 0, 11),
  },
  {
    ...healthy(now),
    ...{
      name: 'memory',
      description: 'A knowledge graph that remembers',
      transport: 'stdio',
      tools: 9,
      latencyMs: 0.9,
    },
    process: { pid: 48219, startedAt: now - 3 * hour, restarts: 0 },
    calls: figuresOf(61, 1.4),
    stderr: written(now, 'Knowledge Graph MCP Server running on stdio'),
  },
  {
    ...healthy(now),
    ...{ name: 'docs', description: 'Documentation of the libraries we use', transport: 'sse', tools: 3 },
    ...{ health: 'stale', reason: 'not connected; its tools are those of 2 days ago', since: now - 49 * hour },
    ...{ era: null, protocolVersion: null, latencyMs: null, process: null },
    calls: noFigures,
  },
  {
    ...healthy(now),
    ...{ name: 'deploy', description: 'Releases to production', transport: 'http', tools: 0 },
    ...{ health: 'disabled', reason: 'turned off in the configuration', since: now - 3 * hour },
    ...{ era: null, protocolVersion: null, latencyMs: null, process: null },
    calls: noFigures,
  },
  {
    ...healthy(now),
    ...{ name: 'native', description: "Toolway's own tools", transport: 'in-process', tools: 3, latencyMs: null },
    ...{ era: null, protocolVersion: null, process: null },
    calls: figuresOf(18, 0.2),
  },
]

/** Many servers, with names of maximum length. */
export const manyServers = (now: number): readonly ServerDetail[] =>
  Array.from({ length: 60 }, (_, index) => ({
    ...healthy(now),
    ...{ name: `department-of-very-long-names-and-integrations-${index}`, transport: 'http', latencyMs: 5 },
    description:
      'A description that somebody wrote with care and at length, so that nobody could ever say it was missing '.repeat(
        3,
      ),
    ...{ tools: 100, process: null, calls: figuresOf(1_234_567, 8.4, 12_345, 6_789) },
  }))
