import { expect, test } from 'vitest'
import { brief, project } from '../project.fixture.ts'

const forwarding = `
[model]
path = "model.gguf"

[mcp_client]
enabled = true

[[mcp_client.servers]]
name = "files"
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]
env = { LEVEL = "debug", HOME_OF = "$WHERE", PORT = 8080 }

[[mcp_client.servers]]
name = "web"
url = "http://127.0.0.1:9000/mcp"
auth = { type = "bearer", token = "$WEB_TOKEN" }

[tool_forwarding]
enabled = true
namespace_strategy = "server_prefix"

[tool_forwarding.security]
allowed_namespaces = ["files", "web", "native"]
allowed_tools = ["files::*", "web::search"]
blocked_tools = ["files::delete_*", "reboot"]

[tool_forwarding.rate_limit]
default = 100
files = 20
"web::search" = 5

[tool_forwarding.cache]
enabled = true
ttl_seconds = 300
max_size = 500
`
const env = { WHERE: '/here', WEB_TOKEN: 'abc' }

test('F7, F8, F13: a file with mcp_client and tool_forwarding becomes our own configuration', async () => {
  const { load, at } = await project({ 'server.toml': forwarding })
  const { config, files, notes, warnings } = await load({ paths: ['server.toml'], env })
  expect(files).toEqual([{ path: at('server.toml'), dialect: 'mcp-client' }])
  expect(notes).toEqual([
    `${at('server.toml')}: read as an mcp_client file with tool forwarding: 2 servers`,
    expect.stringMatching(/cache\.enabled: .*readOnlyHint.*trustAnnotations/),
  ])
  expect(warnings).toEqual([expect.stringContaining(`${at('server.toml')}: model ignored: `)])
  expect(config.mcpServers.files).toMatchObject({
    transport: 'stdio',
    command: 'npx',
    env: { LEVEL: 'debug', HOME_OF: '/here', PORT: '8080' },
    session: 'shared',
    disabled: false,
  })
  expect(config.mcpServers.web).toMatchObject({ transport: 'http', auth: { type: 'bearer', token: 'abc' } })
  expect(config.naming.strategy).toBe('prefix')
  expect(config.policy).toMatchObject({
    allowedServers: ['files', 'web', 'native'],
    allowedTools: ['files.*', 'web.search', 'native.*'],
    requireAuth: [],
    blockedTools: ['files.delete_*', '*.reboot'],
  })
  expect(config.limits.perMinute).toBeUndefined()
  expect(config.limits).toMatchObject({
    per: 'client',
    servers: { '*': 100, files: 20 },
    tools: { 'web.search': 5 },
  })
  expect(config.cache).toMatchObject({ enabled: true, ttl: 300_000, maxEntries: 500 })
  expect(config.retry.onTimeout).toBe(true)
})

test.each([
  ['server_prefix', 'prefix'],
  ['flat', 'flat'],
  ['custom', 'custom'],
])('F2: the strategy %s is %s', async (written, strategy) => {
  const { load } = await project({ 'toolway.toml': `[tool_forwarding]\nnamespace_strategy = "${written}"\n` })
  expect((await load()).config.naming.strategy).toBe(strategy)
})

test('an unset $NAME is an error that names server and field as well as the key that was written', async () => {
  const { problems } = await project({ 'toolway.toml': forwarding })
  expect(brief(await problems({ env: { WHERE: 'x' } }))).toEqual([
    '17:35 mcpServers.web.auth.token: the variable WEB_TOKEN is not set; set it, or write ${WEB_TOKEN:-default} (written as mcp_client.servers[1].auth.token)',
  ])
})

test('the smaller file with [mcp] is read too', async () => {
  const { load } = await project({
    'toolway.toml': '[mcp]\nenabled = true\n\n[[mcp.servers]]\nname = "a"\ncommand = "x"\nargs = ["$", "$A", "a$B"]\n',
  })
  const { config, notes } = await load({ env: { A: 'filled' } })
  expect(config.mcpServers.a).toMatchObject({ command: 'x', args: ['$', 'filled', 'a$B'] })
  expect(notes[0]).toMatch(/read as an mcp file: 1 server$/)
})

