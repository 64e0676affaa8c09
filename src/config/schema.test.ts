import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { isRecord } from '../lib/is-record.ts'
import { editorSchema } from './editor-schema.ts'
import { configSchema } from './schema.ts'

const complete = configSchema.parse({})

test('an empty document is a complete configuration', () => {
  expect(complete).toMatchObject({
    version: 1,
    server: {
      host: '127.0.0.1',
      port: 4322,
      path: '/mcp',
      allowedHosts: [],
      maxBody: 4_194_304,
      shutdownGrace: 10_000,
    },
    mcpServers: {},
    naming: { strategy: 'prefix', separator: '__', aliases: {}, maxLength: 64 },
    discovery: { mode: 'hybrid', refresh: 60_000 },
    agents: {},
    defaults: { denyOnMissingAgent: true, expose: 'auto', timeout: 30_000, maxTimeout: 600_000, debug: false },
    policy: {
      allowedServers: ['*'],
      allowedTools: [],
      blockedTools: [],
      requireAuth: [],
      toolsNeedServer: false,
      hideDenied: false,
      pins: 'warn',
    },
    auth: { token: 'generated', keys: [] },
    limits: { servers: {}, tools: {}, queue: 256, concurrency: 256 },
    cache: { enabled: false, ttl: 60_000, maxEntries: 1000, maxBytes: 67_108_864 },
    retry: { attempts: 2, budget: 0.2, backoff: 100 },
    breaker: { failures: 5, rate: 0.5, minimumCalls: 20, window: 30_000, openFor: 15_000, halfOpenCalls: 1 },
    health: { interval: 30_000, timeout: 5000 },
    audit: { arguments: 'redacted', sync: 'writes', retain: 7_776_000_000 },
    telemetry: { log: 'info', metrics: true },
    chat: { mode: 'staged', maxSteps: 8, maxTools: 16, parallel: 8, codeExecution: { enabled: false } },
    native: { tools: ['hash', 'time', 'fetch', 'generate', 'vision', 'speech', 'diffusion', 'execute_code'] },
    sandbox: { languages: ['javascript', 'typescript', 'python'], minIsolation: 'process', memory: 67_108_864 },
  })
  expect(complete.limits.perMinute).toBeUndefined()
  expect(complete.stores.path).toBeUndefined()
})

test('a server needs a command or a url and nothing else', () => {
  const { mcpServers } = configSchema.parse({ mcpServers: { a: { command: 'x' }, b: { url: 'https://x/mcp' } } })
  expect(mcpServers.a).toEqual({
    description: '',
    transport: 'stdio',
    command: 'x',
    args: [],
    env: {},
    cwd: undefined,
    disabled: false,
    session: 'shared',
    connect: 'lazy',
    idle: 600_000,
    restarts: { max: 5, window: 60_000 },
    era: 'auto',
    spares: 1,
    approve: [],
    readOnly: false,
    readTools: [],
    idempotentTools: [],
    trustAnnotations: false,
    tools: { include: ['*'], exclude: [] },
    toolTimeouts: {},
    concurrency: 16,
    priority: 0,
    guards: [],
    capture: false,
  })
  expect(mcpServers.b).toMatchObject({ transport: 'http', url: 'https://x/mcp', headers: {} })
  expect(mcpServers.b?.timeout).toBeUndefined()
})

test.each([
  [{ url: 'http://x/sse' }, 'sse'],
  [{ url: 'http://x/v1/sse/?a=1' }, 'sse'],
  [{ url: 'http://x/mcp' }, 'http'],
  [{ url: 'http://x/sse', transport: 'http' }, 'http'],
  [{ url: 'http://x/mcp', transport: 'sse' }, 'sse'],
  [{ command: 'x', transport: 'stdio' }, 'stdio'],
])('T3: the transport of %j is %s', (server, transport) => {
  expect(configSchema.parse({ mcpServers: { a: server } }).mcpServers.a?.transport).toBe(transport)
})

