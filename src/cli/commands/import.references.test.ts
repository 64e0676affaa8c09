import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { toolway } from '../kit.fixture.ts'
import { user } from './clients.fixture.ts'

const json = (value: object) => JSON.stringify(value)

/** The servers in a configuration file. */
const written = async (path: string) => parse(await readFile(path, 'utf8')).mcpServers

const foreign = {
  url: 'https://x.test/mcp',
  headers: { A: '${exec:touch ran}', B: '${file:~/.ssh/id}', C: '${env:TEAM}', D: '${TEAM:-red}', E: '$${exec:x}' },
}
const literal = {
  A: '$${exec:touch ran}',
  B: '$${file:~/.ssh/id}',
  C: '${env:TEAM}',
  D: '${TEAM:-red}',
  E: '$${exec:x}',
}

test.each([
  ['import --yes .cursor/mcp.json', { 'shop/.cursor/mcp.json': json({ mcpServers: { a: foreign } }) }],
  ['import --yes .mcp.json', { 'shop/.mcp.json': json({ mcpServers: { a: foreign } }) }],
  ['import --yes other.json', { 'shop/other.json': json({ mcpServers: { a: foreign } }) }],
  ['import --yes other.json', { 'shop/other.json': json({ mcpServers: { a: foreign }, theme: 'dark' }) }],
  [
    'import --yes .vscode/mcp.json',
    { 'shop/.vscode/mcp.json': json({ servers: { a: { type: 'http', ...foreign } } }) },
  ],
  [
    'import --yes .gemini/settings.json',
    { 'shop/.gemini/settings.json': json({ mcpServers: { a: { ...foreign, url: undefined, httpUrl: foreign.url } } }) },
  ],
  ['init', { 'home/.cursor/mcp.json': json({ mcpServers: { a: foreign } }) }],
  ['init', { 'home/.claude.json': json({ projects: { '/x': { mcpServers: { a: foreign } } } }) }],
  [
    'connect cursor --replace --yes',
    { 'home/.cursor/mcp.json': json({ mcpServers: { a: foreign } }), 'shop/toolway.yaml': 'version: 1\n' },
  ],
])('B11: %s copies references that only Toolway resolves as plain text', async (command, files) => {
  const { run, at } = await user(files, { TEAM: 'blue' })
  const { code, stderr } = await run(...command.split(' '))
  expect(code).toBe(0)
  const servers = await written(at('shop', 'toolway.yaml'))
  expect(servers.a.headers).toEqual(literal)
  expect(stderr).toContain('a contains ${exec:')
  expect(stderr).toContain('a contains ${file:')
  const validated = JSON.parse((await run('validate', '--json')).stdout)
  expect(validated).toMatchObject({ valid: true })
  expect(existsSync(at('shop', 'ran'))).toBe(false)
})

test('B11: references stay where the program that owns the file resolves them', async () => {
  const headers = { A: '${exec:printf x}', B: '${file:~/.key}' }
  const { run, at } = await user({
    'home/.key': 'k',
    'home/.codeium/windsurf/mcp_config.json': json({
      mcpServers: { surf: { serverUrl: 'https://a.test/mcp', headers } },
    }),
    'shop/opencode.json': json({
      mcp: { open: { type: 'remote', url: 'https://b.test/mcp', headers: { A: headers.A, B: '{file:~/.key}' } } },
    }),
    'shop/mine/toolway.yaml': json({ mcpServers: { mine: { url: 'https://c.test/mcp', headers } } }),
    'shop/team.yaml': json({ version: 1, mcpServers: { team: { url: 'https://d.test/mcp', headers } } }),
  })
  for (const file of [
    at('home/.codeium/windsurf/mcp_config.json'),
    'opencode.json',
    'mine/toolway.yaml',
    'team.yaml',
  ]) {
    expect((await run('import', '--yes', file)).code).toBe(0)
  }
  const servers = await written(at('shop', 'toolway.yaml'))
  expect(Object.entries(servers).map(([name, server]) => [name, (server as typeof foreign).headers])).toEqual([
    ['surf', { A: '$${exec:printf x}', B: '${file:~/.key}' }],
    ['open', { A: '$${exec:printf x}', B: '${file:~/.key}' }],
    ['mine', headers],
    ['team', headers],
  ])
})

