import type { ConfigView } from '../../../src/admin/contract.ts'

/** An effective configuration with its reload history. */
export const usualConfig = (now: number): ConfigView => ({
  files: [
    { path: '/home/ada/projects/app/toolway.yaml', dialect: 'toolway' },
    { path: '/home/ada/.config/toolway/mine.json', dialect: 'claude' },
  ],
  config: {
    version: 1,
    server: { host: '127.0.0.1', port: 4322, path: '/mcp', allowedHosts: [], maxBody: 4_194_304 },
    mcpServers: {
      filesystem: {
        command: 'npx',
        args: ['-y', '@modelcontextprotocol/server-filesystem', './sandbox'],
        readOnly: true,
        timeout: 30_000,
      },
      github: {
        url: 'https://mcp.example.com/mcp',
        headers: { Authorization: '[secret]' },
        breaker: { failures: 5, openFor: 15_000 },
      },
    },
    agents: {
      researcher: {
        allow: { servers: ['filesystem', 'github'] },
        deny: { tools: { filesystem: ['write_*', 'move_file'] } },
        expose: 'meta',
        perMinute: 120,
      },
    },
    limits: { perMinute: 600, queue: 256 },
    cache: { enabled: true, ttl: 60_000, maxEntries: 1000 },
  },
  warnings: ['agents.researcher.allow.servers[2]: there is no server "jira", so this rule does nothing.'],
  reload: { attempts: 4, successes: 3, lastAt: now - 900_000, lastError: null },
  history: [
    { at: now - 900_000, ok: true, error: null, changes: ['server memory added', 'limits.perMinute: 60 → 600'] },
    {
      at: now - 960_000,
      ok: false,
      error: 'toolway.yaml:14:7: unknown key "perMinutes"; did you mean "perMinute"?',
      changes: [],
    },
    { at: now - 5_400_000, ok: true, error: null, changes: [] },
  ],
})

export const noConfig: ConfigView = {
  ...{ files: [], config: { version: 1, server: { host: '127.0.0.1', port: 4322 } }, warnings: [], history: [] },
  reload: { attempts: 0, successes: 0, lastAt: null, lastError: null },
}
