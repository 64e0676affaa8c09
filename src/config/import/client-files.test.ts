import { chmod } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parseDocument } from '../parse/document.ts'
import { type Project, project } from '../project.fixture.ts'
import * as files from './client-files.fixture.ts'
import { translate } from './translate.ts'

/** What one file means, read from where its client keeps it and from a place that says nothing. */
async function read(path: string, text: string, env = {}, more: Readonly<Record<string, string>> = {}) {
  const place = await project({ [path]: text, ...more })
  return { place, ...(await place.load({ paths: [path], env })) }
}

const shown = ({ folder }: Project, lines: readonly string[]) => lines.map((line) => line.replaceAll(folder, ''))

describe('B11: the files of other clients are configurations as they stand', () => {
  test('Claude Desktop, with its other settings', async () => {
    const { config, notes, warnings, place } = await read('home/claude_desktop_config.json', files.claudeDesktop)
    expect(Object.keys(config.mcpServers)).toEqual(['filesystem', 'github'])
    expect(config.mcpServers.github).toMatchObject({ transport: 'stdio', command: 'docker' })
    expect(warnings).toEqual([])
    expect(shown(place, notes)).toEqual([
      "/home/claude_desktop_config.json: read as Claude Desktop's file: 2 servers",
      '/home/claude_desktop_config.json: 2 settings from Claude Desktop ignored',
    ])
  })

  test('Claude Code, with the servers of its projects', async () => {
    const { config, notes, warnings, files: read_, place } = await read('home/.claude.json', files.claudeCode)
    expect(read_[0]?.dialect).toBe('claude-code')
    expect(config.mcpServers).toMatchObject({
      sentry: { transport: 'http', timeout: 600_000 },
      memory: { command: 'npx', cwd: '/projects/shop' },
      local: { args: ['server.py'], cwd: '/projects/shop', disabled: true },
      'local-blog': { args: ['server.py'], cwd: '/projects/blog', disabled: false },
      internal: { transport: 'http' },
    })
    expect(Object.keys(config.mcpServers)).toHaveLength(5)
    expect(warnings).toEqual([expect.stringMatching(/^mcpServers\.internal\.headersHelper has no effect/)])
    expect(shown(place, notes).join('\n')).toMatch(/\/projects\/blog has .*local, .* local-blog$/m)
  })

  test('Cursor, with its variables and an environment file', async () => {
    const env = { HOME: '/home/me', NOTES_KEY: 'k', DOCS_TOKEN: 't' }
    const { config, warnings, place } = await read('shop/.cursor/mcp.json', files.cursor, env, {
      'shop/.env': '# secrets\nKEY=not this one\nOTHER="two words ${X}"\n',
    })
    expect(config.mcpServers).toMatchObject({
      files: { args: ['-y', '@modelcontextprotocol/server-filesystem', place.at('shop')], cwd: place.at('shop') },
      notes: { args: ['/home/me/notes/server.py'], env: { KEY: 'k', OTHER: 'two words ${X}' } },
      docs: {
        headers: { Authorization: 'Bearer t' },
        auth: { type: 'oauth', clientId: 'abc', clientSecret: expect.any(String), scopes: ['read'] },
      },
    })
    expect(warnings).toEqual([])
  })

  test('VS Code, whose inputs come from variables', async () => {
    const env = { INPUT_PERPLEXITY_KEY: 'k' }
    const { config, notes, warnings, place } = await read('shop/.vscode/mcp.json', files.vscode, env, {
      'shop/.env': 'A=b\n',
    })
    expect(config.mcpServers).toMatchObject({
      perplexity: {
        args: ['-y', 'server-perplexity-ask', '--region=eu'],
        env: { PERPLEXITY_API_KEY: 'k', ROOT: place.at('shop', 'src') },
        cwd: place.at('shop'),
      },
      local: { env: { A: 'b' }, cwd: place.at('shop') },
      github: { transport: 'http', url: 'https://api.githubcopilot.com/mcp/' },
    })
    expect(warnings).toEqual([expect.stringMatching(/^mcpServers\.local\.sandboxEnabled has no effect/)])
    expect(notes.join('\n')).toContain('prompt perplexity-key is read from the variable INPUT_PERPLEXITY_KEY')
  })

  test('VS Code: a missing input is an error that names the server, the field and the variable', async () => {
    const { problems } = await project({ '.vscode/mcp.json': files.vscode, '.env': '' })
    expect(await problems({ paths: ['.vscode/mcp.json'] })).toMatchObject([
      { key: 'mcpServers.perplexity.env.PERPLEXITY_API_KEY', message: expect.stringContaining('INPUT_PERPLEXITY_KEY') },
    ])
  })

  test('Codex, in seconds, with what it takes from the environment', async () => {
    const env = { LOCAL_TOKEN: 'a', OTHER_TOKEN: 'b', FIGMA_OAUTH_TOKEN: 'c', FIGMA_TEAM: 'd', HOME: '/home/me' }
    const { config, warnings, place } = await read('home/.codex/config.toml', files.codex, env)
    expect(config.mcpServers).toMatchObject({
      context7: {
        env: { LOCAL_TOKEN: 'a', OTHER_TOKEN: 'b', LEVEL: 'debug' },
        timeout: 45_500,
        startTimeout: 20_000,
        tools: { include: ['resolve-library-id', 'get-library-docs'], exclude: ['noisy'] },
        cwd: place.at('home'),
      },
      shell: { args: ['-lc', 'exec server --home ${HOME}'], disabled: true },
      figma: {
        transport: 'http',
        auth: { type: 'bearer', token: 'c' },
        headers: { 'X-Figma-Region': 'us-east-1', 'X-Team': 'd' },
      },
    })
    expect(warnings.map((warning) => warning.split(' ', 1)[0])).toEqual([
      'mcpServers.figma.tools',
      'mcpServers.figma.default_tools_approval_mode',
    ])
  })

  test("V4: Codex's startup_timeout_sec is startTimeout and its tool_timeout_sec is timeout; seconds win over milliseconds", async () => {
    const written = `[mcp_servers.a]
command = "x"
startup_timeout_sec = 7.5
startup_timeout_ms = 100
tool_timeout_sec = 3
[mcp_servers.b]
url = "https://b.example/mcp"
startup_timeout_ms = 1500
[mcp_servers.c]
command = "x"
`
    const { config, warnings, notes } = await read('home/.codex/config.toml', written, {})
    expect(config.mcpServers).toMatchObject({
      a: { startTimeout: 7_500, timeout: 3_000 },
      b: { startTimeout: 1_500 },
    })
    const { a, b, c } = config.mcpServers
    expect([b?.timeout, c?.timeout, c?.startTimeout]).toEqual([undefined, undefined, undefined])
    expect(a).not.toHaveProperty('startup_timeout_sec')
    expect([...warnings, ...notes].join()).not.toMatch(/timeout/)
  })

  test('OpenCode, in milliseconds, with variables and files in braces', async () => {
    const env = { EVERYTHING_KEY: 'k' }
    const { config, warnings } = await read('opencode.jsonc', files.opencode, env)
    expect(config.mcpServers).toMatchObject({
      everything: {
        command: 'npx',
        args: ['-y', '@modelcontextprotocol/server-everything'],
        env: { KEY: 'k', SHELL_TEXT: '${NOT_A_VARIABLE}' },
        timeout: 8000,
        disabled: false,
      },
      jira: { url: 'https://jira.example.com/mcp', disabled: true, auth: undefined },
    })
    expect(warnings).toEqual([expect.stringMatching(/^the server company is ignored: /)])
  })

  test('OpenCode, in its newer form', async () => {
    const { config } = await read('opencode.json', files.opencodeNewer)
    expect(config.mcpServers).toMatchObject({
      everything: { command: 'npx', args: ['-y', 'server-everything'], disabled: true },
      docs: { auth: { type: 'oauth', clientId: 'abc', scopes: ['a', 'b'] } },
    })
  })

  test('Gemini CLI, in milliseconds, with its lists of servers', async () => {
    const env = { DB_CONNECTION_STRING: 'db', EXTERNAL_API_KEY: 'k', API_TOKEN: 't' }
    const { config, warnings, place } = await read('shop/.gemini/settings.json', files.gemini, env)
    expect(config.mcpServers).toMatchObject({
      python: {
        env: { DATABASE_URL: 'db', API_KEY: 'k' },
        cwd: place.at('shop', 'mcp-servers', 'python'),
        timeout: 15_000,
      },
      http: {
        transport: 'http',
        headers: { Authorization: 'Bearer t' },
        tools: { include: ['safe_tool'], exclude: ['dangerous_tool'] },
        auth: { type: 'oauth', scopes: ['https://example.com/read'] },
        disabled: false,
      },
      extra: { transport: 'sse', disabled: true },
      unlisted: { disabled: true },
    })
    expect(warnings.map((warning) => warning.split(' ', 1)[0])).toEqual([
      'mcpServers.python.trust',
      'mcpServers.http.authProviderType',
    ])
  })

  test('Windsurf, with its spelling of url and a secret in a file', async () => {
    const { load, at } = await project({
      'home/.codeium/windsurf/mcp_config.json': files.windsurf,
      'home/.secrets/github': 'a secret\n',
    })
    await chmod(at('home', '.secrets', 'github'), 0o600)
    const { config, filesToWatch } = await load({
      paths: ['home/.codeium/windsurf/mcp_config.json'],
      env: { AUTH_TOKEN: 't' },
    })
    expect(config.mcpServers).toMatchObject({
      'remote-http-mcp': {
        transport: 'http',
        headers: { API_KEY: 'Bearer t' },
        tools: { exclude: ['delete_everything'] },
      },
      'github-mcp-server': { env: { GITHUB_PERSONAL_ACCESS_TOKEN: 'a secret' } },
    })
    expect(filesToWatch).toContain(at('home', '.secrets', 'github'))
  })

  test('Zed, in seconds, in both forms; what an extension runs is left out and said', async () => {
    const { config, warnings } = await read('home/.config/zed/settings.json', files.zed)
    expect(config.mcpServers).toMatchObject({
      local: { command: 'npx', timeout: 120_000, disabled: false },
      older: { command: 'uvx', args: ['mcp-server-git'], env: { A: 'b' } },
      remote: { headers: { Authorization: 'Bearer abc' }, disabled: true },
    })
    expect(Object.keys(config.mcpServers)).toHaveLength(3)
    expect(warnings).toEqual([expect.stringMatching(/^the server from-extension is ignored: .*extension/)])
  })

  test('Cline, in seconds, whose names are addresses', async () => {
    const { config, notes, warnings } = await read('cline_mcp_settings.json', files.cline)
    expect(config.mcpServers).toMatchObject({
      github: { timeout: 60_000, disabled: false },
      remote: { transport: 'http', disabled: true },
    })
    expect(notes.join('\n')).toContain(
      'the server github.com/modelcontextprotocol/servers/tree/main/src/github was renamed to github',
    )
    expect(warnings).toHaveLength(2)
  })

  test.each([
    ['codex.toml', files.codex, 'codex'],
    ['zed.json', files.zed, 'zed'],
    ['gemini.json', files.gemini, 'gemini'],
    ['vscode.json', files.vscode, 'vscode'],
    ['open.json', files.opencode, 'opencode'],
    ['open.json', files.opencodeNewer, 'opencode'],
    ['claude.json', files.claudeCode, 'claude-code'],
    ['cursor.json', files.cursor, 'mcpServers'],
    ['windsurf.json', files.windsurf, 'mcpServers'],
  ])('a copy under the name %s is known by what it holds', async (path, text, dialect) => {
    const { tree } = await parseDocument({ path, text })
    expect(translate(tree, '').dialect).toBe(dialect)
  })

  test.each([
    ['.codex/config.toml', 'model = "gpt-5-codex"\n'],
    ['.claude.json', '{"numStartups": 1, "projects": {"/a": {"history": []}}}'],
    ['claude_desktop_config.json', '{"preferences": {}}'],
    ['.gemini/settings.json', '{"theme": "x", "agents": {"overrides": {}}}'],
    ['zed/settings.json', '{"theme": "x"}'],
    ['opencode.json', '{"theme": "x"}'],
    ['.vscode/mcp.json', '{}'],
    ['.cursor/mcp.json', ''],
  ])('%s without any server is valid', async (path, text) => {
    const { load } = await project({ [path]: text })
    const { config, warnings } = await load({ paths: [path] })
    expect({ servers: config.mcpServers, warnings }).toEqual({ servers: {}, warnings: [] })
  })
})

