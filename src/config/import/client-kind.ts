import { basename, dirname } from 'node:path'

/** Clients whose files Toolway can read and edit. */
export const clientLabels = {
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
} as const

export type ClientKind = keyof typeof clientLabels

export const clientKinds = Object.keys(clientLabels) as ClientKind[]

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

export function kindOf(path: string): ClientKind | undefined {
  const place = `/${path.replaceAll('\\', '/')}`
  return names.find(([pattern]) => pattern.test(place))?.[1]
}

/** Folders inside a project that contain client files. */
const inside = ['.vscode', '.cursor', '.codex', '.gemini', '.zed']

/** The working folder for servers in a client's file, and the base for relative paths in that file. */
export function folderOf(path: string): string {
  const folder = dirname(path)
  return inside.includes(basename(folder)) ? dirname(folder) : folder
}

/** The editor's workspace folder; undefined for user-level files, because only the editor knows what is open. */
export function workspaceOf(path: string, home: string): string | undefined {
  const folder = folderOf(path)
  return folder === home || /[/\\]User[/\\](?:profiles[/\\][^/\\]+[/\\])?(?:mcp|settings)\.json$/.test(path)
    ? undefined
    : folder
}
