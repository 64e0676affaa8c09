import { basename, dirname } from 'node:path'

/** The programs whose files we read and can point at ourselves. */
export const clientKinds = [
  'claude-code',
  'claude-desktop',
  'cursor',
  'vscode',
  'codex',
  'opencode',
  'gemini',
  'windsurf',
  'zed',
  'cline',
] as const

export type ClientKind = (typeof clientKinds)[number]

/** What people call them. */
export const clientLabels: Readonly<Record<ClientKind, string>> = {
  'claude-code': 'Claude Code',
  'claude-desktop': 'Claude Desktop',
  cursor: 'Cursor',
  vscode: 'VS Code',
  codex: 'Codex',
  opencode: 'OpenCode',
  gemini: 'Gemini CLI',
  windsurf: 'Windsurf',
  zed: 'Zed',
  cline: 'Cline',
}

/** A name that nobody else gives to a file. */
const names: readonly (readonly [RegExp, ClientKind])[] = [
  [/\/\.mcp\.json$|\/\.claude\.json$/, 'claude-code'],
  [/\/claude_desktop_config\.json$/, 'claude-desktop'],
  [/\/\.cursor\/mcp\.json$/, 'cursor'],
  [/\/\.vscode\/mcp\.json$|\/(?:Code|Code - Insiders|VSCodium)\/User\/(?:profiles\/[^/]+\/)?mcp\.json$/, 'vscode'],
  [/\/\.codex\/config\.toml$/, 'codex'],
  [/\/opencode\.jsonc?$/, 'opencode'],
  [/\/\.gemini\/settings\.json$/, 'gemini'],
  [/\/mcp_config\.json$/, 'windsurf'],
  [/\/\.?zed\/settings\.json$/i, 'zed'],
  [/\/cline_mcp_settings\.json$/, 'cline'],
]

/** Whose file it is, by its name and folder. */
export function kindOf(path: string): ClientKind | undefined {
  const place = `/${path.replaceAll('\\', '/')}`
  return names.find(([pattern]) => pattern.test(place))?.[1]
}

/** Folders in which clients keep their files inside of the folder that they work in. */
const inside = ['.vscode', '.cursor', '.codex', '.gemini', '.zed']

/** The folder that relative paths in a client's file mean, and that its servers start in. */
export function folderOf(path: string): string {
  const folder = dirname(path)
  return inside.includes(basename(folder)) ? dirname(folder) : folder
}

/** What an editor calls its workspace. A file of the user belongs to none: which one is meant, only the editor knows. */
export function workspaceOf(path: string, home: string): string | undefined {
  const folder = folderOf(path)
  return folder === home || /[/\\]User[/\\](?:profiles[/\\][^/\\]+[/\\])?mcp\.json$/.test(path) ? undefined : folder
}
