import { chmod } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { project } from './project.fixture.ts'
import { cachedTools } from './warnings.ts'

const warningsOf = async (text: string) => (await (await project({ 'toolway.yaml': text })).load()).warnings

test('references to undefined names are warnings', async () => {
  expect(await warningsOf('agents: { a: {} }\ndefaults: { agent: b }\nchat: { model: m }')).toEqual([
    expect.stringMatching(/^chat\.model: model m is not defined/),
  ])
})

test('F2: aliases for servers that do not exist, and aliases that several tools share, are warnings', async () => {
  const aliases = { 'a.x': 'cat', 'b.y.z': 'cat', 'a.z': 'dog', 'nope.z': 'bird', 'sink.report': 'report' }
  const mcpServers = { a: { command: 'x' }, b: { command: 'x' } }
  expect(await warningsOf(JSON.stringify({ naming: { strategy: 'custom', aliases }, mcpServers }))).toEqual([
    'naming.aliases: nope.z has no effect, because mcpServers has no nope',
    expect.stringContaining('a.x, b.y.z cannot all have the name cat'),
  ])
  expect(await warningsOf(JSON.stringify({ naming: { strategy: 'prefix', aliases }, mcpServers }))).toEqual([])
})

test.each(['::', '.'])('F3: the separator %s is a warning', async (separator) => {
  expect(await warningsOf(JSON.stringify({ naming: { separator } }))).toEqual([
    expect.stringMatching(/^naming\.separator: .* refuse/),
  ])
})

test('B6: hosts and origins that no request can have are warnings', async () => {
  const hosts = ['*', 'https://x.org/', 'x.org/mcp', 'y.org', 'y.org:8080', '[::1]:80']
  const valid = ['https://App.example.com/', 'http://localhost:5173', 'null', 'vscode-webview://0Abc']
  const origins = ['*', 'https://*.x.org', 'x.org', 'https://x.org:443', 'https://x.org/app', ...valid]
  const text = JSON.stringify({ server: { allowedHosts: hosts, allowedOrigins: origins } })
  const exactly = 'list each one, because patterns are not supported'
  expect(await warningsOf(text)).toEqual([
    `server.allowedHosts: * never matches; ${exactly}`,
    'server.allowedHosts: https://x.org/ never matches; did you mean x.org?',
    'server.allowedHosts: x.org/mcp never matches; did you mean x.org?',
    `server.allowedOrigins: * never matches; ${exactly}`,
    `server.allowedOrigins: https://*.x.org never matches; ${exactly}`,
    'server.allowedOrigins: x.org never matches; did you mean https://x.org?',
    'server.allowedOrigins: https://x.org:443 never matches; did you mean https://x.org?',
    'server.allowedOrigins: https://x.org/app never matches; did you mean https://x.org?',
  ])
})

test('keys without effect on a kind of server are warnings', async () => {
  const text =
    'mcpServers: { a: { command: x, headers: { A: b } }, b: { url: "http://x", env: { A: b }, args: [], cwd: . } }'
  expect(await warningsOf(text)).toEqual([
    'mcpServers.a.headers has no effect on a server with a command',
    'mcpServers.b.env has no effect on a server with a url',
    'mcpServers.b.cwd has no effect on a server with a url',
  ])
})

test('B10: a sign-in that is not shared by all replicas is a warning, and so is a key without effect', async () => {
  const servers = 'mcpServers: { a: { url: "https://x", auth: { type: oauth } }, b: { url: "http://y" } }'
  const key = `key: ${'k'.repeat(32)}`
  expect(await warningsOf(`${servers}\nstores: { redis: { url: "redis://x" } }`)).toEqual([
    expect.stringMatching(/stores\.redis.* without stores\.key: .*\ba\b/),
  ])
  expect(await warningsOf(`${servers}\nstores: { redis: { url: "redis://x" }, ${key} }`)).toEqual([])
  expect(await warningsOf(`${servers}\nstores: { redis: { url: "redis://x", disabled: true } }`)).toEqual([])
  expect(await warningsOf(`stores: { ${key} }`)).toEqual(['stores.key has no effect without stores.redis'])
})

