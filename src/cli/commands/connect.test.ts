import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import * as files from '../../config/import/client-files.fixture.ts'
import { toolway } from '../kit.fixture.ts'
import { user } from './clients.fixture.ts'

const config = { 'shop/toolway.yaml': 'version: 1\nserver: { port: 4400 }\n' }
const cursor =
  '{\n  // mine\n  "mcpServers": {\n    "a": { "command": "x", "env": { "TOKEN": "s3cr3t-value" } }\n  }\n}\n'

describe('B11: connect connects a client to Toolway', () => {
  test('the client starts it with absolute paths; undo restores every byte', async () => {
    const { run, at } = await user({ ...config, 'home/.cursor/mcp.json': cursor })
    const { code, stdout } = await run('connect', 'cursor', '--yes', '--agent', 'me')
    expect(code).toBe(0)
    expect(stdout).toContain('+     "toolway": {')
    expect(stdout).not.toContain('s3cr3t-value')
    const written = await readFile(at('home', '.cursor', 'mcp.json'), 'utf8')
    expect(written).toContain('// mine')
    const { toolway: entry } = JSON.parse(written.replace('// mine', '')).mcpServers
    expect(entry).toEqual({
      type: 'stdio',
      command: process.execPath,
      args: [
        expect.stringMatching(/^\/.*\/cli\/main\.ts$/),
        'stdio',
        '--config',
        at('shop', 'toolway.yaml'),
        '--agent',
        'me',
      ],
    })
    expect(existsSync(entry.args[0])).toBe(true)
    expect((await run('connect', 'cursor', '--undo')).stdout).toContain('Restored ')
    expect(await readFile(at('home', '.cursor', 'mcp.json'), 'utf8')).toBe(cursor)
  })

  test('V15: --endpoint connects to an endpoint, beside others; a name that does not exist is an error', async () => {
    const endpoints = 'endpoints: { research: { description: Papers, agent: me }, files: {} }\n'
    const given = { 'shop/toolway.yaml': `${config['shop/toolway.yaml']}${endpoints}`, 'home/.cursor/mcp.json': cursor }
    const { run, at } = await user(given)
    const wrong = await run('connect', 'cursor', '--endpoint', 'reserch', '--yes')
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringMatching(/did you mean.*research.*are research, files/s),
    ])
    const other = await run('connect', 'cursor', '--endpoint', 'research', '--agent', 'you', '--yes')
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('act as me')])
    expect((await run('connect', 'codex', '--http', '--endpoint', 'research', '--yes')).code).toBe(0)
    const toml = await readFile(at('home', '.codex', 'config.toml'), 'utf8')
    expect(toml).toContain('[mcp_servers.toolway-research]\nurl = "http://127.0.0.1:4400/mcp/research"\n')
    for (const more of [
      ['--endpoint', 'files'],
      ['--endpoint', 'research', '--replace'],
    ])
      expect((await run('connect', 'cursor', '--yes', ...more)).code).toBe(0)
    const written = await readFile(at('home', '.cursor', 'mcp.json'), 'utf8')
    expect(Object.keys(JSON.parse(written.replace('// mine', '')).mcpServers)).toEqual([
      'toolway-files',
      'toolway-research',
    ])
    const { stdout } = await run('connect')
    expect(stdout).toMatch(/^research +cursor, codex +Papers$/m)
    expect(stdout).toMatch(/^cursor .* connected \(stdio\) /m)
    const imported = await run('import', at('home', '.cursor', 'mcp.json'), '--dry-run')
    expect(imported.stdout + imported.stderr).toContain('Nothing to add')
    expect((await run('connect', 'cursor', '--undo', '--endpoint', 'files')).stderr).toContain('--remove --endpoint')
    const removed = await run('connect', 'cursor', '--remove', '--endpoint', 'gone', '--yes')
    expect(removed.stdout).toContain('Cursor is not connected as toolway-gone')
    expect((await run('connect', 'cursor', '--undo')).code).toBe(0)
    expect(await readFile(at('home', '.cursor', 'mcp.json'), 'utf8')).toBe(cursor)
  })

  test('run by npx, the client starts it by npx too, never from a cache; hints name the command that works', async () => {
    const { surroundings, at } = await user(config)
    const program = ['npx', '-y', 'toolway@1.2.3']
    const command = program.join(' ')
    await toolway(['connect', 'cursor', '--yes'], { ...surroundings, command, program })
    const { mcpServers } = JSON.parse(await readFile(at('home', '.cursor', 'mcp.json'), 'utf8'))
    expect([mcpServers.toolway.command, ...mcpServers.toolway.args]).toEqual([
      ...[...program, 'stdio', '--config', at('shop', 'toolway.yaml')],
    ])
    const { stderr } = await toolway(['connect', 'cursor', '--yes'], { ...surroundings, cwd: at('home'), command })
    expect(stderr).toContain(`\`${command} init\``)
  })

  test('--dry-run and a missing yes write nothing', async () => {
    const { run, at } = await user({ ...config, 'home/.cursor/mcp.json': cursor })
    expect((await run('connect', 'cursor', '--dry-run')).code).toBe(0)
    expect(await run('connect', 'cursor')).toMatchObject({ code: 2, stderr: expect.stringContaining('Add --yes') })
    expect((await run('connect', 'cursor', '--json')).code).toBe(2)
    expect(await readFile(at('home', '.cursor', 'mcp.json'), 'utf8')).toBe(cursor)
    expect(existsSync(at('home', '.local'))).toBe(false)
  })

  test('--http refers to the token, which is generated if necessary, and shows where it is', async () => {
    const { run, at } = await user(config)
    const { stdout, stderr } = await run('connect', 'codex', '--http', '--yes')
    expect(stdout).toContain('+ bearer_token_env_var = "TOOLWAY_TOKEN"')
    expect(stderr).toContain(`cat ${at('home', '.local', 'state', 'toolway', 'token')}`)
    const token = (await readFile(at('home', '.local', 'state', 'toolway', 'token'), 'utf8')).trim()
    expect(await readFile(at('home', '.codex', 'config.toml'), 'utf8')).toBe(
      '[mcp_servers.toolway]\nurl = "http://127.0.0.1:4400/mcp"\nbearer_token_env_var = "TOOLWAY_TOKEN"\n',
    )
    const { stdout: zed } = await run('connect', 'zed', '--http', '--with-token', '--yes')
    expect(zed).not.toContain(token)
    expect(await readFile(at('home', '.config', 'zed', 'settings.json'), 'utf8')).toContain(token)
    expect((await stat(at('home', '.config', 'zed', 'settings.json'))).mode & 0o777).toBe(0o600)
    expect((await run('connect', 'zed', '--undo')).stdout).toContain('did not exist before')
    expect(existsSync(at('home', '.config'))).toBe(false)
  })

  test('--replace moves the other servers behind Toolway, with their secrets as references', async () => {
    const { run, at } = await user(
      { ...config, 'home/.codex/config.toml': files.codex },
      { LOCAL_TOKEN: 'a', OTHER_TOKEN: 'b' },
    )
    const { code, stdout } = await run('connect', 'codex', '--replace', '--yes')
    expect(code).toBe(0)
    expect(stdout).toContain('3 servers behind Toolway: context7, shell, figma')
    const toml = await readFile(at('home', '.codex', 'config.toml'), 'utf8')
    expect(toml).toContain('[profiles.fast]\nmodel_reasoning_effort = "low"\n')
    expect(toml.match(/^\[mcp_servers.*$/gm)).toEqual(['[mcp_servers.toolway]'])
    const { mcpServers, server } = parse(await readFile(at('shop', 'toolway.yaml'), 'utf8'))
    expect(Object.keys(mcpServers)).toEqual(['context7', 'shell', 'figma'])
    expect(server).toEqual({ port: 4400 })
    expect((await run('connect', 'codex', '--undo')).code).toBe(0)
    expect(await readFile(at('home', '.codex', 'config.toml'), 'utf8')).toBe(files.codex)
    expect((await run('connect', 'codex', '--replace', '--yes')).stdout).not.toContain('+   context7:')
  })

  test('--replace moves servers into a configuration that has only mcpServers', async () => {
    const { run, at } = await user({
      'home/.cursor/mcp.json': '{"mcpServers": {"b": {"command": "y"}}}',
      'shop/toolway.yaml': 'mcpServers:\n  a: { command: x }\n',
    })
    for (const more of [[], ['--config', 'toolway.yaml']]) {
      expect((await run('connect', 'cursor', '--replace', '--dry-run', ...more)).code).toBe(0)
    }
    expect((await run('connect', 'cursor', '--replace', '--yes')).stdout).toContain('Moved 1 server')
    expect(parse(await readFile(at('shop', 'toolway.yaml'), 'utf8'))).toEqual({
      mcpServers: { a: { command: 'x' }, b: { command: 'y' } },
    })
  })

  test('--replace says which keys have no effect, and keeps servers whose credential only the client can get', async () => {
    const servers = {
      helped: { type: 'http', url: 'https://mcp.example.com/mcp', headersHelper: '/opt/headers.sh' },
      trusted: { command: 'x', alwaysAllow: ['a'], somethingElse: 1 },
    }
    const { run, at } = await user({
      'home/.claude.json': JSON.stringify({ mcpServers: servers }),
      'shop/toolway.yaml': 'version: 1\nmcpServers: {}\n',
    })
    const { stdout, stderr } = await run('connect', 'claude-code', '--replace', '--yes')
    expect(stderr).toMatch(/helped stays in Claude Code: headersHelper /)
    expect(stderr).toMatch(/Claude Code: mcpServers\.trusted\.alwaysAllow has no effect/)
    expect(stderr).toMatch(/Claude Code: mcpServers\.trusted\.somethingElse is ignored/)
    expect(stderr.match(/headersHelper/g)).toHaveLength(1)
    expect(stdout).toContain('Moved 1 server behind Toolway: trusted.')
    const { mcpServers } = JSON.parse(await readFile(at('home', '.claude.json'), 'utf8'))
    expect(Object.keys(mcpServers)).toEqual(['helped', 'toolway'])
    expect(await readFile(at('shop', 'toolway.yaml'), 'utf8')).not.toContain('helped')
  })

  test('--replace keeps servers that Toolway cannot run in the client', async () => {
    const { run, at } = await user({ ...config, 'home/.config/zed/settings.json': files.zed })
    const { stderr } = await run('connect', 'zed', '--replace', '--yes')
    expect(stderr).toContain('from-extension stays in Zed')
    const written = await readFile(at('home', '.config', 'zed', 'settings.json'), 'utf8')
    expect(written).toContain('"from-extension": { "settings": { "token": "abc" } }')
    expect(written).not.toContain('"older"')
  })

  test('--remove removes our entry from a file that has changed since', async () => {
    const { run, at } = await user({ ...config, 'home/.cursor/mcp.json': cursor })
    const path = at('home', '.cursor', 'mcp.json')
    await run('connect', 'cursor', '--yes')
    await writeFile(path, (await readFile(path, 'utf8')).replace('// mine', '// theirs'))
    expect(await run('connect', 'cursor', '--undo')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('changed since'),
    })
    expect(await run('connect', 'cursor', '--remove', '--yes')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('--undo --force restores it'),
    })
    expect(await readFile(path, 'utf8')).toBe(cursor.replace('mine', 'theirs'))
    expect((await run('connect', 'cursor', '--remove', '--yes')).stdout).toContain('Cursor is not connected')
    expect((await run('connect', 'cursor', '--undo')).code).toBe(2)
    expect((await run('connect', 'cursor', '--undo', '--force')).code).toBe(0)
    expect(await readFile(path, 'utf8')).toBe(cursor)
  })

  test('--undo --force shows what is lost', async () => {
    const { run, at } = await user({ ...config, 'home/.cursor/mcp.json': cursor })
    await run('connect', 'cursor', '--yes')
    await writeFile(at('home', '.cursor', 'mcp.json'), '{}')
    expect((await run('connect', 'cursor', '--undo', '--force')).stderr).toContain('Changes made since then')
    expect(await readFile(at('home', '.cursor', 'mcp.json'), 'utf8')).toBe(cursor)
  })

  test('--project edits the file of the project; not every client has one', async () => {
    const { run, at } = await user(config)
    await run('connect', 'vscode', '--project', '--yes')
    expect(JSON.parse(await readFile(at('shop', '.vscode', 'mcp.json'), 'utf8')).servers.toolway.type).toBe('stdio')
    expect((await run('connect', 'windsurf', '--project')).stderr).toContain('Windsurf has no project file')
  })

  test('a second time changes nothing', async () => {
    const { run } = await user(config)
    await run('connect', 'gemini', '--yes')
    expect((await run('connect', 'gemini', '--yes')).stdout).toMatch(/^Gemini CLI is already connected\b.*\n$/)
  })
})