describe("B11: nothing of a client's file is dropped silently", () => {
  test("an unknown key is a warning in a client's file, and a near miss an error", async () => {
    const { load, problems } = await project({
      '.cursor/mcp.json': '{"mcpServers": {"a": {"command": "x", "flavour": 1}}}',
      'cline_mcp_settings.json': '{"mcpServers": {"a": {"command": "x", "arg": ["y"]}}}',
    })
    expect((await load({ paths: ['.cursor/mcp.json'] })).warnings).toEqual([
      expect.stringMatching(/^mcpServers\.a\.flavour is ignored: .*Cursor$/),
    ])
    expect(await problems({ paths: ['cline_mcp_settings.json'] })).toMatchObject([{ suggestion: 'args' }])
  })

  test("B11: Copilot's list of tools selects tools; * means all", async () => {
    const tools = { all: ['*'], some: ['read', 'find'], none: [] as string[] }
    const servers = Object.entries(tools).map(([name, list]) => [name, { command: 'x', tools: list }])
    const { load } = await project({
      '.vscode/mcp.json': JSON.stringify({ servers: Object.fromEntries(servers) }),
      'mcp-config.json': JSON.stringify({ mcpServers: Object.fromEntries(servers) }),
    })
    for (const path of ['.vscode/mcp.json', 'mcp-config.json']) {
      const { config, warnings } = await load({ paths: [path] })
      expect(config.mcpServers).toMatchObject({
        all: { tools: { include: ['*'], exclude: [] } },
        some: { tools: { include: ['read', 'find'], exclude: [] } },
        none: { tools: { exclude: ['*'] } },
      })
      expect(warnings).toEqual([])
    }
  })

  test('B11: an invalid value of a key that a server can do without is ignored; of one that restricts it, an error', async () => {
    const server = { command: 'x', priority: 'top', description: { en: 'x' }, idle: true, session: '${S:-caller}' }
    const { load, problems } = await project({
      '.cursor/mcp.json': JSON.stringify({ mcpServers: { a: server } }),
      'other/.cursor/mcp.json': JSON.stringify({ mcpServers: { a: { command: 'x', readOnly: 'certainly' } } }),
      'toolway.json': JSON.stringify({ mcpServers: { a: server } }),
    })
    const { config, warnings } = await load({ paths: ['.cursor/mcp.json'] })
    expect(config.mcpServers.a).toMatchObject({ command: 'x', session: 'caller' })
    expect(warnings).toEqual([
      expect.stringMatching(/^mcpServers\.a\.priority is ignored: /),
      expect.stringMatching(/^mcpServers\.a\.description is ignored: /),
      expect.stringMatching(/^mcpServers\.a\.idle is ignored: /),
    ])
    expect(await problems({ paths: ['other/.cursor/mcp.json'] })).toMatchObject([{ key: 'mcpServers.a.readOnly' }])
    expect(await problems({ paths: ['toolway.json'] })).toHaveLength(3)
  })

  test('V4: a number as timeout gets the unit that the client documents, or else is ignored with a warning', async () => {
    const text = JSON.stringify({
      mcpServers: { a: { command: 'x', timeout: 60 }, b: { command: 'y', timeout: '2m' } },
    })
    const units = { '.roo/mcp.json': 60_000, '.amazonq/mcp.json': 60 }
    const unknown = ['.cursor/mcp.json', 'mcp.json']
    const { load } = await project(Object.fromEntries([...Object.keys(units), ...unknown].map((path) => [path, text])))
    for (const [path, timeout] of Object.entries(units)) {
      const { config, warnings } = await load({ paths: [path] })
      expect([config.mcpServers.a?.timeout, warnings]).toEqual([timeout, []])
    }
    for (const path of unknown) {
      const { config, warnings } = await load({ paths: [path] })
      expect([config.mcpServers.a?.timeout, config.mcpServers.b?.timeout]).toEqual([undefined, 120_000])
      expect(warnings).toEqual([expect.stringMatching(/^mcpServers\.a\.timeout is ignored: .*unit/)])
    }
  })

  test("Toolway's own sections in such a file are applied, and it counts as Toolway's", async () => {
    const { load } = await project({
      '.mcp.json': '{"mcpServers": {"a": {"command": "x"}}, "agents": {"b": {"deny": {"servers": ["*"]}}}}',
    })
    const { config, files: read_ } = await load()
    expect(read_[0]?.dialect).toBe('toolway')
    expect(config.agents.b?.deny.servers).toEqual(['*'])
  })

  test("B11: a project's .mcp.json with settings that Toolway does not have is a client's file", async () => {
    const text = '{"_comment": "x", "mcpServers": {"a": {"command": "x", "_note": "y"}}}'
    const { load, problems } = await project({
      '.mcp.json': text,
      'typo/.mcp.json': text.replace('_comment', 'agent'),
    })
    const { config, files: read_, warnings } = await load()
    expect(read_[0]?.dialect).toBe('mcpServers')
    expect(config.mcpServers.a).toMatchObject({ command: 'x' })
    expect(warnings).toEqual([expect.stringMatching(/^mcpServers\.a\._note is ignored/)])
    expect(await problems({ paths: ['typo/.mcp.json'] })).toContainEqual(
      expect.objectContaining({ suggestion: 'agents' }),
    )
  })

  test('a server that rules refer to keeps its name', async () => {
    const { problems } = await project({
      '.mcp.json': '{"mcpServers": {"my server": {"command": "x"}}}',
      '.mcp-gateway-rules.json': '{"agents": {"a": {"deny": {"servers": ["my server"]}}}}',
    })
    expect(await problems()).toMatchObject([{ suggestion: 'my-server' }])
  })

  const namesFor = async (names: readonly string[]): Promise<string[]> => {
    const mcpServers = Object.fromEntries(names.map((name) => [name, { command: 'x' }]))
    const { load } = await project({ '.cursor/mcp.json': JSON.stringify({ mcpServers }) })
    return Object.keys((await load({ paths: ['.cursor/mcp.json'] })).config.mcpServers)
  }

  test('B1: an invalid name becomes a readable one, with a hash if another server could be meant', async () => {
    expect(await namesFor(['native', 'a b', 'x/ok', '.c', 'x'.repeat(65)])).toEqual([
      ...['native-server', 'a-b', 'ok', 'c', 'x'.repeat(64)],
    ])
    const hash = (start: string) => expect.stringMatching(new RegExp(`^${start}-[0-9a-f]{8}$`))
    expect(await namesFor(['a b', 'a/b c', 'a:b', 'a-b', 'x/ok', 'ok', '日本', '中国', '', ' '])).toEqual([
      ...[hash('a-b'), 'a-b-c', hash('a-b'), 'a-b', hash('ok'), 'ok'],
      ...[hash('server'), hash('server'), hash('server'), hash('server')],
    ])
    const long = ['x'.repeat(65), 'x'.repeat(66)]
    expect(await namesFor(long)).toEqual([hash('x{55}'), hash('x{55}')])
  })

  test('B1, G6: of two servers that could have one name, neither gets it, so that rules do not move from one to the other', async () => {
    const names = await namesFor(['a b', 'a:b'])
    expect(new Set(names).size).toBe(2)
    expect(names).not.toContain('a-b')
    expect(await namesFor(['日本', '中国'])).toEqual([...(await namesFor(['日本'])), ...(await namesFor(['中国']))])
  })

  test('B6: a renamed server is not merged with a server in another file', async () => {
    const { load } = await project({
      'f1.json':
        '{"mcpServers": {"my tools": {"command": "a", "env": {"BANK_TOKEN": "secret"}}, "日本": {"command": "b"}}}',
      'f2.json': '{"mcpServers": {"my-tools": {"command": "c"}, "中国": {"command": "d"}}}',
    })
    const { config } = await load({ paths: ['f1.json', 'f2.json'] })
    expect(Object.keys(config.mcpServers)).toHaveLength(4)
    expect(config.mcpServers['my-tools']).toMatchObject({ command: 'c', env: {} })
  })
})