test('B6: import passes on values of this machine only if somebody agrees', async () => {
  const server = { url: 'https://x.test/mcp', headers: { A: '${HOME}', B: '${exec:x}' } }
  const { run, at } = await user({
    'shop/other.json': json({ mcpServers: { a: server } }),
    'shop/own.yaml': json({ version: 1, mcpServers: { b: { command: 'x', env: { K: '${file:~/k}' } } } }),
  })
  const named = { 'other.json': '${HOME} for mcpServers.a (https://x.test)', 'own.yaml': '${file:' }
  for (const [file, reference] of Object.entries(named)) {
    for (const more of [[], ['--json']]) {
      const { code, stdout, stderr } = await run('import', file, ...more)
      expect([code, existsSync(at('shop', 'toolway.yaml'))]).toEqual([2, false])
      expect(stdout + stderr).toContain(reference)
      expect(stdout + stderr).toContain('--yes')
    }
    expect((await run('import', file, '--dry-run')).code).toBe(0)
  }
  expect((await run('import', 'other.json', '--yes')).code).toBe(0)
  expect((await written(at('shop', 'toolway.yaml'))).a.headers).toEqual({ A: '${HOME}', B: '$${exec:x}' })
  // The same reference of the same server is not a question again.
  expect((await run('import', 'other.json')).code).toBe(0)
})

test('B11: a value that is invalid as plain text is not imported', async () => {
  const { run, at } = await user({
    'shop/other.json': json({
      mcpServers: { a: { url: 'https://x.test', timeout: '${exec:echo 5s}' }, b: { command: 'x' } },
    }),
  })
  await run('import', 'other.json')
  expect(Object.keys(await written(at('shop', 'toolway.yaml')))).toEqual(['b'])
  expect((await run('validate')).code).toBe(0)
})

const invalid = ['${config:x}', '${command:y}', '${workspaceFolder:root}', 'echo ${f%.txt}', '${A:-${B}}', 'a ${ b']

describe.each(invalid)('B11: %s is not a reference that Toolway can resolve', (text) => {
  const bad = { command: 'sh', args: ['-c', text] }
  const client = json({ mcpServers: { bad, off: { ...bad, disabled: true }, good: { command: 'x' } } })

  test.each([['init'], ['import', '../home/.cursor/mcp.json', '--yes']])(
    '%s skips the server and says so',
    async (...words) => {
      const { run, at } = await user({ 'home/.cursor/mcp.json': client })
      const { code, stderr } = await run(...words)
      expect(code).toBe(0)
      expect(stderr).toMatch(/mcpServers\.bad\.args\[1\]: .*; skipped$/m)
      expect(Object.keys(await written(at('shop', 'toolway.yaml')))).toEqual(['off', 'good'])
      expect((await run('validate')).code).toBe(0)
    },
  )

  test('connect --replace keeps the server in the client and says so', async () => {
    const { run, at } = await user({ 'home/.cursor/mcp.json': client, 'shop/toolway.yaml': 'version: 1\n' })
    const { code, stderr } = await run('connect', 'cursor', '--replace', '--yes')
    expect(code).toBe(0)
    expect(stderr).toMatch(/^bad stays in Cursor: mcpServers\.bad\.args\[1\]: /m)
    expect(Object.keys(await written(at('home', '.cursor', 'mcp.json')))).toEqual(['bad', 'toolway'])
    expect((await run('validate')).code).toBe(0)
  })
})