test('B11: connect alone lists every client and its state', async () => {
  const { run, at } = await user({ ...config, 'home/.cursor/mcp.json': cursor, 'home/.gemini/settings.json': '{' })
  await run('connect', 'zed', '--yes')
  const { stdout } = await run('connect', '--json')
  const { clients } = JSON.parse(stdout)
  expect(clients).toHaveLength(10)
  expect(clients).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        client: 'cursor',
        state: 'not connected',
        servers: 1,
        file: at('home', '.cursor', 'mcp.json'),
      }),
      expect.objectContaining({ client: 'zed', state: 'connected', way: 'stdio', undo: true }),
      expect.objectContaining({ client: 'gemini', state: 'unreadable' }),
      expect.objectContaining({ client: 'codex', state: 'no file' }),
    ]),
  )
  expect((await run('connect')).stdout).toMatch(/^zed +Zed +connected \(stdio\)/m)
})

describe('B11: obstacles are errors, and nothing is lost', () => {
  test.each([
    ['a client that there is not', ['connect', 'cursr'], config, /did you mean "cursor"/],
    ['half a name', ['connect', 'claude'], config, /claude-code or claude-desktop/],
    ['no configuration', ['connect', 'zed', '--yes'], {}, /no configuration file.*toolway init/s],
    ['two ways at once', ['connect', 'zed', '--stdio', '--http'], config, /--stdio and --http/],
    [
      'a client that starts programs only',
      ['connect', 'claude-desktop', '--http'],
      config,
      /Claude Desktop .*HTTP.*--http/s,
    ],
    ['nothing to undo', ['connect', 'zed', '--undo'], config, /Nothing to undo/],
    [
      'a broken file',
      ['connect', 'zed', '--yes'],
      { ...config, 'home/.config/zed/settings.json': '{ "a": ' },
      /not changed: it is not valid JSON/,
    ],
    ['a broken configuration', ['connect', 'zed', '--yes'], { 'shop/toolway.yaml': 'prot: 1' }, /toolway\.yaml:1:1/],
    [
      'the very file that Toolway reads',
      ['connect', 'claude-code', '--project', '--yes'],
      { 'shop/.mcp.json': cursor },
      /Claude Code's.*toolway init/s,
    ],
    [
      'nowhere to move servers',
      ['connect', 'zed', '--replace', '--yes'],
      { 'shop/toolway.json': '{"version": 1}' },
      /no toolway\.yaml to move/,
    ],
  ])('%s', async (_, words, given, message) => {
    const { run } = await user(given as Record<string, string>)
    const { code, stderr } = await run(...words)
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
  })

  test('a folder that cannot be written to', async () => {
    const { run, at } = await user({ ...config, 'home/.cursor/mcp.json': cursor })
    execFileSync('chmod', ['-R', 'a+rwX', at('.')])
    await chmod(at('shop', 'toolway.yaml'), 0o644)
    await chmod(at('home', '.cursor'), 0o555)
    // Root may write anywhere, so it is somebody else for a moment.
    const isRoot = process.getuid?.() === 0
    if (isRoot) process.seteuid?.(65534)
    try {
      expect(await run('connect', 'cursor', '--yes')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('permission denied'),
      })
    } finally {
      if (isRoot) process.seteuid?.(0)
    }
  })

  test('a folder where a file should be', async () => {
    const { run, at } = await user(config)
    await mkdir(at('home', '.cursor', 'mcp.json'), { recursive: true })
    expect(await run('connect', 'cursor', '--yes')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is not a regular file'),
    })
  })
})