test.each([
  ['[mcp]\nenabled = false\n[[mcp.servers]]', 'mcp.enabled is false: its servers are disabled'],
  ['[mcp_client]\nenabled = false\n[[mcp_client.servers]]', 'mcp_client.enabled is false: its servers are disabled'],
  [
    '[tool_forwarding]\nenabled = false\n[[mcp_client.servers]]',
    'tool_forwarding.enabled is false: every server is disabled',
  ],
])('%j switches the servers off, variables included', async (head, note) => {
  const { load } = await project({ 'toolway.toml': `${head}\nname = "a"\nurl = "$URL"\n` })
  const { config, notes } = await load()
  expect(config.mcpServers.a?.disabled).toBe(true)
  expect(notes[0]).toContain(note)
})

test('a single server may be disabled, and auth of type none means no auth', async () => {
  const { load } = await project({
    'toolway.toml': '[[mcp_client.servers]]\nname = "a"\nurl = "http://x"\nenabled = false\nauth = { type = "none" }\n',
  })
  expect((await load()).config.mcpServers.a).toMatchObject({ disabled: true, auth: undefined })
})

test('F1: allow-lists are about forwarded tools, so native ones stay usable, and a note says so', async () => {
  const { load } = await project({
    'toolway.toml': '[tool_forwarding.security]\nallowed_namespaces = ["files"]\nallowed_tools = ["files::read"]\n',
    'empty.toml': '[tool_forwarding.security]\nallowed_namespaces = []\nallowed_tools = []\n',
    'blocked.toml': '[tool_forwarding.security]\nallowed_namespaces = ["*"]\nblocked_tools = ["native::*"]\n',
  })
  const { config, notes } = await load()
  expect(config.policy).toMatchObject({
    allowedServers: ['files', 'native'],
    allowedTools: ['files.read', 'native.*'],
  })
  expect(notes.join('\n')).toContain('native::*')
  const { policy } = (await load({ paths: ['empty.toml'] })).config
  expect(policy).toMatchObject({ allowedServers: ['native'], allowedTools: [] })
  const blocked = (await load({ paths: ['blocked.toml'] })).config.policy
  expect(blocked).toMatchObject({ allowedServers: ['*'], blockedTools: ['native.*'] })
})

const twoServers =
  '[[mcp_client.servers]]\nname = "files"\ncommand = "x"\n[[mcp_client.servers]]\nname = "web"\nurl = "http://x"\n'

test.each([
  [
    '[tool_forwarding.security]\nauth_required = ["files::write_*", "web", "reboot"]',
    ['files.write_*', 'web.*', '*.reboot'],
  ],
  ['[tool_forwarding.security]\nauth_required = true', ['files.*', 'web.*']],
  ['[tool_forwarding.security]\nauth_required = false', []],
  ['[tool_forwarding]\nauth_required = ["native"]', ['native.*']],
  ['[tool_forwarding.security.auth_required]\nfiles = true\nweb = false\n"web::post" = true', ['files.*', 'web.post']],
  ['[tool_forwarding.auth_required]\nfiles = ["write_file", "files::move"]', ['files.write_file', 'files.move']],
])('F7: %j names tools that need an authenticated caller', async (section, patterns) => {
  const { load } = await project({ 'toolway.toml': `${twoServers}${section}\n` })
  expect((await load()).config.policy.requireAuth).toEqual(patterns)
})

test('F7: auth_required in the entry of a server is about all of its tools', async () => {
  const { load } = await project({ 'toolway.toml': `${twoServers}auth_required = true\n` })
  expect((await load()).config.policy.requireAuth).toEqual(['web.*'])
})

