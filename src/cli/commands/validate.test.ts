import { join } from 'node:path'
import { expect, test } from 'vitest'
import { descriptorStore } from '../../catalog/descriptor-store.ts'
import { loadConfig } from '../../config/load.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { fingerprintOf } from '../../upstream/listing/server-listing.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

const servers = {
  mcpServers: {
    files: { command: 'npx', args: ['-y', 'server-filesystem', '.'], env: { KEY: 'hidden' } },
    remote: { url: 'https://user:hidden@example.com/mcp?key=hidden', headers: { Authorization: 'hidden' } },
    off: { url: 'https://example.com/sse', disabled: true },
  },
  chat: { maxSteps: 3 },
}

test('B11: validate shows the configuration without secrets', async () => {
  await using place = await folder({ 'toolway.json': servers })
  const { code, stdout, stderr } = await toolway(['validate'], place)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('toolway.json')
  expect(stdout).toMatch(/files +stdio +npx -y server-filesystem \.\n/)
  expect(stdout).toMatch(/remote +http +https:\/\/example\.com\/mcp\n/)
  expect(stdout).toMatch(/off +disabled /)
  expect(stdout).not.toContain('hidden')
})

test('B11: validate --json says the same to programs', async () => {
  await using place = await folder({ 'toolway.json': servers })
  const { stdout } = await toolway(['validate', '--json'], place)
  expect(JSON.parse(stdout)).toMatchObject({
    valid: true,
    servers: [
      { name: 'files', transport: 'stdio', disabled: false },
      { name: 'remote', transport: 'http', target: 'https://example.com/mcp', disabled: false },
      { name: 'off', transport: 'sse', disabled: true },
    ],
  })
  expect(stdout).not.toContain('hidden')
})

test('J2: validate warns of a read-only server of whose remembered tools none is known to be read-only', async () => {
  const server = { url: 'http://127.0.0.1:9/mcp', readOnly: true, trustAnnotations: true }
  const servers = { a: server, b: { ...server, readTools: ['get'] }, c: { ...server, url: 'http://127.0.0.1:9/new' } }
  await using place = await folder({ 'toolway.json': { stores: { path: './state' }, mcpServers: servers } })
  const { config } = await loadConfig({ env: {}, cwd: place.cwd })
  const known = {
    fetchedAt: 1,
    era: 'legacy',
    protocolVersion: '2025-11-25',
    serverInfo: {},
    capabilities: {},
  } as const
  const listing = { ...known, resources: [], templates: [], prompts: [] }
  const store = descriptorStore(join(config.stores.path, 'catalog'))
  for (const name of ['a', 'b']) {
    const fingerprint = fingerprintOf(config.mcpServers[name] as ServerConfig)
    await store.save(name, fingerprint, { ...listing, tools: [{ name: 'get' }] })
  }
  const { stdout } = await toolway(['validate', '--json'], place)
  const warning = expect.stringMatching(/^mcpServers\.a\.readOnly: .*readTools.*readOnlyHint/)
  expect(JSON.parse(stdout).warnings).toEqual([warning])
})

test('B11: validate prints problems like a compiler and ends with 2', async () => {
  await using place = await folder({ 'bad.yaml': 'version: 1\nserver: { prot: 1 }\n' })
  const { code, stdout, stderr } = await toolway(['validate', '--config', 'bad.yaml'], place)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^bad\.yaml:2:\d+: server\.prot: .*did you mean `port`/)
  const json = await toolway(['--config', 'bad.yaml', 'validate', '--json'], place)
  expect(json).toMatchObject({ code: 2, stderr: '' })
  expect(JSON.parse(json.stdout)).toMatchObject({ valid: false, problems: [{ line: 2, key: 'server.prot' }] })
})

test('B11: content of a file cannot control the terminal', async () => {
  await using at = await folder({ 'toolway.json': '{"mcpServers": {}, "a\\u001b[2Jb": 1, "c\u202e": 2}' })
  const { code, stderr } = await toolway(['validate'], at)
  expect(code).toBe(2)
  expect(stderr).toContain('unknown key `ab`')
  expect(stderr).not.toMatch(/[\x1b\u202e]/)
})

