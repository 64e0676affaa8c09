import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, chown, lchown, mkdir, rename, symlink } from 'node:fs/promises'
import { delimiter } from 'node:path'
import { describe, expect, test } from 'vitest'
import { claimDefaultState } from './load.ts'
import { project } from './project.fixture.ts'

const port = (number: number) => `server: { port: ${number} }`
const portJson = (number: number) => `{"server": {"port": ${number}}}`

test('no file at all means the defaults, with state in a folder of the user', async () => {
  const { load, at } = await project()
  const { config, files, notes, warnings } = await load()
  expect({ files, notes, warnings }).toEqual({ files: [], notes: [], warnings: [] })
  expect(config.stores.path).toBe(at('home', '.local', 'state', 'toolway', 'default'))
  expect(config.audit.path).toBe(at('home', '.local', 'state', 'toolway', 'default', 'audit'))
})

test('files are looked for in order: named, variable, this folder, .mcp.json, the user', async () => {
  const files = {
    'named.yaml': port(1),
    'variable.yaml': port(2),
    'toolway.yaml': port(3),
    'toolway.toml': '[server]\nport = 4',
    '.mcp.json': '{"mcpServers": {"a": {"command": "x"}}}',
    'home/.config/toolway/toolway.jsonc': `// user\n${portJson(6)}`,
    'elsewhere/toolway/toolway.yml': port(7),
  }
  const { load, at } = await project(files)
  const { folder } = await project({ '.mcp.json': files['.mcp.json'] })
  const { folder: empty } = await project()
  const env = { TOOLWAY_CONFIG: 'variable.yaml' }
  expect((await load({ paths: ['named.yaml'], env })).config.server.port).toBe(1)
  expect((await load({ env })).config.server.port).toBe(2)
  expect(
    (await load({ env: { TOOLWAY_CONFIG: ['variable.yaml', at('named.yaml')].join(delimiter) } })).config.server.port,
  ).toBe(1)
  expect((await load()).config.server.port).toBe(3)
  expect((await load({ cwd: folder })).files.map(({ path }) => path)).toEqual([`${folder}/.mcp.json`])
  expect((await load({ cwd: empty })).config.server.port).toBe(6)
  expect((await load({ cwd: empty, env: { XDG_CONFIG_HOME: at('elsewhere') } })).config.server.port).toBe(7)
  expect((await load({ cwd: empty, env: { XDG_CONFIG_HOME: 'elsewhere' } })).config.server.port).toBe(6)
})

test('a second file in the same place is not read, and a warning says so', async () => {
  const { load } = await project({ 'toolway.json': portJson(1), 'toolway.yml': port(2) })
  const { config, warnings } = await load()
  expect(config.server.port).toBe(2)
  expect(warnings).toEqual([expect.stringMatching(/toolway\.json is not read because .*toolway\.yml .*--config/)])
})

test('a file that was named must exist', async () => {
  const { problems, at } = await project({ 'toolway.yaml': '' })
  expect(await problems({ env: { TOOLWAY_CONFIG: 'gone.yaml' } })).toMatchObject([{ file: at('gone.yaml') }])
})

