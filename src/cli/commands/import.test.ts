import { existsSync } from 'node:fs'
import { chmod, lstat, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import * as files from '../../config/import/client-files.fixture.ts'
import { user } from './clients.fixture.ts'

const mine = `# My own words.
version: 1

mcpServers:
  first:      { command: x }     # aligned as I like it

server:   {port: 4400}   # not 4322
`

const servers = (value: object) => JSON.stringify({ mcpServers: value })

describe('B11: import adds the servers of a file to a configuration', () => {
  test('keeps every other byte', async () => {
    const { run, at } = await user({
      'shop/toolway.yaml': mine,
      'shop/other.json': servers({ second: { command: 'y', args: ['-v'] } }),
    })
    const { code, stdout } = await run('import', 'other.json')
    expect(code).toBe(0)
    expect(stdout).toMatch(/\+ {3}second:\n/)
    expect(await readFile(at('shop', 'toolway.yaml'), 'utf8')).toBe(
      mine.replace('like it\n', 'like it\n  # from other.json\n  second:\n    command: y\n    args: [-v]\n'),
    )
    expect((await run('validate')).code).toBe(0)
  })

  test('importing twice adds once; another server of the same name is kept', async () => {
    const { run, at } = await user({
      'shop/toolway.yaml': mine,
      'home/.config/Claude/claude_desktop_config.json': files.claudeDesktop,
      'shop/other.json': servers({ github: { url: 'https://x/mcp' }, first: { command: 'x' } }),
    })
    const file = at('home', '.config', 'Claude', 'claude_desktop_config.json')
    await run('import', file)
    const again = await run('import', file, '--json')
    expect(JSON.parse(again.stdout)).toMatchObject({ added: [], present: ['filesystem', 'github'], written: false })
    const { stdout, stderr } = await run('import', 'other.json')
    expect(stdout).toContain('first is already in toolway.yaml')
    expect(stderr).toMatch(/github is in use; .*other\.json .* github-other$/m)
    const { mcpServers } = parse(await readFile(at('shop', 'toolway.yaml'), 'utf8'))
    expect(Object.keys(mcpServers)).toEqual(['first', 'filesystem', 'github', 'github-other'])
  })

  test("a client's servers are added once, whether they come from init, import or connect", async () => {
    const client = servers({ files: { command: 'npx', args: ['-y', 'server-files'] } })
    const { run, at } = await user({ 'home/.cursor/mcp.json': client, 'shop/.cursor/mcp.json': client })
    await run('init')
    const before = await readFile(at('shop', 'toolway.yaml'), 'utf8')
    for (const path of [at('home', '.cursor', 'mcp.json'), '.cursor/mcp.json']) {
      expect(JSON.parse((await run('import', path, '--json')).stdout)).toMatchObject({ added: [], written: false })
    }
    await run('import', at('home', '.cursor', 'mcp.json'), '--into', 'other.yaml')
    await run('connect', 'cursor', '--replace', '--yes', '--config', 'other.yaml')
    for (const file of ['toolway.yaml', 'other.yaml']) {
      expect(parse(await readFile(at('shop', file), 'utf8')).mcpServers).toEqual(parse(before).mcpServers)
    }
  })

  test('a server that the operator has restricted is not added again without its restrictions', async () => {
    const client = servers({ files: { command: 'npx', args: ['-y', 'server-files'], excludeTools: ['wipe'] } })
    const { run, at } = await user({ 'home/.cursor/mcp.json': client })
    const text = `version: 1
mcpServers:
  files:
    command: npx
    args: [-y, server-files]
    readOnly: true
    approve: ['*']
    concurrency: 2
    tools: { exclude: [delete_*] }
`
    await writeFile(at('shop', 'toolway.yaml'), text)
    const { stdout, stderr } = await run('import', at('home', '.cursor', 'mcp.json'))
    expect(stdout).toContain('files is already in toolway.yaml')
    expect(stderr).toMatch(/files is already configured; tools .*not imported/)
    expect((await run('connect', 'cursor', '--replace', '--yes')).code).toBe(0)
    expect(await readFile(at('shop', 'toolway.yaml'), 'utf8')).toBe(text)
    expect(Object.keys(JSON.parse(await readFile(at('home', '.cursor', 'mcp.json'), 'utf8')).mcpServers)).toEqual([
      'toolway',
    ])
  })

  test('a server with a secret that was renamed is not added again', async () => {
    const withKey = (key: string) => servers({ search: { command: 'npx', args: ['-y', 'x'], env: { API_KEY: key } } })
    const { run, at } = await user({
      'home/.cursor/mcp.json': withKey('first-key-of-search-1'),
      'home/.codeium/windsurf/mcp_config.json': withKey('second-key-of-search-2'),
    })
    const secrets = () => readdir(at('home', '.config', 'toolway', 'secrets'))
    expect((await run('init')).stderr).toContain('search-windsurf')
    const before = [await readFile(at('shop', 'toolway.yaml'), 'utf8'), await secrets()]
    const { stdout } = await run('import', at('home', '.codeium', 'windsurf', 'mcp_config.json'), '--json')
    expect(JSON.parse(stdout)).toMatchObject({ added: [], present: ['search-windsurf'] })
    for (const client of ['cursor', 'windsurf']) {
      expect((await run('connect', client, '--replace', '--yes')).code).toBe(0)
    }
    expect([await readFile(at('shop', 'toolway.yaml'), 'utf8'), await secrets()]).toEqual(before)
  })

  test('a server whose working folder 0.1.0 wrote is not added again', async () => {
    const { run, at } = await user({
      'home/.cursor/mcp.json': servers({ files: { command: 'npx', args: ['-y', 'x'] } }),
    })
    const text = `mcpServers:\n  files: {command: npx, args: [-y, x], cwd: ${at('home')}}\n`
    await writeFile(at('shop', 'toolway.yaml'), text)
    const { stdout } = await run('import', at('home', '.cursor', 'mcp.json'), '--json')
    expect(JSON.parse(stdout)).toMatchObject({ added: [], present: ['files'] })
  })

  test('B1: a note says which name a server with an invalid name gets', async () => {
    const { run, at } = await user({ 'home/.cursor/mcp.json': servers({ 'my tools': { command: 'x' } }) })
    for (const words of [['init'], ['import', at('home', '.cursor', 'mcp.json'), '--into', 'other.yaml']]) {
      expect((await run(...words)).stderr).toMatch(/^my tools is imported as my-tools, .*invalid/m)
    }
  })

  test('secrets become references and are not shown', async () => {
    const { run, at } = await user({
      'shop/cline.json': servers({
        a: { url: 'https://x/mcp?api_key=s3cr3t-one', headers: { Authorization: 'Bearer s3cr3t-two' } },
      }),
    })
    const { stdout, stderr } = await run('import', 'cline.json')
    const written = await readFile(at('shop', 'toolway.yaml'), 'utf8')
    for (const text of [stdout, stderr, written]) expect(text).not.toContain('s3cr3t')
    expect(parse(written).mcpServers.a).toEqual({
      url: 'https://x/mcp?api_key=${file:~/.config/toolway/secrets/a.api_key}',
      headers: { Authorization: 'Bearer ${file:~/.config/toolway/secrets/a.Authorization}' },
    })
    const { stdout: tools } = await run('validate', '--json')
    expect(JSON.parse(tools)).toMatchObject({ valid: true })
  })

  test('--dry-run writes nothing, --into names another file, which is created if necessary', async () => {
    const { run, at } = await user({ 'shop/codex.toml': files.codex })
    const { stdout } = await run('import', 'codex.toml', '--dry-run', '--into', 'new.yaml')
    expect(stdout).toContain('+   context7:')
    expect(stdout, 'a value that is not secret').toMatch(/\+ {3}token: generated /)
    expect(existsSync(at('shop', 'new.yaml'))).toBe(false)
    await run('import', 'codex.toml', '--into', 'new.yaml', '--yes')
    expect((await run('validate', '--config', 'new.yaml')).code).toBe(0)
  })

  test.each([
    ['import', 'codex.toml', '--into'],
    ['init', '--from', 'codex', '--output'],
  ])('--config names the file that %s writes', async (...words) => {
    const command = words.slice(0, -1)
    const option = words.at(-1) as string
    const { run, at } = await user({ 'shop/codex.toml': files.codex, 'home/.codex/config.toml': files.codex })
    for (const more of [
      ['--config', 'a.yaml', option, 'b.yaml'],
      ['--config', 'a.yaml', '--config', 'b.yaml'],
    ]) {
      expect(await run(...command, ...more)).toMatchObject({ code: 2, stderr: expect.stringContaining('--config') })
    }
    expect(await run(...command, '--config', 'mine.yaml', '--yes')).toMatchObject({ code: 0 })
    const written = ['mine.yaml', 'a.yaml', 'b.yaml', 'toolway.yaml'].filter((file) => existsSync(at('shop', file)))
    expect(written).toEqual(['mine.yaml'])
  })

  test.skipIf(process.platform === 'win32')('settings that exist only on Windows are named', async () => {
    const { run } = await user({
      'shop/windows.json': servers({
        shim: { command: 'C:\\Program Files\\nodejs\\npx.cmd', args: ['x'] },
        shell: { command: 'cmd', args: ['/c', 'npx', 'y'], cwd: 'D:\\work' },
        home: { command: 'npx', args: ['z', '%USERPROFILE%\\notes'], env: { DATA: 'C:\\data' } },
        here: { command: 'npx', args: ['a:b', '100%', 'C:/x'], env: { PATTERN: '\\d+' } },
      }),
    })
    const { stderr } = await run('import', 'windows.json')
    const named = [...stderr.matchAll(/^(\w+) was written for Windows \((.*)\)/gm)].map(([, name, what]) => [
      name,
      what,
    ])
    expect(named).toEqual([
      ['shim', 'command'],
      ['shell', 'command, cwd'],
      ['home', 'args, env'],
    ])
  })

  test('the file keeps its mode and stays behind its link', async () => {
    const { run, at } = await user({
      'dotfiles/toolway.yaml': mine,
      'shop/other.json': servers({ b: { command: 'y' } }),
    })
    await chmod(at('dotfiles', 'toolway.yaml'), 0o640)
    await symlink(at('dotfiles', 'toolway.yaml'), at('shop', 'toolway.yaml'))
    expect((await run('import', 'other.json')).code).toBe(0)
    expect((await lstat(at('shop', 'toolway.yaml'))).isSymbolicLink()).toBe(true)
    expect((await stat(at('dotfiles', 'toolway.yaml'))).mode & 0o777).toBe(0o640)
    expect(await readFile(at('dotfiles', 'toolway.yaml'), 'utf8')).toContain('  b:\n')
  })

  test('a note says that other sections are not imported', async () => {
    const { run } = await user({
      'shop/rules.toml':
        '[[mcp_client.servers]]\nname = "a"\ncommand = "x"\n[tool_forwarding.security]\nblocked_tools = ["a::b"]\n',
    })
    expect((await run('import', 'rules.toml')).stderr).toMatch(/Only servers are imported; .*policy.*--config/)
    const other = await user({ 'shop/.mcp.json': '{"_comment": "", "mcpServers": {"a": {"command": "x"}}}' })
    expect((await other.run('import', '.mcp.json')).stderr).not.toContain('--config')
  })
})

describe('B11: more forms of files are read', () => {
  test.each([
    [
      'settings.json',
      '{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"type": "stdio", "command": "x"}}}}',
    ],
    ['settings.json', '{"mcp.servers": {"a": {"command": "x"}}, "mcp.inputs": []}'],
    ['config.yaml', 'name: Mine\nversion: 1.0.0\nschema: v1\nmodels: []\nmcpServers:\n  - {name: a, command: x}\n'],
    ['a.json', '{"mcpServers": [{"name": "a", "command": "x"}]}'],
  ])('%s, from its content', async (file, text) => {
    const { run, at } = await user({ [`shop/${file}`]: text })
    expect((await run('import', file, '--into', 'new.yaml')).code).toBe(0)
    expect(parse(await readFile(at('shop', 'new.yaml'), 'utf8')).mcpServers).toEqual({ a: { command: 'x' } })
    expect((await run('validate', '--config', file)).code).toBe(0)
  })

  test("a list of servers is another program's file: its references stay plain text", async () => {
    const { run, at } = await user({
      'shop/config.yaml': 'version: 1\nmcpServers:\n  - {name: a, command: x, args: ["${exec:touch ran}"]}\n',
    })
    await run('import', 'config.yaml')
    expect(parse(await readFile(at('shop', 'toolway.yaml'), 'utf8')).mcpServers.a.args).toEqual(['$${exec:touch ran}'])
  })

  test("LibreChat's file is read tolerantly, and its references to files stay plain text", async () => {
    const { run, at } = await user({
      'shop/librechat.yaml': `version: 1.2.8
cache: true
mcpServers:
  My Tools: { command: x, args: ["\${file:/a}"], timeout: 60000, title: T, chatMenu: false }
`,
    })
    const { code, stderr } = await run('import', 'librechat.yaml')
    expect([code, stderr]).toEqual([0, expect.stringMatching(/title is ignored.*LibreChat/)])
    expect(parse(await readFile(at('shop', 'toolway.yaml'), 'utf8')).mcpServers).toEqual({
      'My-Tools': { command: 'x', args: ['$${file:/a}'], timeout: '1m' },
    })
  })

  test("a file with sections of Toolway's is not taken for LibreChat's, whatever its version", async () => {
    const text = 'version: 0.1.0\napprovals: {by: [own]}\nmcpServers:\n  b: {command: x}\n'
    const { run } = await user({ 'shop/a.yaml': text })
    expect((await run('validate', '--config', 'a.yaml')).code).toBe(2)
  })

  test('rules beside a list of servers are not ignored', async () => {
    const text = 'version: 1\nagents: {a: {deny: {servers: [b]}}}\nmcpServers:\n  - {name: b, command: x}\n'
    const { run } = await user({ 'shop/a.yaml': text })
    expect((await run('validate', '--config', 'a.yaml')).code).toBe(2)
  })

  test('an entry that is not a section is skipped', async () => {
    const { run } = await user({ 'shop/a.json': '{"mcpServers": {"a": "npx x", "b": {"command": "x"}, "c": null}}' })
    const { stdout } = await run('import', 'a.json', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ added: ['b'], problems: [{ key: 'mcpServers.a' }] })
  })
})

