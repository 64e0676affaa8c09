import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { starter } from '../../admin/config/starter.ts'
import * as files from '../../config/import/client-files.fixture.ts'
import { loadConfig } from '../../config/load.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'
import { user } from './clients.fixture.ts'

test('B11: init writes a file that validate accepts without warnings', async () => {
  await using place = await folder()
  const { code, stdout } = await toolway(['init'], place)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^Wrote toolway\.yaml\..*toolway validate.*toolway serve\n$/s)
  const validated = await toolway(['validate', '--json'], place)
  expect(validated.code).toBe(0)
  expect(JSON.parse(validated.stdout)).toMatchObject({
    valid: true,
    files: [{ path: join(place.cwd, 'toolway.yaml') }],
    warnings: [],
  })
})

test('B11: the servers in the starter are valid once they are uncommented', async () => {
  const uncommented = starter.replace(/^# ?(mcpServers:| {2}.*|)$/gm, '$1')
  await using place = await folder({ 'toolway.yaml': uncommented })
  const { config } = await loadConfig({ cwd: place.cwd, env: { ...place.env, REMOTE_TOKEN: 'x' } })
  expect(Object.keys(config.mcpServers)).toEqual(['filesystem', 'remote'])
})

test('B11: init overwrites a file only with --force', async () => {
  await using place = await folder({ 'toolway.yaml': 'mine' })
  const refused = await toolway(['init'], place)
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('toolway.yaml already exists')
  expect(await readFile(join(place.cwd, 'toolway.yaml'), 'utf8')).toBe('mine')
  expect((await toolway(['init', '--force'], place)).code).toBe(0)
  expect(await readFile(join(place.cwd, 'toolway.yaml'), 'utf8')).toBe(starter)
  expect(await readFile(join(place.cwd, 'toolway.yaml.backup'), 'utf8')).toBe('mine')
})

test('B11: init --output writes elsewhere, and --json says where', async () => {
  await using place = await folder()
  const { stdout } = await toolway(['init', '--output', 'other.yml', '--json'], place)
  expect(JSON.parse(stdout)).toMatchObject({ path: join(place.cwd, 'other.yml'), found: [], servers: [] })
  expect((await toolway(['init', '--output', 'no/where.yaml'], place)).code).toBe(2)
})

const token = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'

const everybody = {
  'home/.claude.json': files.claudeCode,
  'home/.config/Claude/claude_desktop_config.json': files.claudeDesktop,
  'home/.cursor/mcp.json': files.cursor,
  'shop/.vscode/mcp.json': files.vscode,
  'shop/.env': 'A=b\n',
  'home/.codex/config.toml': files.codex,
  'home/.config/opencode/opencode.jsonc': files.opencode,
  'home/.gemini/settings.json': files.gemini,
  'home/.codeium/windsurf/mcp_config.json': files.windsurf,
  'home/.config/zed/settings.json': files.zed,
  'home/.cline/data/settings/cline_mcp_settings.json': files.cline,
}

describe('B11: init finds the servers of clients', () => {
  test('the servers of ten clients become one file that validate accepts, with no secret in it', async () => {
    const { run, at } = await user(everybody)
    const { code, stdout } = await run('init', '--yes')
    expect(code).toBe(0)
    for (const name of [
      'Claude Code',
      'Claude Desktop',
      'Cursor',
      'VS Code',
      'Codex',
      'OpenCode',
      'Gemini CLI',
      'Windsurf',
      'Zed',
      'Cline',
    ]) {
      expect(stdout).toMatch(new RegExp(`^${name} `, 'm'))
    }
    const written = await readFile(at('shop', 'toolway.yaml'), 'utf8')
    for (const secret of [token, 'your-token', 'Bearer abc']) expect(written).not.toContain(secret)
    expect(written).toContain('GITHUB_PERSONAL_ACCESS_TOKEN: ${file:~/.config/toolway/secrets/github.GITHUB_PERSONAL')
    const secret = at('home', '.config', 'toolway', 'secrets', 'github.GITHUB_PERSONAL_ACCESS_TOKEN')
    expect(await readFile(secret, 'utf8')).toBe(`${token}\n`)
    expect((await stat(secret)).mode & 0o777).toBe(0o600)
    const validated = await run('validate', '--json')
    expect(JSON.parse(validated.stdout)).toMatchObject({ valid: true })
    expect(JSON.parse(validated.stdout).servers.length).toBeGreaterThan(15)
  })

  test('the same server in two clients is added once, another one of its name is kept, and both are noted', async () => {
    const server = (value: string) =>
      JSON.stringify({ mcpServers: { github: { command: 'x', env: { LEVEL: value } } } })
    const { run } = await user({
      'home/.cursor/mcp.json': server('a'),
      'home/.codeium/windsurf/mcp_config.json': server('a'),
      'home/.gemini/settings.json': server('b'),
    })
    const { stdout } = await run('init', '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      servers: [
        { name: 'github', from: ['cursor', 'windsurf'] },
        { name: 'github-gemini', from: ['gemini'] },
      ],
      notes: [expect.stringMatching(/^Gemini CLI .*github, .* github-gemini$/)],
    })
  })

  test('an invalid file and an invalid server are skipped', async () => {
    const { run, at } = await user({
      'home/.cursor/mcp.json': '{"mcpServers": {',
      'home/.gemini/settings.json':
        '{"mcpServers": {"good": {"command": "x"}, "bad": {"command": "x", "url": "http://y"}}}',
    })
    const { code, stdout, stderr } = await run('init')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^Cursor .* 1 problem$/m)
    expect(stderr).toMatch(/\.cursor\/mcp\.json:1: /)
    expect(stderr).toContain('exactly one of command and url')
    expect(Object.keys(parse(await readFile(at('shop', 'toolway.yaml'), 'utf8')).mcpServers)).toEqual(['good'])
  })

  test('a server that waits for a variable or a file is disabled, so that the others run', async () => {
    const { run, at } = await user(
      { 'shop/.vscode/mcp.json': files.vscode, 'home/.codex/config.toml': files.codex },
      { LOCAL_TOKEN: 'x', OTHER_TOKEN: 'y' },
    )
    const { stderr } = await run('init')
    expect(stderr).toMatch(/^perplexity is disabled .*INPUT_PERPLEXITY_KEY/m)
    expect(stderr).toMatch(/^local is disabled .*the file .*\.env/m)
    expect((await run('validate')).code).toBe(0)
    const { mcpServers } = parse(await readFile(at('shop', 'toolway.yaml'), 'utf8'))
    expect(mcpServers).toMatchObject({
      perplexity: { disabled: true },
      local: { disabled: true },
      figma: { disabled: true },
    })
    expect(mcpServers.context7).not.toHaveProperty('disabled')
  })

  test('--secrets env copies no secrets and names the variables', async () => {
    const { run, at } = await user({ 'home/.config/Claude/claude_desktop_config.json': files.claudeDesktop })
    const { stderr } = await run('init', '--secrets', 'env')
    expect(stderr).toContain('Set GITHUB_PERSONAL_ACCESS_TOKEN before you start')
    expect(await readFile(at('shop', 'toolway.yaml'), 'utf8')).toContain('${GITHUB_PERSONAL_ACCESS_TOKEN}')
    expect(existsSync(at('home', '.config', 'toolway'))).toBe(false)
  })

  test('--dry-run shows it and writes nothing; --from chooses', async () => {
    const { run, at } = await user(everybody)
    const { stdout } = await run('init', '--dry-run', '--from', 'zed', '--from', 'Claude Desktop')
    expect(stdout).toContain('mcpServers:\n')
    expect(stdout).not.toContain('Cursor')
    expect(stdout).not.toContain(token)
    expect(existsSync(at('shop', 'toolway.yaml'))).toBe(false)
    expect(existsSync(at('home', '.config', 'toolway'))).toBe(false)
    expect(await run('init', '--from', 'curser')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"cursor"'),
    })
    const nobody = await user()
    expect((await nobody.run('init', '--from', 'zed')).stderr).toMatch(/No file .*Zed/)
  })

  test('on a terminal it asks first', async () => {
    const { at, surroundings } = await user(everybody)
    const answered = (answer: string) =>
      toolway(['init'], {
        ...surroundings,
        columns: 200,
        stdin: Object.assign(Readable.from([answer]), { isTTY: true }),
      })
    expect((await answered('n\n')).code).toBe(1)
    expect(existsSync(at('shop', 'toolway.yaml'))).toBe(false)
    expect((await answered('y\n')).code).toBe(0)
    expect(existsSync(at('shop', 'toolway.yaml'))).toBe(true)
  })
})