describe.skipIf(process.platform === 'win32')(
  'B6: a file that was found automatically is not used if another user could have created it',
  () => {
    const servers = '{"mcpServers": {"a": {"command": "x"}}}'
    const nobody = 65_534

    test.skipIf(process.getuid?.() !== 0)('a file of another user, or a link of theirs to one of ours', async () => {
      const { problems, load, folder, at } = await project({ 'toolway.yaml': servers })
      await chown(at('toolway.yaml'), nobody, nobody)
      // A volume of a container often belongs to another user.
      expect((await load()).files).toHaveLength(1)
      await chmod(folder, 0o1777)
      expect(await problems()).toMatchObject([
        { file: at('toolway.yaml'), message: expect.stringContaining('--config') },
      ])
      expect((await load({ env: { SUDO_UID: String(nobody) } })).files).toHaveLength(1)
      await chown(at('toolway.yaml'), 0, 0)
      await rename(at('toolway.yaml'), at('ours.yaml'))
      await symlink(at('ours.yaml'), at('toolway.yaml'))
      expect((await load()).files).toHaveLength(1)
      await lchown(at('toolway.yaml'), nobody, nobody)
      expect(await problems()).toMatchObject([{ file: at('toolway.yaml') }])
      expect((await load({ paths: ['toolway.yaml'] })).files).toHaveLength(1)
    })

    test.skipIf(process.getuid?.() !== 0)('rules beside the servers', async () => {
      const rules = '.mcp-gateway-rules.json'
      const { problems, load, folder, at } = await project({ '.mcp.json': servers, [rules]: '{"agents": {}}' })
      await chmod(folder, 0o1777)
      expect((await load()).files).toHaveLength(2)
      await chown(at(rules), nobody, nobody)
      expect(await problems()).toMatchObject([{ file: at(rules) }])
    })
  },
)

test.skipIf(process.platform === 'win32')('B11: a named pipe is refused, because it may have no writer', async () => {
  const { problems, at } = await project()
  execFileSync('mkfifo', [at('pipe.yaml')])
  expect(await problems({ paths: ['pipe.yaml'] })).toMatchObject([
    { file: at('pipe.yaml'), message: expect.stringContaining('named pipe') },
  ])
})

describe('B6: the first configuration file', () => {
  const defaultState = 'home/.local/state/toolway/default'

  test('keeps the state from before it existed; later ones get a folder each', async () => {
    const { load, at } = await project({ [`${defaultState}/keys.json`]: '', 'a.yaml': '', 'b.yaml': '' })
    const env = { HOME: at('home') }
    const kept = { folder: at(defaultState), configFile: at('a.yaml') }
    expect(await claimDefaultState(at('a.yaml'), env)).toEqual(kept)
    expect(await claimDefaultState(at('b.yaml'), env)).toEqual(kept)
    const [none, a, b] = await Promise.all([[], ['a.yaml'], ['b.yaml']].map((paths) => load({ paths })))
    expect(none?.config.stores.path).toBe(kept.folder)
    expect(a?.config.stores).toMatchObject({ path: kept.folder, common: at('home/.local/state/toolway') })
    expect(b?.config.stores.path).not.toBe(kept.folder)
  })

  test('has a folder of its own if there was no state, or if it has state already', async () => {
    const { load, at } = await project({ 'a.yaml': '' })
    const env = { HOME: at('home') }
    expect(await claimDefaultState(at('a.yaml'), env)).toBeUndefined()
    const own = (await load({ paths: ['a.yaml'] })).config.stores.path
    await mkdir(own, { recursive: true })
    await mkdir(at(defaultState, 'pins'), { recursive: true })
    expect(await claimDefaultState(at('a.yaml'), env)).toBeUndefined()
    expect((await load({ paths: ['a.yaml'] })).config.stores.path).toBe(own)
  })
})

test('state lies apart for each configuration, and where XDG_STATE_HOME says', async () => {
  const { load, at } = await project({ 'a.yaml': '', 'b.yaml': '' })
  const hash = createHash('sha256')
    .update([at('a.yaml'), at('b.yaml')].join('\n'))
    .digest('hex')
    .slice(0, 12)
  const both = await load({ paths: ['a.yaml', 'b.yaml'], env: { XDG_STATE_HOME: at('state') } })
  expect(both.config.stores.path).toBe(at('state', 'toolway', hash))
  expect((await load({ paths: ['a.yaml'] })).config.stores.path).not.toBe(
    (await load({ paths: ['b.yaml'] })).config.stores.path,
  )
})