test('B11: nothing is written if the configuration could not be loaded with the servers', async () => {
  const server = { command: 'x', env: { API_TOKEN: 's3cr3t-one' }, envFile: '.env' }
  const { run, at } = await user({
    'home/.cursor/mcp.json': json({ mcpServers: { a: server } }),
    'home/.env/file': '',
  })
  for (const words of [['init'], ['import', '../home/.cursor/mcp.json']]) {
    const { code, stderr } = await run(...words)
    expect(code).toBe(2)
    expect(stderr).toContain('mcpServers.a.envFile')
    expect(stderr).not.toContain('s3cr3t')
    expect(existsSync(at('shop', 'toolway.yaml'))).toBe(false)
    expect(existsSync(at('home', '.config'))).toBe(false)
  }
})

test('B11: a server whose envFile does not exist is imported disabled, also if its path contains a variable', async () => {
  const mcpServers = { a: { command: 'x', envFile: '${HOME}/missing.env' } }
  const { run, at } = await user({ 'shop/other.json': json({ mcpServers }) })
  await run('import', '--yes', 'other.json')
  expect((await written(at('shop', 'toolway.yaml'))).a).toMatchObject({ disabled: true })
  expect((await run('validate')).code).toBe(0)
})

test.each(['exec:touch ran', 'file:/etc/passwd', 'A}${exec:touch ran'])(
  'B11: Codex names variables: %s is not one',
  async (name) => {
    const text = (value: string) => JSON.stringify(value)
    const { run, at } = await user({
      'shop/codex.toml': [
        `[mcp_servers.a]\nurl = "https://x.test"\nbearer_token_env_var = ${text(name)}`,
        `[mcp_servers.b]\nurl = "https://x.test"\nenv_http_headers = { X = ${text(name)} }`,
        `[mcp_servers.c]\ncommand = "x"\nenv_vars = [${text(name)}]`,
        '[mcp_servers.d]\nurl = "https://y.test"\nbearer_token_env_var = "TOKEN"\n',
      ].join('\n'),
    })
    const { stdout } = await run('import', 'codex.toml', '--json', '--yes')
    expect(JSON.parse(stdout)).toMatchObject({
      added: ['d'],
      problems: [
        { key: 'mcp_servers.a.bearer_token_env_var' },
        { key: 'mcp_servers.b.env_http_headers.X' },
        { key: 'mcp_servers.c.env_vars[0]' },
      ],
    })
    expect((await written(at('shop', 'toolway.yaml'))).d.auth).toEqual({ type: 'bearer', token: '${TOKEN}' })
  },
)

test('B11: a folder whose name looks like a reference is plain text', async () => {
  const { at, surroundings } = await user()
  const cwd = at('shop', '${exec:touch ran}')
  await mkdir(join(cwd, '.cursor'), { recursive: true })
  const server = { command: 'node', args: ['server.js'] }
  await writeFile(join(cwd, '.cursor', 'mcp.json'), json({ mcpServers: { a: server, b: { ...server, cwd: 'sub' } } }))
  await writeFile(join(cwd, 'other.json'), json({ mcpServers: { c: { ...server, envFile: '.env' } } }))
  await writeFile(join(cwd, '.env'), '')
  const run = (...words: string[]) => toolway(words, { ...surroundings, cwd })
  const into = at('shop', 'toolway.yaml')
  for (const file of ['.cursor/mcp.json', 'other.json']) {
    expect((await run('import', file, '--yes', '--into', into)).code).toBe(0)
  }
  const escaped = cwd.replace('${', () => '$${')
  expect(await written(into)).toEqual({
    a: { ...server, cwd: escaped },
    b: { ...server, cwd: `${escaped}/sub` },
    c: { ...server, envFile: `${escaped}/.env`, cwd: escaped },
  })
  expect((await run('add', 'd', '--config', into, 'node', 'server.js')).code).toBe(0)
  expect((await written(into)).d).toEqual({ ...server, cwd: escaped })
})
