import { expect, test } from 'vitest'
import { clientFiles, clientKinds, kindOf } from './client-kind.ts'

const paths = (platform: NodeJS.Platform, env: Record<string, string> = {}, cwd = '/shop') =>
  Object.groupBy(clientFiles({ env: { HOME: '/home/me', ...env }, cwd, platform }), ({ client }) => client)

const first = (platform: NodeJS.Platform, env: Record<string, string> = {}) => {
  const found = paths(platform, env)
  return Object.fromEntries(clientKinds.map((kind) => [kind, found[kind]?.[0]?.path]))
}

test('B11: every client is looked for where it keeps its file on Linux', () => {
  expect(first('linux')).toEqual({
    'claude-code': '/home/me/.claude.json',
    'claude-desktop': '/home/me/.config/Claude/claude_desktop_config.json',
    cursor: '/home/me/.cursor/mcp.json',
    vscode: '/home/me/.config/Code/User/mcp.json',
    codex: '/home/me/.codex/config.toml',
    opencode: '/home/me/.config/opencode/opencode.json',
    gemini: '/home/me/.gemini/settings.json',
    windsurf: '/home/me/.codeium/windsurf/mcp_config.json',
    zed: '/home/me/.config/zed/settings.json',
    cline: '/home/me/.cline/data/settings/cline_mcp_settings.json',
  })
})

test('B11: on macOS and Windows some are elsewhere', () => {
  expect(first('darwin')).toMatchObject({
    'claude-desktop': '/home/me/Library/Application Support/Claude/claude_desktop_config.json',
    vscode: '/home/me/Library/Application Support/Code/User/mcp.json',
    zed: '/home/me/.config/zed/settings.json',
    opencode: '/home/me/.config/opencode/opencode.json',
  })
  expect(first('win32', { APPDATA: '/roaming' })).toMatchObject({
    'claude-desktop': '/roaming/Claude/claude_desktop_config.json',
    vscode: '/roaming/Code/User/mcp.json',
    zed: '/roaming/Zed/settings.json',
    codex: '/home/me/.codex/config.toml',
  })
})

test('B11: variables move files, and the project has its own', () => {
  expect(
    first('linux', {
      XDG_CONFIG_HOME: '/xdg',
      CODEX_HOME: '/codex',
      CLAUDE_CONFIG_DIR: '/claude',
      CLINE_MCP_SETTINGS_PATH: '/cline.json',
      OPENCODE_CONFIG: '/open.json',
    }),
  ).toMatchObject({
    vscode: '/xdg/Code/User/mcp.json',
    codex: '/codex/config.toml',
    'claude-code': '/claude/.claude.json',
    cline: '/cline.json',
    opencode: '/open.json',
  })
  const project = Object.values(paths('linux')).flatMap((files) =>
    (files ?? []).filter(({ scope }) => scope === 'project'),
  )
  expect(project.map(({ path }) => path)).toEqual([
    '/shop/.mcp.json',
    '/shop/.cursor/mcp.json',
    '/shop/.vscode/mcp.json',
    '/shop/.codex/config.toml',
    '/shop/opencode.json',
    '/shop/opencode.jsonc',
    '/shop/.gemini/settings.json',
    '/shop/.zed/settings.json',
  ])
})

test('B11: at home, the file of the project and that of the user are one; every file is known by its place', () => {
  const all = clientFiles({ env: { HOME: '/home/me' }, cwd: '/home/me', platform: 'linux' })
  expect(new Set(all.map(({ path }) => path)).size).toBe(all.length)
  expect(all.find(({ path }) => path === '/home/me/.cursor/mcp.json')?.scope).toBe('user')
  for (const { path, client } of all) expect(kindOf(path), path).toBe(client)
})
