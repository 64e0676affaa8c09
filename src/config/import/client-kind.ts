import { basename, dirname, join } from 'node:path'
import { configHome, homeOf } from '../../core/home.ts'
import type { EnvVars } from '../interpolate.ts'

/** The parts of the environment that determine the paths of client files. */
export interface HostEnvironment {
  readonly env: EnvVars
  readonly cwd: string
  readonly platform: NodeJS.Platform
}

interface HostFolders extends HostEnvironment {
  readonly home: string
  readonly config: string
  /** Where applications keep their settings. On Linux, it follows the XDG specification. */
  readonly settings: string
  /** The user folders of VS Code and the editors that are built from it. */
  readonly editors: readonly string[]
}

interface ClientProgram {
  readonly label: string
  readonly paths: RegExp
  /** Its user-level files. If there are several possible paths, the most likely one comes first. */
  userFiles(folders: HostFolders): readonly string[]
  readonly projectFiles?: readonly string[]
}

const clineName = 'cline_mcp_settings.json'

/** Clients whose files Toolway can read and edit. */
const programs = {
  'claude-code': {
    label: 'Claude Code',
    paths: /\/\.mcp\.json$|\/\.claude\.json$/,
    userFiles: ({ env, home }) => [join(env.CLAUDE_CONFIG_DIR || home, '.claude.json')],
    projectFiles: ['.mcp.json'],
  },
  'claude-desktop': {
    label: 'Claude Desktop',
    paths: /\/claude_desktop_config\.json$/,
    userFiles: ({ settings }) => [join(settings, 'Claude', 'claude_desktop_config.json')],
  },
  cursor: {
    label: 'Cursor',
    paths: /\/\.cursor\/mcp\.json$/,
    userFiles: ({ home }) => [join(home, '.cursor', 'mcp.json')],
    projectFiles: [join('.cursor', 'mcp.json')],
  },
  vscode: {
    label: 'VS Code',
    paths: /\/\.vscode\/mcp\.json$|\/(?:Code|Code - Insiders|VSCodium)\/User\/(?:profiles\/[^/]+\/)?mcp\.json$/,
    userFiles: ({ editors }) => editors.map((editor) => join(editor, 'mcp.json')),
    projectFiles: [join('.vscode', 'mcp.json')],
  },
  codex: {
    label: 'Codex',
    paths: /\/\.codex\/config\.toml$/,
    userFiles: ({ env, home }) => [join(env.CODEX_HOME || join(home, '.codex'), 'config.toml')],
    projectFiles: [join('.codex', 'config.toml')],
  },
  opencode: {
    label: 'OpenCode',
    paths: /\/opencode\.jsonc?$/,
    userFiles: ({ env, config }) => [
      ...(env.OPENCODE_CONFIG ? [env.OPENCODE_CONFIG] : []),
      ...['opencode.json', 'opencode.jsonc'].map((name) => join(config, 'opencode', name)),
    ],
    projectFiles: ['opencode.json', 'opencode.jsonc'],
  },
  gemini: {
    label: 'Gemini CLI',
    paths: /\/\.gemini\/settings\.json$/,
    userFiles: ({ home }) => [join(home, '.gemini', 'settings.json')],
    projectFiles: [join('.gemini', 'settings.json')],
  },
  windsurf: {
    label: 'Windsurf',
    paths: /\/mcp_config\.json$/,
    userFiles: ({ home }) => [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
  },
  zed: {
    label: 'Zed',
    paths: /\/\.?zed\/settings\.json$/i,
    userFiles: ({ platform, settings, config }) => [
      platform === 'win32' ? join(settings, 'Zed', 'settings.json') : join(config, 'zed', 'settings.json'),
    ],
    projectFiles: [join('.zed', 'settings.json')],
  },
  cline: {
    label: 'Cline',
    paths: /\/cline_mcp_settings\.json$/,
    userFiles: ({ env, home, editors }) => [
      env.CLINE_MCP_SETTINGS_PATH || join(home, '.cline', 'data', 'settings', clineName),
      ...editors.map((editor) => join(editor, 'globalStorage', 'saoudrizwan.claude-dev', 'settings', clineName)),
    ],
  },
} as const satisfies Readonly<Record<string, ClientProgram>>

export type ClientKind = keyof typeof programs

const entries = Object.entries<ClientProgram>(programs) as [ClientKind, ClientProgram][]

export const clientKinds: readonly ClientKind[] = entries.map(([kind]) => kind)

export const clientLabels = Object.fromEntries(entries.map(([kind, { label }]) => [kind, label])) as Readonly<
  Record<ClientKind, string>
>

export function kindOf(path: string): ClientKind | undefined {
  const place = `/${path.replaceAll('\\', '/')}`
  return entries.find(([, { paths }]) => paths.test(place))?.[0]
}

export interface ClientFile {
  readonly client: ClientKind
  readonly path: string
  readonly scope: 'user' | 'project'
}

function foldersOf(host: HostEnvironment): HostFolders {
  const { env, platform } = host
  const home = homeOf(env)
  const config = configHome(env)
  const settings =
    platform === 'darwin'
      ? join(home, 'Library', 'Application Support')
      : platform === 'win32'
        ? env.APPDATA || join(home, 'AppData', 'Roaming')
        : config
  const editors = ['Code', 'Code - Insiders', 'VSCodium'].map((name) => join(settings, name, 'User'))
  return { ...host, home, config, settings, editors }
}

/** All possible paths of client files, whether the files exist or not. */
export function clientFiles(host: HostEnvironment, clients = clientKinds): ClientFile[] {
  const folders = foldersOf(host)
  const all = clients.flatMap((client): ClientFile[] => {
    const { userFiles, projectFiles = [] }: ClientProgram = programs[client]
    return [
      ...userFiles(folders).map((path) => ({ client, path, scope: 'user' as const })),
      ...projectFiles.map((name) => ({ client, path: join(host.cwd, name), scope: 'project' as const })),
    ]
  })
  // In the home folder, a project file can have the same path as the user file; keep only the first.
  return all.filter(({ path }, index) => all.findIndex((other) => other.path === path) === index)
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