describe('B11: bad input is an error and changes nothing', () => {
  test.each([
    ['a file that is not there', {}, 'gone.json', /gone\.json: no such file/],
    ['a broken file', { 'shop/a.json': '{"mcpServers": {' }, 'a.json', /a\.json:1:\d+: not valid JSON/],
    [
      'a broken configuration',
      { 'shop/a.json': servers({ b: { command: 'x' } }), 'shop/toolway.yaml': 'a: [' },
      'a.json',
      /toolway\.yaml:1/,
    ],
    [
      'a configuration in braces',
      { 'shop/a.json': servers({ b: { command: 'x' } }), 'shop/toolway.yaml': '{"version": 1}' },
      'a.json',
      /flow style/,
    ],
    ['an entry without mcpServers', { 'shop/a.json': '{"a": {"command": "x"}}' }, 'a.json', /No servers .*a\.json/],
    [
      'a configuration without servers',
      { 'shop/a.yaml': 'version: 1\n' },
      'a.yaml',
      /No servers .*mcpServers.*Cursor/s,
    ],
    [
      'text instead of servers',
      { 'shop/a.json': '{"mcpServers": "x"}' },
      'a.json',
      /a\.json:1.*mcpServers: .*section/s,
    ],
    [
      'a list of servers without names',
      { 'shop/a.json': '{"mcpServers": [{"command": "x"}]}' },
      'a.json',
      /a\.json:1.*name/s,
    ],
    ['the configuration itself', { 'shop/toolway.yaml': mine }, 'toolway.yaml', /into itself/],
  ])('%s', async (_, given, file, message) => {
    const { run, at } = await user(given as Record<string, string>)
    const before = existsSync(at('shop', 'toolway.yaml'))
      ? await readFile(at('shop', 'toolway.yaml'), 'utf8')
      : undefined
    const { code, stderr } = await run('import', file)
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(
      existsSync(at('shop', 'toolway.yaml')) ? await readFile(at('shop', 'toolway.yaml'), 'utf8') : undefined,
    ).toBe(before)
  })

  test('a file of which no server can be used', async () => {
    const { run } = await user({ 'shop/a.json': servers({ b: { command: 'x', args: 5 } }) })
    const { code, stdout, stderr } = await run('import', 'a.json')
    expect([code, stderr]).toEqual([2, expect.stringContaining('mcpServers.b.args')])
    expect(stdout).toMatch(/None of the servers in a\.json/)
    expect((await run('import', 'a.json', '--json')).code).toBe(2)
  })

  test('a configuration that is not YAML', async () => {
    const { run } = await user({ 'shop/a.json': servers({ b: { command: 'x' } }) })
    expect(await run('import', 'a.json', '--into', 'toolway.toml')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('.yaml'),
    })
  })
})
