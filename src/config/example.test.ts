import { readFile } from 'node:fs/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { editorSchema } from './editor-schema.ts'
import { loadConfig } from './load.ts'
import { project } from './project.fixture.ts'
import { configSchema } from './schema.ts'

const root = new URL('../../', import.meta.url).pathname
const path = `${root}toolway.example.yaml`
const example = () => loadConfig({ paths: [path], env: {}, cwd: '/' })

test('the example loads with no variable set and nothing to warn about', async () => {
  const { config, warnings, files, notes } = await example()
  expect(warnings).toEqual([])
  expect(files).toEqual([{ path, dialect: 'toolway' }])
  expect(notes).toEqual([`${path}: read as Toolway's own configuration: 3 servers`])
  const { description, command, args, cwd, transport, session, connect, idle, restarts, spares, refresh } = config
    .mcpServers.filesystem as Extract<(typeof config.mcpServers)[string], { transport: 'stdio' }>
  expect({ description, command, args, cwd, transport, session, connect, idle, restarts, spares, refresh }).toEqual({
    description: 'Files under ./sandbox',
    command: 'npx',
    args: ['-y', '@modelcontextprotocol/server-filesystem', './sandbox'],
    cwd: root.slice(0, -1),
    transport: 'stdio',
    session: 'shared',
    connect: 'lazy',
    idle: 600_000,
    restarts: { max: 5, window: 60_000 },
    spares: 1,
    refresh: 300_000,
  })
  expect(config.mcpServers.filesystem).toMatchObject({
    approve: ['move_file'],
    readOnly: true,
    readTools: ['read_*', 'list_*', 'directory_tree', 'search_files', 'get_file_info'],
    idempotentTools: ['create_directory'],
    tools: { include: ['*'], exclude: ['edit_file'] },
    timeout: 30_000,
    toolTimeouts: { search_files: 120_000 },
    concurrency: 16,
    priority: 10,
    guards: [{ kind: 'path', arguments: ['path', 'paths[]', 'source', 'destination'], roots: [`${root}sandbox`] }],
  })
  expect(config.mcpServers.everything).toMatchObject({
    transport: 'http',
    url: 'http://127.0.0.1:3001/mcp',
    headers: { Authorization: 'Bearer none' },
    trustAnnotations: true,
  })
  expect(config.mcpServers.database).toMatchObject({
    disabled: true,
    auth: { type: 'oauth' },
    guards: [{ kind: 'sql' }, { kind: 'url' }],
  })
})

test('the example means what its comments say, section by section', async () => {
  const { config } = await example()
  expect(config.naming).toEqual({
    strategy: 'prefix',
    separator: '__',
    aliases: { 'filesystem.read_text_file': 'cat' },
    maxLength: 64,
  })
  expect(config.agents.researcher).toEqual({
    allow: { servers: ['filesystem', 'everything'], tools: { everything: ['echo', 'get-*'] } },
    deny: { servers: [], tools: { filesystem: ['write_*', 'move_file'] } },
    expose: 'meta',
    perMinute: 120,
    concurrency: 8,
    readOnly: false,
    debug: false,
    approve: ['everything.get-env'],
    approvers: ['admins'],
  })
  expect(config.approvals).toEqual({ wait: 300_000, by: ['admins', 'client'] })
  expect(config.defaults).toEqual({
    agent: 'researcher',
    denyOnMissingAgent: false,
    expose: 'auto',
    autoThreshold: 10_000,
    autoAbove: 'meta',
    alwaysLoad: ['filesystem.read_text_file'],
    timeout: 30_000,
    maxTimeout: 600_000,
    debug: false,
  })
  expect(config.limits).toEqual({
    per: 'agent',
    perMinute: 600,
    servers: { filesystem: 1000, everything: 60 },
    tools: { 'everything.get-env': 10 },
    queue: 256,
    concurrency: 256,
  })
  expect(config.cache).toMatchObject({ enabled: true, ttl: 60_000, maxBytes: 67_108_864, tools: ['filesystem.read_*'] })
  expect(config.audit).toEqual({
    path: `${root}data/audit`,
    unrecordedReads: 'allow',
    arguments: 'redacted',
    sync: 'writes',
    redact: ['*token*', '*password*'],
    retain: 7_776_000_000,
  })
  expect(config.sinks.notes).toMatchObject({
    kind: 'tool',
    arguments: { path: './sandbox/{id}.txt', content: '{content}' },
  })
  expect(config.stores).toMatchObject({ path: `${root}data`, redis: { disabled: true }, postgres: { disabled: true } })
})

test('sections that the example leaves at their defaults agree with the defaults', async () => {
  const { config } = await example()
  const usual = configSchema.parse({})
  for (const section of ['server', 'discovery', 'retry', 'breaker', 'health', 'native', 'sandbox'] as const) {
    expect(config[section], section).toEqual(usual[section])
  }
})

interface Schema {
  readonly properties?: Record<string, Schema>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly description?: string
}

test('the shipped JSON Schema is the one that the code generates (npm run generate)', async () => {
  const shipped = await readFile(`${root}toolway.schema.json`, 'utf8')
  expect(shipped).toBe(`${JSON.stringify(editorSchema(), null, 2)}\n`)
})

test('the JSON Schema accepts the example, variables included, and refuses a misspelt key', async () => {
  const accepts = new Ajv2020({ strict: false }).compile(
    JSON.parse(await readFile(`${root}toolway.schema.json`, 'utf8')),
  )
  expect(accepts(parse(await readFile(path, 'utf8'))), JSON.stringify(accepts.errors)).toBe(true)
  expect(accepts({ server: { port: '${PORT:-4322}', shutdownGrace: '${GRACE}' } })).toBe(true)
  expect(accepts({ mcpServers: { a: { type: 'streamable-http', url: 'http://x', alwaysAllow: [] } } })).toBe(true)
  expect(accepts({ server: { prot: 1 } })).toBe(false)
  expect(accepts({ server: { shutdownGrace: '10 s' } })).toBe(false)
  expect(accepts({ naming: { strategy: 'prefx' } })).toBe(false)
})

test('the JSON Schema accepts sections and lists without a value, as the program does', async () => {
  const accepts = new Ajv2020({ strict: false }).compile(editorSchema())
  const written = 'mcpServers:\n  a:\n    url: http://a.example\n    auth:\n    headers:\n    guards:\nchat:\nsinks:\n'
  expect(accepts(parse(written)), JSON.stringify(accepts.errors)).toBe(true)
  const { load } = await project({ 'toolway.yaml': written })
  expect((await load({ paths: ['toolway.yaml'] })).config.mcpServers.a).toMatchObject({ guards: [] })
  expect(accepts({ mcpServers: [null] })).toBe(false)
})

test('every key of the JSON Schema has a description of one line', () => {
  const bare: string[] = []
  const visit = (schema: Schema, at: string) => {
    for (const [key, part] of Object.entries(schema.properties ?? {})) {
      const here = at === '' ? key : `${at}.${key}`
      if (!part.description || /\n/.test(part.description)) bare.push(here)
      visit(part, here)
    }
    if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties, `${at}.*`)
    if (schema.items) visit(schema.items, `${at}[]`)
    for (const option of schema.anyOf ?? schema.oneOf ?? []) visit(option, at)
  }
  visit(editorSchema() as Schema, '')
  expect(bare).toEqual([])
})