test.each([
  ['0', 0],
  [0, 0],
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5s', 1500],
  ['5m', 300_000],
  ['1h', 3_600_000],
  ['24d', 2_073_600_000],
])('the duration %s is %d ms', (written, ms) => {
  expect(configSchema.parse({ server: { shutdownGrace: written } }).server.shutdownGrace).toBe(ms)
})

test.each([30, '30', '30 s', '-1s', 's', '1w', '', '1e3s', true, null, '25d', '99999999999999d', 0, '0'])(
  '%j is not a duration',
  (written) => {
    expect(configSchema.safeParse({ defaults: { timeout: written } }).success).toBe(false)
  },
)

test.each([
  ['64KiB', 65_536],
  ['4MiB', 4_194_304],
  ['1GiB', 1_073_741_824],
  ['10B', 10],
])('the size %s is %d bytes', (written, bytes) => {
  expect(configSchema.parse({ server: { maxBody: written } }).server.maxBody).toBe(bytes)
})

test.each(['native', 'toolway', 'sink', 'a b', '', '-a', 'ä', 'a/b', 'x'.repeat(65)])(
  'no server can be called %j',
  (name) => {
    expect(configSchema.safeParse({ mcpServers: { [name]: { command: 'x' } } }).success).toBe(false)
  },
)

test.each(['a', 'brave-search', 'awslabs.aws-docs', '7z', 'A_b', 'x'.repeat(64)])(
  'a server can be called %j',
  (name) => {
    expect(configSchema.safeParse({ mcpServers: { [name]: { command: 'x' } } }).success).toBe(true)
  },
)

test('B10: replicas reach one another over plain HTTP, so that another kind of address is refused', () => {
  const parse = (advertise: string) => configSchema.safeParse({ server: { advertise } }).success
  expect(['http://10.0.0.7:4322', 'https://10.0.0.7:4322'].map(parse)).toEqual([true, false])
})

test('a header cannot smuggle in another one', () => {
  const server = (headers: object) =>
    configSchema.safeParse({ mcpServers: { a: { url: 'http://x', headers } } }).success
  expect(server({ 'X-A': 'b' })).toBe(true)
  expect(server({ 'X-A': 'b\r\nHost: c' })).toBe(false)
  expect(server({ 'X A': 'b' })).toBe(false)
})

/** Whether everything that `whole` has is there in `part` too, whatever its value. */
function covers(part: unknown, whole: unknown): boolean {
  if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) return part !== undefined
  return Object.entries(whole).every(([key, value]) => covers((part as Record<string, unknown>)[key], value))
}