test.each([
  '[tool_forwarding]\nnamespace_strategy = "custom"\n[tool_forwarding.custom_names]\n"files::read_file" = "read"',
  '[tool_forwarding]\nnamespace_strategy = "custom"\n[tool_forwarding.custom]\n"files::read_file" = "read"',
  '[tool_forwarding.naming]\nstrategy = "custom"\n[tool_forwarding.naming.custom]\n"files::read_file" = "read"',
  '[tool_forwarding.naming]\nstrategy = "custom"\n[tool_forwarding.naming.mappings]\nread = "files::read_file"',
  '[tool_forwarding.names]\n"files.read_file" = "read"',
])('F2: %j has names for the strategy custom', async (section) => {
  const { load } = await project({ 'toolway.toml': `${section}\n` })
  expect((await load()).config.naming).toMatchObject({ strategy: 'custom', aliases: { 'files.read_file': 'read' } })
})

test('F9: paths are validated, in the folders that the file names', async () => {
  const server = (args: string, more = '') =>
    `[[mcp_client.servers]]\nname = "files"\ncommand = "npx"\nargs = ${args}\n${more}\n[tool_forwarding]\nenabled = true\n`
  const folders = '["-y", "/opt/files/server.js", "/srv/data", "/srv/more"]'
  const { load, at } = await project({
    'args.toml': server(folders),
    'none.toml': server('["-y", "server"]'),
    'listed.toml': `${server(folders)}[tool_forwarding.security]\nallowed_paths = ["/only", "here"]\n`,
    'off.toml': `${server(folders)}[tool_forwarding.security]\nvalidate_paths = false\n`,
    'own.toml': server(folders, 'guards = [{ kind = "url", arguments = ["url"] }]'),
    'mcp.toml': '[[mcp.servers]]\nname = "files"\ncommand = "x"\nargs = ["/srv"]\n',
  })
  const guardsIn = async (file: string) => (await load({ paths: [file] })).config.mcpServers.files?.guards
  const guarded = expect.arrayContaining(['path', 'paths[]', 'source', 'destination'])
  expect(await guardsIn('args.toml')).toEqual([{ kind: 'path', arguments: guarded, roots: ['/srv/data', '/srv/more'] }])
  expect(await guardsIn('none.toml')).toMatchObject([{ kind: 'path', roots: ['/'] }])
  expect(await guardsIn('listed.toml')).toMatchObject([{ kind: 'path', roots: ['/only', at('here')] }])
  expect(await guardsIn('off.toml')).toEqual([])
  expect(await guardsIn('own.toml')).toMatchObject([{ kind: 'url' }])
  expect(await guardsIn('mcp.toml')).toEqual([])
})

test('F9: SQL is validated on servers whose name, program, package or URL is that of a database', async () => {
  const servers = {
    database: 'url = "http://10.0.0.1:5000"',
    orders: 'url = "http://postgres-mcp-server:5000"',
    stock: 'command = "npx"\nargs = ["-y", "@benborla29/mcp-server-mysql"]',
    local: 'command = "uvx"\nargs = ["mcp-server-sqlite", "--db-path", "/srv/x"]\nreadOnly = true',
    shop: 'command = "x"\nargs = ["--dsn=postgres://me@h/x", "mysql://h/y"]',
    own: 'command = "postgres-mcp"\nguards = []',
    files: 'command = "npx"\nargs = ["@modelcontextprotocol/server-filesystem", "/srv/db"]',
    web_search: 'command = "npx"\nargs = ["@modelcontextprotocol/server-brave-search"]',
  }
  const entries = Object.entries(servers).map(([name, more]) => `[[mcp_client.servers]]\nname = "${name}"\n${more}\n`)
  const { load } = await project({
    'on.toml': `${entries.join('')}[tool_forwarding]\nenabled = true\n`,
    'off.toml': `${entries.join('')}[tool_forwarding.security]\nvalidate_sql = false\nvalidate_paths = false\n`,
    'sql.toml': `${entries.join('')}[tool_forwarding.security]\nvalidate_paths = false\n`,
  })
  const { config, notes } = await load({ paths: ['on.toml'] })
  const guards = Object.entries(config.mcpServers).map(([name, server]) => [
    name,
    server.guards.map((guard) => (guard.kind === 'sql' ? [guard.dialect, guard.readOnly] : guard.kind)),
  ])
  expect(Object.fromEntries(guards)).toEqual({
    database: ['path', ['any', false]],
    orders: ['path', ['postgres', false]],
    stock: ['path', ['mysql', false]],
    local: ['path', ['sqlite', true]],
    shop: ['path', ['any', false]],
    own: [],
    files: ['path'],
    web_search: ['path'],
  })
  expect(config.mcpServers.database?.guards[1]?.arguments).toEqual(
    expect.arrayContaining(['sql', 'query', 'queries[]']),
  )
  expect(notes.filter((note) => note.includes('validate_sql')).length).toBe(5)
  for (const [path, kinds] of [
    ['off.toml', []],
    ['sql.toml', ['sql']],
  ] as const) {
    const { mcpServers } = (await load({ paths: [path] })).config
    expect(mcpServers.database?.guards.map(({ kind }) => kind)).toEqual(kinds)
  }
})

