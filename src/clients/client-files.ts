import { join } from 'node:path'
import { type ClientKind, clientKinds } from '../config/import/client-kind.ts'
import { readServers, type ServersFile } from '../config/import/read-servers.ts'
import type { EnvVars } from '../config/interpolate.ts'
import { isFile } from '../config/locate.ts'
import { configHome, homeOf } from '../core/home.ts'

/** The parts of the environment that determine the paths of client files. */
export interface HostEnvironment {
  readonly env: EnvVars
  readonly cwd: string
  readonly platform: NodeJS.Platform
}

export interface ClientFile {
  readonly client: ClientKind
  readonly path: string
  readonly scope: 'user' | 'project'
}

/** The folder where applications keep their settings. On Linux, it follows the XDG specification. */
function settingsFolder({ env, platform }: HostEnvironment): string {
  const home = homeOf(env)
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  if (platform === 'win32') return env.APPDATA || join(home, 'AppData', 'Roaming')
  return configHome(env)
}

const clineName = 'cline_mcp_settings.json'

/** Paths of the user-level files. If a client has several possible paths, the most likely one comes first. */
function userFiles(around: HostEnvironment): Record<ClientKind, readonly string[]> {
  const { env, platform } = around
  const home = homeOf(env)
  const settings = settingsFolder(around)
  const config = configHome(env)
  const editors = ['Code', 'Code - Insiders', 'VSCodium'].map((name) => join(settings, name, 'User'))
  const clineInside = ['globalStorage', 'saoudrizwan.claude-dev', 'settings', clineName]
  return {
    'claude-code': [join(env.CLAUDE_CONFIG_DIR || home, '.claude.json')],
    'claude-desktop': [join(settings, 'Claude', 'claude_desktop_config.json')],
    cursor: [join(home, '.cursor', 'mcp.json')],
    vscode: editors.map((editor) => join(editor, 'mcp.json')),
    codex: [join(env.CODEX_HOME || join(home, '.codex'), 'config.toml')],
    opencode: [
      ...(env.OPENCODE_CONFIG ? [env.OPENCODE_CONFIG] : []),
      ...['opencode.json', 'opencode.jsonc'].map((name) => join(config, 'opencode', name)),
    ],
    gemini: [join(home, '.gemini', 'settings.json')],
    windsurf: [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
    zed: [platform === 'win32' ? join(settings, 'Zed', 'settings.json') : join(config, 'zed', 'settings.json')],
    cline: [
      env.CLINE_MCP_SETTINGS_PATH || join(home, '.cline', 'data', 'settings', clineName),
      ...editors.map((editor) => join(editor, ...clineInside)),
    ],
  }
}

/** File names inside a project, for clients that support project files. */
const projectNames: Partial<Record<ClientKind, readonly string[]>> = {
  'claude-code': ['.mcp.json'],
  cursor: [join('.cursor', 'mcp.json')],
  vscode: [join('.vscode', 'mcp.json')],
  codex: [join('.codex', 'config.toml')],
  opencode: ['opencode.json', 'opencode.jsonc'],
  gemini: [join('.gemini', 'settings.json')],
  zed: [join('.zed', 'settings.json')],
}

/** All possible paths of client files, whether the files exist or not. */
export function clientFiles(around: HostEnvironment, clients: readonly ClientKind[] = clientKinds): ClientFile[] {
  const { cwd } = around
  const user = userFiles(around)
  const all = clients.flatMap((client): ClientFile[] => [
    ...user[client].map((path) => ({ client, path, scope: 'user' as const })),
    ...(projectNames[client] ?? []).map((name) => ({ client, path: join(cwd, name), scope: 'project' as const })),
  ])
  // In the home folder, a project file can have the same path as the user file; keep only the first.
  return all.filter(({ path }, index) => all.findIndex((other) => other.path === path) === index)
}

/** An existing client file and the servers that were read from it. */
export interface FoundFile extends ClientFile {
  readonly content: ServersFile
}

/** Returns the given clients' existing files; by default, those of all clients. */
export async function discover(around: HostEnvironment, clients?: readonly ClientKind[]): Promise<FoundFile[]> {
  const found: FoundFile[] = []
  for (const file of clientFiles(around, clients)) {
    if (await isFile(file.path))
      found.push({ ...file, content: await readServers(file.path, homeOf(around.env), file.client) })
  }
  return found
}
