import { realpathSync } from 'node:fs'
import { delimiter, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { commandLine } from '../lib/message-text.ts'
import { findProgram } from '../process/programs.ts'
import { moduleFile, packageFile, version } from '../runtime/package-paths.ts'

/** How Toolway can be started again in the way in which it was started. */
export interface Invocation {
  /** For the user, in the current folder. */
  readonly command: string
  /** For another program, in any folder and without our PATH. */
  readonly program: readonly string[]
}

interface Process {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** The program's main file. */
  readonly main?: string
}

/** Folders from which npx, pnpm and Yarn (dlx) and bunx run packages. They may be gone tomorrow. */
const isTemporary = (path: string) => /[\\/](_npx|dlx(-\w+)?|bunx-[^\\/]+)[\\/]/.test(path)

export function invocationOf({ env, cwd, main = fileURLToPath(moduleFile('cli/main')) }: Process): Invocation {
  if (isTemporary(main)) {
    const program = ['npx', '-y', `toolway@${version}`]
    return { command: program.join(' '), program }
  }
  return { command: commandIn(env, cwd, main), program: [process.execPath, main] }
}

function commandIn(env: Process['env'], cwd: string, main: string): string {
  const { npm_lifecycle_event: script = '' } = env
  if (main.endsWith('.ts') && ['start', 'toolway', 'npx'].includes(script)) {
    const root = resolve(fileURLToPath(packageFile('')))
    if (`${cwd}${sep}`.startsWith(root + sep)) return 'npx toolway'
    return commandLine(['npm', '--prefix', root, 'run', '-s', 'toolway', '--'])
  }
  // npm and npx put folders with this name into PATH, for their own children only.
  const PATH = env.PATH?.split(delimiter).filter((folder) => !folder.endsWith(join('node_modules', '.bin')))
  const found = findProgram('toolway', { env: { ...env, PATH: PATH?.join(delimiter) } })
  // On Windows, it is not a link but a batch file beside the folder of global packages.
  const isOurs = (file: string) =>
    realpathSync(file) === main || main.startsWith(join(dirname(file), 'node_modules', sep))
  if (found !== undefined && isOurs(found)) return 'toolway'
  const [project = '', installed] = main.split(`${sep}node_modules${sep}`)
  if (installed !== undefined && `${cwd}${sep}`.startsWith(project + sep)) return 'npx toolway'
  return commandLine(['node', main.startsWith(cwd + sep) ? main.slice(cwd.length + 1) : main])
}
