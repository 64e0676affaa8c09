import { type SpawnOptions, spawnSync } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { posix, win32 } from 'node:path'

/** Where a command is looked up. The platform and the files can be replaced, to try what happens on another platform. */
interface ProgramLookup {
  readonly cwd?: string | undefined
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly platform?: NodeJS.Platform
  readonly isWanted?: (path: string) => boolean
}

/** The file that a command starts, looked up in PATH (on Windows, with PATHEXT); undefined if there is none. */
export function findProgram(command: string, lookup: ProgramLookup = {}): string | undefined {
  const { cwd = '.', env = process.env, platform = process.platform, isWanted = isExecutable } = lookup
  const { basename, delimiter, extname, join, resolve } = platform === 'win32' ? win32 : posix
  const folders = (variableIn(env, 'PATH', platform) ?? '').split(delimiter).filter((folder) => folder !== '')
  const places =
    basename(command) === command ? folders.map((folder) => join(folder, command)) : [resolve(cwd, command)]
  if (platform !== 'win32') return places.find(isWanted)
  // PATHEXT also lists scripts, such as .JS, that only the shell can start.
  const known = (variableIn(env, 'PATHEXT', platform) ?? '.COM;.EXE;.BAT;.CMD').split(delimiter)
  const endings = known.filter((ending) => /^\.(com|exe|bat|cmd)$/i.test(ending))
  // A file without an extension, such as the shell script `npx` beside npx.cmd, cannot be started.
  const tried = extname(command) === '' ? endings : ['', ...endings]
  return places.flatMap((place) => tried.map((ending) => place + ending)).find(isWanted)
}

/** The last one, if the names of several variables differ only in their case: on Windows they are one. */
function variableIn(env: NonNullable<ProgramLookup['env']>, name: string, platform: NodeJS.Platform) {
  if (platform !== 'win32') return env[name]
  return Object.entries(env).findLast(([key]) => key.toUpperCase() === name)?.[1]
}

export function isExistingFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    // Missing, or in a folder that this user cannot enter.
    return false
  }
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return isExistingFile(path)
  } catch {
    return false
  }
}

/**
 * What `spawn` gets for a command. On Windows, `spawn` finds programs only by their whole name, and starts no batch files,
 * such as npx.cmd: cmd.exe runs these, with arguments that it cannot take for commands or variables.
 */
export function spawnArguments(
  command: string,
  args: readonly string[],
  lookup: ProgramLookup = {},
): readonly [file: string, args: readonly string[], options: Pick<SpawnOptions, 'windowsVerbatimArguments'>] {
  const { env = process.env, platform = process.platform } = lookup
  if (platform !== 'win32') return [command, args, {}]
  const file = findProgram(command, { isWanted: isExistingFile, ...lookup }) ?? command
  if (!/\.(bat|cmd)$/i.test(file)) return [file, args, {}]
  const line = [file, ...args].map(batchArgument).join(' ')
  const shell = variableIn(env, 'COMSPEC', platform) ?? 'cmd.exe'
  // With command extensions, on which the quoting relies; without delayed expansion, which would give `!` a meaning.
  return [shell, ['/d', '/e:on', '/v:off', '/s', '/c', `"${line}"`], { windowsVerbatimArguments: true }]
}

/**
 * Quotes an argument for a batch file, which passes it on to a program. Every quotation mark is doubled, so that cmd.exe
 * takes the whole argument as quoted, both times that it reads it. Quotation marks do not stop the expansion of %NAME%:
 * after each `%`, an empty part of the variable `cd` takes the place of a name.
 */
function batchArgument(word: string): string {
  if (/[\r\n]/.test(word)) {
    throw Object.assign(new Error('a batch file cannot get a line break in an argument'), { code: 'EINVAL' })
  }
  const quoted = word.replaceAll(/(\\+)(?="|$)/g, '$1$1').replaceAll('"', '""')
  return `"${quoted.replaceAll('%', '%%cd:~,%')}"`
}

const isWindows = process.platform === 'win32'

/** Options of `spawn` for a process that leads its own group, so that signals also reach the processes that it starts. */
export const ownGroup = { detached: !isWindows, windowsHide: true } as const

/** Signals a process and its descendants in the same group. Does nothing if the group is gone. */
export function signalGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (isWindows) {
    // Windows does not have process groups or SIGTERM, but taskkill ends a whole process tree.
    spawnSync('taskkill', ['/pid', String(leader), '/T', '/F'], { windowsHide: true, stdio: 'ignore' })
    return
  }
  try {
    process.kill(-leader, signal)
  } catch {
    // The group is already gone.
  }
}