const document = fc.record(
  {
    version: fc.constant(1),
    server: fc.record(
      { port: fc.nat(65_535), host: fc.constant('0.0.0.0'), maxBody: fc.constant('1MiB') },
      { requiredKeys: [] },
    ),
    naming: fc.record(
      { strategy: fc.constantFrom('prefix', 'flat', 'custom'), maxLength: fc.integer({ min: 16, max: 64 }) },
      { requiredKeys: [] },
    ),
    discovery: fc.record(
      { mode: fc.constantFrom('startup', 'runtime'), refresh: fc.constant('5m') },
      { requiredKeys: [] },
    ),
    defaults: fc.record({ timeout: fc.constant('1s'), debug: fc.boolean() }, { requiredKeys: [] }),
    policy: fc.record(
      { pins: fc.constantFrom('off', 'warn'), blockedTools: fc.constant(['a.b']) },
      { requiredKeys: [] },
    ),
    limits: fc.record({ perMinute: fc.integer({ min: 1 }), queue: fc.nat() }, { requiredKeys: [] }),
    cache: fc.record({ enabled: fc.boolean(), ttl: fc.constant('1h') }, { requiredKeys: [] }),
    breaker: fc.record(
      { failures: fc.integer({ min: 1 }), rate: fc.double({ min: 0, max: 1, noNaN: true }) },
      { requiredKeys: [] },
    ),
    chat: fc.record(
      { mode: fc.constantFrom('staged', 'agent'), codeExecution: fc.constant({ enabled: true }) },
      { requiredKeys: [] },
    ),
    sandbox: fc.record({ timeout: fc.constant('1s') }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
)

test('whichever keys a document sets, the rest has its defaults', () => {
  fc.assert(
    fc.property(document, (input) => {
      const config = configSchema.parse(input)
      expect(covers(config, complete)).toBe(true)
      for (const [section, value] of Object.entries(complete)) {
        const set = (input as Record<string, object | undefined>)[section] ?? {}
        for (const [key, usual] of Object.entries(value as object)) {
          if (!(key in set)) expect((config as never)[section][key]).toEqual(usual)
        }
      }
    }),
    runs(40, 5_000),
  )
})

test('every number and boolean may be text, because variables expand to text', () => {
  const { policy, version } = configSchema.parse({ policy: { hideDenied: 'true' }, version: '1' })
  expect({ hideDenied: policy.hideDenied, version }).toEqual({ hideDenied: true, version: 1 })
  expect(configSchema.safeParse({ version: '2' }).success).toBe(false)

  const isText = (schema: unknown) => isRecord(schema) && schema.type === 'string'
  const unwritable = (schema: unknown, path: string): readonly string[] => {
    if (Array.isArray(schema)) {
      return schema.some(isText) ? [] : schema.flatMap((one, at) => unwritable(one, `${path}[${at}]`))
    }
    if (!isRecord(schema)) return []
    const own = ['boolean', 'number', 'integer'].includes(String(schema.type)) ? [path] : []
    return [...own, ...Object.entries(schema).flatMap(([key, value]) => unwritable(value, `${path}.${key}`))]
  }
  expect(unwritable(editorSchema(), '')).toEqual([])
})

test('B6: an IPv6 address to listen on may have brackets', () => {
  expect(configSchema.parse({ server: { host: '[::1]' } }).server.host).toBe('::1')
})

test.each(['/metrics', '/livez', '/readyz/', '/admin/api', '/admin/api/mcp', '/v1/models', '/.well-known/mcp'])(
  'the MCP endpoint cannot replace %s',
  (path) => {
    expect(configSchema.safeParse({ server: { path } }).error?.issues).toMatchObject([{ path: ['server', 'path'] }])
  },
)

test.each(['/', '/mcp', '/metrics-mcp', '/v1/mcp', '/admin/mcp'])('the MCP endpoint can be at %s', (path) => {
  expect(configSchema.parse({ server: { path } }).server.path).toBe(path)
})

test('S7: sandbox.memory is enough for an interpreter', () => {
  expect(configSchema.safeParse({ sandbox: { memory: '1B' } }).error?.issues[0]?.message).toContain('from 1MiB')
  expect(configSchema.parse({ sandbox: { memory: '1MiB' } }).sandbox.memory).toBe(1_048_576)
})

test.each([
  ['redis://host', true],
  ['redis://host:6379/', true],
  ['rediss://user:secret@host/15', true],
  ['redis://host/staging', false],
  ['redis://host/1/2', false],
])('B10: the path of the Redis URL is the number of a database: %s', (url, isValid) => {
  expect(configSchema.safeParse({ stores: { redis: { url } } }).success).toBe(isValid)
})

test.each([
  ['', true],
  ['?sslmode=require', true],
  ['?sslmode=no-verify&connect_timeout=3', true],
  ['?sslmode=allow', true],
  ['?sslmode=requires', false],
  ['?sslmode=', false],
])('B10: a PostgreSQL URL with an unknown sslmode is rejected: %s', (query, isValid) => {
  const stores = { postgres: { url: `postgres://user:hunter2@host/db${query}` } }
  const { success, error } = configSchema.safeParse({ stores })
  expect(success).toBe(isValid)
  expect(String(error)).not.toContain('hunter2')
})