test('F13: cache.enabled trusts annotations, and a file can say otherwise', async () => {
  const { load } = await project({
    'toolway.toml': `${twoServers}trustAnnotations = false\n[tool_forwarding.cache]\nenabled = true\n`,
    'off.toml': `${twoServers}[tool_forwarding.cache]\nenabled = false\n`,
  })
  const { mcpServers } = (await load()).config
  expect(mcpServers.files?.trustAnnotations).toBe(true)
  expect(mcpServers.web?.trustAnnotations).toBe(false)
  expect((await load({ paths: ['off.toml'] })).config.mcpServers.files?.trustAnnotations).toBe(false)
})

test('F13: cache.tools lists more tools to cache', async () => {
  const { load } = await project({
    'toolway.toml': '[tool_forwarding.cache]\nenabled = true\ntools = ["files::read_*", "query", "native::time"]\n',
    'every.toml': '[tool_forwarding.cache]\nenabled = true\ntools = ["*"]\n',
    'none.toml': '[tool_forwarding.cache]\nenabled = true\n',
  })
  expect((await load()).config.cache.tools).toEqual(['files.read_*', '*.query', 'native.time'])
  expect((await load({ paths: ['every.toml'] })).config.cache.tools).toEqual(['*'])
  expect((await load({ paths: ['none.toml'] })).config.cache.tools).toEqual([])
})

test('mistakes are refused at their line, never dropped', async () => {
  const { problems } = await project({
    'toolway.toml': `[mcp_client]
enabeld = true
[[mcp_client.servers]]
command = "x"
[[mcp_client.servers]]
name = "a"
comand = "x"
[[mcp_client.servers]]
name = "a"
command = "y"
[tool_forwarding]
namespace_strategy = "server_prefx"
[tool_forwarding.security]
blocked_tool = ["a::b"]
[tool_forwarding.rate_limit]
default = "many"
[tool_forwarding.cache]
ttl_seconds = "5"
[tool_forwardin]
enabled = true
[policy]
blockedTools = ["a.b"]
`,
  })
  expect(brief(await problems())).toEqual([
    '2:1 mcp_client.enabeld: unknown key `enabeld`; did you mean `enabled`?',
    '3:1 mcp_client.servers[0]: expected a server with a name',
    '7:1 mcp_client.servers[1].comand: unknown key `comand`; did you mean `command`?',
    '9:8 mcp_client.servers[2].name: duplicate server name a; choose another name',
    '12:22 tool_forwarding.namespace_strategy: expected one of server_prefix, flat, custom, found "server_prefx"; did you mean server_prefix?',
    '14:1 tool_forwarding.security.blocked_tool: unknown key `blocked_tool`; did you mean `blocked_tools`?',
    '16:1 limits.servers["*"]: expected a whole number of at least 1, found "many" (written as tool_forwarding.rate_limit.default)',
    '18:1 cache.ttl: expected a duration such as 500ms, 30s, 5m or 1h, found "5"; did you mean 5s (or 5ms)? (written as tool_forwarding.cache.ttl_seconds)',
    '19:2 tool_forwardin: unknown key `tool_forwardin`; did you mean `tool_forwarding`?',
    "21:2 policy: Toolway's own section policy has no effect in a file with mcp_client; put it in a separate file and pass both with --config",
  ])
})
