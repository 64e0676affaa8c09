import { denialFor } from '../../src/catalog/pins/pin-evaluator.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import { turnedOff } from '../../src/upstream/server-control.ts'
import { type Example, type NoExample, tried } from './example.ts'
import { auditOnFullDisk } from './full-disk.ts'
import { brokeOff, inBackoff, notStarted } from './lost-server.ts'
import { missing } from './missing-name.ts'

const never = () => new Promise<never>(() => {})

const fails = (thrown: unknown) => async () => {
  throw thrown
}

const filesystem = (more: string) => `
mcpServers:
  filesystem:
    command: mcp-server-filesystem
${more}`

const agents = `
agents:
  researcher:
    allow: { servers: [filesystem] }
    deny: { tools: { filesystem: ["write_*"] } }
`

const researcher = { agent: 'researcher' }
const noteToWrite = { path: '/srv/notes/a.md', content: '…' }

/** Each error, produced by the code that creates it. */
export const examples: Record<ErrorCode, () => Promise<Example | NoExample>> = {
  TOOL_NOT_FOUND: () =>
    missing('filesystem__read_txt_file', (view) => view.resolve('tool', 'filesystem__read_txt_file')),
  SERVER_NOT_FOUND: () =>
    missing('toolway.execute_tool {"server":"filesytem","tool":"read_text_file"}', (view) =>
      view.find('tool', 'filesytem', 'read_text_file'),
    ),
  SERVER_UNAVAILABLE: async () =>
    tried({
      server: 'github',
      tool: 'search_issues',
      run: fails(await notStarted('github', '/opt/github-mcp-server')),
    }),
  SERVER_UNHEALTHY: async () =>
    tried({
      server: 'github',
      tool: 'search_issues',
      circumstances: 'shortly after the server failed to start',
      run: fails(await inBackoff('github', '/opt/github-mcp-server')),
    }),
  SERVER_DISABLED: () =>
    tried({
      server: 'github',
      tool: 'search_issues',
      circumstances: 'after an operator has paused the server',
      run: fails(turnedOff('github')),
    }),
  CIRCUIT_OPEN: async () =>
    tried({
      config: 'breaker: { failures: 5, openFor: 15s }\nmcpServers: { github: { url: "https://mcp.example.com/mcp" } }',
      server: 'github',
      tool: 'search_issues',
      circumstances: 'made after 5 calls have failed',
      run: fails(brokeOff('github')),
      before: 5,
    }),
  DENIED_BY_POLICY: () =>
    tried({
      config: agents,
      server: 'filesystem',
      tool: 'write_file',
      circumstances: 'made as the agent `researcher`',
      arguments: noteToWrite,
      caller: researcher,
    }),
  NAMESPACE_NOT_ALLOWED: () =>
    tried({ config: 'policy: { allowedServers: [filesystem] }', server: 'github', tool: 'search_issues' }),
  TOOL_BLOCKED: () =>
    tried({ config: 'policy: { blockedTools: ["github.delete_*"] }', server: 'github', tool: 'delete_repository' }),
  WRITE_NOT_ALLOWED: () =>
    tried({
      config: filesystem('    readOnly: true\n    readTools: ["read_*", "list_*"]'),
      server: 'filesystem',
      tool: 'write_file',
      arguments: noteToWrite,
    }),
  AUTH_REQUIRED: () =>
    tried({
      config: 'auth: { token: none }\npolicy: { requireAuth: ["github.*"] }',
      server: 'github',
      tool: 'create_issue',
      circumstances: 'without a credential',
      caller: { authenticated: false },
    }),
  RATE_LIMITED: () =>
    tried({
      config: 'limits: { tools: { "github.search_issues": 10 } }',
      server: 'github',
      tool: 'search_issues',
      circumstances: 'made after 10 others in the same minute',
      before: 10,
    }),
  INVALID_ARGUMENTS: () =>
    tried({
      server: 'filesystem',
      tool: 'read_text_file',
      arguments: { pth: '/srv/notes/a.md', head: 'ten' },
      inputSchema: {
        type: 'object',
        properties: { path: { type: 'string' }, head: { type: 'number' } },
        required: ['path'],
        additionalProperties: false,
      },
    }),
  INVALID_PATH: () =>
    tried({
      config: filesystem('    guards: [{ kind: path, arguments: [path], roots: [/srv/notes] }]'),
      server: 'filesystem',
      tool: 'read_text_file',
      arguments: { path: '/srv/notes/../../etc/passwd' },
    }),
  UNSAFE_SQL: () =>
    tried({
      config:
        'mcpServers:\n  database:\n    url: http://127.0.0.1:5000/mcp\n    guards: [{ kind: sql, arguments: [sql], readOnly: true }]',
      server: 'database',
      tool: 'query',
      arguments: { sql: 'WITH gone AS (DELETE FROM users RETURNING *) SELECT * FROM gone' },
    }),
  UNSAFE_URL: () =>
    tried({
      config: 'mcpServers:\n  web:\n    command: mcp-server-fetch\n    guards: [{ kind: url, arguments: [url] }]',
      server: 'web',
      tool: 'fetch',
      arguments: { url: 'http://169.254.169.254/latest/meta-data/' },
    }),
  INVALID_AGENT_ID: () =>
    tried({
      config: agents,
      server: 'filesystem',
      tool: 'read_text_file',
      circumstances: 'made with a misspelt agent name (`reseacher`)',
      caller: { agent: 'reseacher' },
    }),
  FALLBACK_AGENT_NOT_IN_RULES: () =>
    tried({
      config: `${agents}defaults: { agent: writer }`,
      server: 'filesystem',
      tool: 'read_text_file',
      circumstances: 'made without naming an agent',
    }),
  NO_FALLBACK_CONFIGURED: () =>
    tried({
      config: agents,
      server: 'filesystem',
      tool: 'read_text_file',
      circumstances: 'made without naming an agent',
    }),
  TIMEOUT: () =>
    tried({
      config: 'defaults: { timeout: 30s }',
      server: 'github',
      tool: 'search_issues',
      circumstances: 'which does not respond in time',
      run: never,
    }),
  CANCELLED: async () => ({
    none: 'Callers never receive this error, because the protocol does not allow a response to a cancelled request. The log, the audit log and the exit code of `toolway call` show it.',
  }),
  OUTCOME_UNKNOWN: () =>
    tried({
      server: 'github',
      tool: 'create_issue',
      circumstances: 'during which the connection is lost',
      run: fails(brokeOff('github')),
    }),
  OVERLOADED: () =>
    tried({
      config: 'limits: { queue: 0 }\nmcpServers: { github: { url: "https://mcp.example.com/mcp", concurrency: 16 } }',
      server: 'github',
      tool: 'search_issues',
      circumstances: 'while 12 calls of the same caller are running',
      run: never,
      before: 12,
    }),
  QUARANTINED: () =>
    tried({
      config: 'policy: { pins: quarantine }',
      server: 'github',
      tool: 'create_issue',
      circumstances: 'whose definition has changed',
      quarantined: () => denialFor(changed('github', 'create_issue')),
    }),
  AUDIT_UNAVAILABLE: async () =>
    tried({
      config: 'audit: { path: ./data/audit }',
      server: 'filesystem',
      tool: 'write_file',
      circumstances: 'while the disk is full',
      arguments: noteToWrite,
      changes: { audit: await auditOnFullDisk() },
    }),
  INTERNAL: () =>
    tried({
      server: 'github',
      tool: 'search_issues',
      circumstances: 'which triggers a bug in Toolway',
      run: fails(new TypeError('a bug')),
    }),
}

const changed = (server: string, name: string) => ({
  server,
  kind: 'tool' as const,
  name,
  label: `${server}.${name}`,
  state: 'changed' as const,
  quarantined: true,
  hash: '',
  seenAt: 0,
  changed: ['description', 'inputSchema'],
  flags: [],
  pending: [],
})