test('B6: a secret that a reference puts into the arguments of a process is a warning without the secret', async () => {
  const args = [
    ...['-y', 'server', '--root=${HOME}', '${GITHUB_TOKEN}', '--api-key', '${ACME}', '--password=${ACME:-letmein1}'],
    ...['Authorization: ${ACME}', 'postgres://me:${ACME}@db/x', '${DATABASE_URL}', '${file:./key}', '$${API_KEY}'],
    ...['--token-limit', '${ACME}'],
  ]
  const server = { command: 'npx', args }
  const mcpServers = {
    'a.b': server,
    off: { ...server, disabled: true },
    fine: { command: 'x', env: { A: '${ACME}' } },
  }
  const env = { GITHUB_TOKEN: 'hidden-1', ACME: 'hidden-2', DATABASE_URL: 'postgres://me:hidden-3@db/x' }
  const { load, at } = await project({ 'toolway.json': JSON.stringify({ mcpServers }), key: 'hidden-4' })
  await chmod(at('key'), 0o600)
  const { warnings, secrets } = await load({ env })
  const named = /^mcpServers\["a\.b"\]\.args\[(\d+)\]: .*\$\{([^}]+)\}.*mcpServers\["a\.b"\]\.env/
  expect(warnings.map((warning) => named.exec(warning)?.slice(1))).toEqual([
    ['3', 'GITHUB_TOKEN'],
    ['5', 'ACME'],
    ['6', 'ACME'],
    ['7', 'ACME'],
    ['8', 'ACME'],
    ['9', 'DATABASE_URL'],
    ['10', 'file:…'],
  ])
  expect(warnings.join()).not.toMatch(/hidden|letmein/)
  expect(secrets).toEqual(expect.arrayContaining(['hidden-1', 'hidden-4']))
})

test('B6: the password of a proxy in the environment is a secret that is known', async () => {
  const { load } = await project({ 'toolway.json': '{}' })
  const { secrets } = await load({ env: { https_proxy: 'http://me:hidden-5@proxy:3128' } })
  expect(secrets).toContain('hidden-5')
})

test('B6: secrets in the environment are known even if the configuration does not refer to them', async () => {
  const { load } = await project({ 'toolway.json': '{}' })
  // Base64 may start with a slash, like a path.
  const hidden = { PGPASSWORD: 'hidden-6', ACME_SECRET_KEY: '/hiDDen7aB3dEf6hIj9k' }
  const shown = { TOKEN_STORE: '/srv/tokens', TOKEN_CACHE: 'C:\\Users\\me\\tokens', EDITOR: 'shown-1' }
  const { secrets } = await load({ env: { ...hidden, ...shown } })
  expect(secrets).toEqual(Object.values(hidden))
})

test('F13: a cache without a tool that it could be for is a warning; otherwise it says what it caches', async () => {
  const at = async (server: object, cache: object) => {
    const { load } = await project({
      'toolway.json': JSON.stringify({ mcpServers: { a: { command: 'x', ...server } }, cache }),
    })
    const { config, warnings } = await load()
    return { cached: cachedTools(config), warnings: warnings.filter((warning) => warning.startsWith('cache.')) }
  }
  expect(await at({}, { enabled: true })).toEqual({
    cached: [],
    warnings: [expect.stringMatching(/^cache\.enabled .*cache\.tools.*readTools.*trustAnnotations/)],
  })
  expect(await at({}, {})).toEqual({ cached: [], warnings: [] })
  expect((await at({ readTools: ['get_*'] }, { enabled: true, tools: ['b.c'] })).cached).toEqual([
    'b.c (cache.tools)',
    'a.get_* (mcpServers.a.readTools)',
  ])
  expect(await at({ trustAnnotations: true }, { enabled: true })).toEqual({
    cached: [expect.stringMatching(/a .*readOnlyHint/)],
    warnings: [],
  })
})

test('S7: hosts that no URL of a program can have are warnings', async () => {
  const valid = ['api.example.com', '*.example.com', '*', '10.0.0.*', '*.5', '127.0.0.1', '[::1]', 'localhost']
  const allowNetwork = ['localhost:4798', 'https://x.org/api', 'X.org', '::1', '*.x.org:80', 'a b', ...valid]
  expect(await warningsOf(JSON.stringify({ sandbox: { allowNetwork } }))).toEqual([
    'sandbox.allowNetwork: localhost:4798 never matches; did you mean localhost, with any port?',
    'sandbox.allowNetwork: https://x.org/api never matches; did you mean x.org, with any port?',
    'sandbox.allowNetwork: X.org never matches; did you mean x.org, with any port?',
    'sandbox.allowNetwork: ::1 never matches; did you mean [::1], with any port?',
    'sandbox.allowNetwork: *.x.org:80 never matches; did you mean *.x.org, with any port?',
    'sandbox.allowNetwork: a b never matches; list host names',
  ])
})

test('F1: a command with its arguments in one string is a warning that says what to write, without the arguments', async () => {
  const commands = ['npx -y foo --key s3cret', '/usr/bin/node -e 1', '/opt/my tools/run', 'npx']
  const mcpServers = Object.fromEntries(commands.map((command, index) => [`s${index}`, { command }]))
  expect(await warningsOf(JSON.stringify({ mcpServers }))).toEqual([
    'mcpServers.s0.command is one program, without arguments; write command: npx, and the other words in mcpServers.s0.args',
    'mcpServers.s1.command is one program, without arguments; write command: /usr/bin/node, and the other words in mcpServers.s1.args',
  ])
})