test('relative paths are relative to the file they were written in, and arguments stay as they are', async () => {
  const { load, at } = await project({
    'one/a.yaml': `
mcpServers:
  files:
    command: ./bin/server
    args: [./sandbox, -v]
    cwd: work
    guards: [{ kind: path, arguments: [path], roots: [./sandbox, /abs] }]
  plain: { command: x }
audit: { path: ../log }
sinks: { out: { kind: file, path: ./out } }
native: { plugins: [./my-tools.ts] }
models: { m: { kind: gguf, path: m.gguf } }
`,
    'two/b.yaml': 'stores: { path: data }\nsandbox: { allowPaths: [in, ~/in] }\nmcpServers: { other: { command: y } }',
  })
  const { config } = await load({ paths: ['one/a.yaml', 'two/b.yaml'] })
  expect(config.mcpServers.files).toMatchObject({
    command: './bin/server',
    args: ['./sandbox', '-v'],
    cwd: at('one', 'work'),
    guards: [{ roots: [at('one', 'sandbox'), '/abs'] }],
  })
  expect(config.mcpServers.plain).toMatchObject({ cwd: at('one') })
  expect(config.mcpServers.other).toMatchObject({ cwd: at('two') })
  expect(config.audit.path).toBe(at('log'))
  expect(config.stores.path).toBe(at('two', 'data'))
  expect(config.sinks.out).toMatchObject({ path: at('one', 'out') })
  expect(config.native.plugins).toEqual([at('one', 'my-tools.ts')])
  expect(config.models.m).toMatchObject({ path: at('one', 'm.gguf') })
  expect(config.sandbox.allowPaths).toEqual([at('two', 'in'), at('home', 'in')])
})

test('audit lies in the store unless it has a path of its own', async () => {
  const { load, at } = await project({ 'toolway.yaml': 'stores: { path: ./data }' })
  expect((await load()).config.audit.path).toBe(at('data', 'audit'))
})

test('G7: TOOLWAY_DEFAULT_AGENT overrides the default agent, and its text is taken as it is', async () => {
  const { load, problems } = await project({ 'toolway.yaml': 'defaults: { agent: a }' })
  expect((await load()).config.defaults.agent).toBe('a')
  expect((await load({ env: { TOOLWAY_DEFAULT_AGENT: 'b' } })).config.defaults.agent).toBe('b')
  expect((await load({ env: { GATEWAY_DEFAULT_AGENT: 'c' } })).config.defaults.agent).toBe('a')
  expect((await load({ env: { TOOLWAY_DEFAULT_AGENT: '${HOME}' } })).config.defaults.agent).toBe('${HOME}')
  expect(await problems({ env: { TOOLWAY_DEFAULT_AGENT: '\0' } })).toMatchObject([{ file: 'TOOLWAY_DEFAULT_AGENT' }])
})

test('text stays as it was written where programs and servers want text', async () => {
  const { load } = await project({
    'toolway.yaml':
      'mcpServers: { a: { command: x, args: [1.10, true, 007], env: { V: 3.0, ON: yes, N: 0x1F } }, b: { url: "http://x", headers: { X: 1.0 } } }',
  })
  const { config } = await load()
  expect(config.mcpServers.a).toMatchObject({ args: ['1.10', 'true', '007'], env: { V: '3.0', ON: 'yes', N: '0x1F' } })
  expect(config.mcpServers.b).toMatchObject({ headers: { X: '1.0' } })
})

test('an empty section is ignored', async () => {
  const { load } = await project({ 'toolway.yaml': 'server:\nmcpServers:\nagents:\ncache:\n  ttl:\n' })
  const { config } = await load()
  expect(config.server.port).toBe(4322)
  expect(config.cache.ttl).toBe(60_000)
})

test('an address of a schema for editors is accepted and goes no further', async () => {
  const { load } = await project({ 'toolway.json': '{"$schema": "./toolway.schema.json", "version": 1}' })
  expect((await load()).config).not.toHaveProperty('$schema')
})

test('V9: a placeholder for a secret, copied from the dashboard, is refused', async () => {
  const { load } = await project({
    'toolway.yaml': 'mcpServers:\n  a:\n    command: x\n    env: { API_TOKEN: <secret 25e12fa4> }\n',
  })
  await expect(load()).rejects.toMatchObject({ problems: [{ key: 'mcpServers.a.env.API_TOKEN', line: 4 }] })
})