test('B11: every other command refuses a bad configuration in the same way', async () => {
  await using place = await folder({ 'toolway.yaml': 'prot: 1\n' })
  const text = await toolway(['tools'], place)
  expect({ code: text.code, stdout: text.stdout }).toEqual({ code: 2, stdout: '' })
  expect(text.stderr).toMatch(/^toolway\.yaml:1:1: /)
  const json = await toolway(['tools', '--json'], place)
  expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: 'CONFIG', problems: [{ key: 'prot' }] } })
  const stdio = await toolway(['stdio', '--json'], place)
  expect(stdio).toEqual({ code: 2, stdout: '', stderr: text.stderr })
})

test('B11: several --config files merge; without any file defaults apply', async () => {
  await using place = await folder({ 'a.yaml': 'server: { port: 1 }', 'b.yaml': 'server: { port: 2 }' })
  const merged = await toolway(['validate', '-c', 'a.yaml', '--config', 'b.yaml'], place)
  expect(merged.stdout).toContain('http://127.0.0.1:2/mcp')
  const none = await toolway(['validate'], place)
  expect(none).toMatchObject({ code: 0, stdout: expect.stringContaining('defaults apply') })
})

test('B6: a secret in the arguments of a server is a warning, and neither validate nor doctor shows it', async () => {
  const args = ['-e', 'process.exit(1)', '${GITHUB_TOKEN}']
  const config = { mcpServers: { git: { command: process.execPath, args } }, sandbox: { languages: [] } }
  await using place = await folder({ 'toolway.json': config })
  const around = { ...place, env: { ...place.env, GITHUB_TOKEN: 'hidden-by-name' } }
  const warning = /mcpServers\.git\.args\[2\]: .*\$\{GITHUB_TOKEN\}/
  for (const words of [['validate'], ['validate', '--json'], ['doctor']]) {
    const { stdout, stderr } = await toolway(words, around)
    expect(stdout).toMatch(warning)
    expect(stdout).toContain('mcpServers.git.env')
    expect(stdout + stderr).not.toContain('hidden')
  }
})

test('S2, B6: missing plugins and plugins that cannot be loaded are problems of the configuration', async () => {
  const secret = 'correct-horse-battery-9'
  const config = { native: { plugins: ['./gone.ts', './broken.ts', './failing.mjs'] }, auth: { token: secret } }
  const failing = `throw new Error('no answer for ${secret}')`
  const files = {
    'failing.mjs': failing,
    'toolway.json': config,
    'other.json': {},
    'broken.ts': 'export const tool = {',
  }
  await using place = await folder(files)
  const named = ['--config', 'toolway.json', '--config', 'other.json']
  const { code, stdout, stderr } = await toolway(['validate', ...named], place)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^toolway\.json:1:12: native\.plugins: There is no plugin at .*gone\.ts/)
  expect(stderr).toMatch(/^toolway\.json:1:12: native\.plugins: .*broken\.ts/m)
  expect(stderr).toContain('no answer for [redacted].')
  const json = await toolway(['validate', '--json'], place)
  expect(JSON.parse(json.stdout)).toMatchObject({ valid: false, problems: [{ key: 'native.plugins' }, {}, {}] })
})

test('B6: a token that no client could send is refused, and not repeated', async () => {
  const bearer = { url: 'https://x', auth: { type: 'bearer', token: 'for sesame' } }
  await using place = await folder({ 'toolway.json': { auth: { token: 'open sesame' }, mcpServers: { bearer } } })
  const { code, stderr } = await toolway(['validate'], place)
  expect(code).toBe(2)
  expect(stderr).toMatch(/auth\.token: expected generated, none, or a token of .* without spaces/)
  expect(stderr).toMatch(/mcpServers\.bearer\.auth\.token: expected a token .* without spaces/)
  expect(stderr).not.toContain('sesame')
})
