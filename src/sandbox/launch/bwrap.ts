import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Runtime } from '../runtime.ts'
import {
  filterDescriptor,
  infoDescriptor,
  type KernelLimits,
  type LaunchOptions,
  processChild,
  withKernelLimits,
} from './process-child.ts'
import { seccompFilter } from './seccomp.ts'

interface Mount {
  readonly from: string
  readonly to: string
  /** Whether the source of the mount may be missing. */
  readonly optional?: boolean
}

/**
 * The command line that starts a program without privileges, with only these mounts and a read-only file system. PID 1
 * inside is a `bwrap` that the program cannot reach. When Toolway ends, PID 1 ends too, and with it all processes in
 * the namespace.
 */
export function bwrapCommand(options: {
  readonly bwrap: string
  readonly mounts: readonly Mount[]
  /** Folders that appear empty in the sandbox. */
  readonly hidden?: readonly string[]
  readonly filtered: boolean
  readonly command: readonly string[]
}): readonly string[] {
  const { bwrap, mounts, hidden = [], filtered, command } = options
  return [
    bwrap,
    '--unshare-all',
    // A user namespace is needed even as root: without it, the program would keep all capabilities.
    '--unshare-user',
    '--disable-userns',
    ...['--uid', '65534', '--gid', '65534'],
    ...['--cap-drop', 'ALL'],
    '--clearenv',
    '--die-with-parent',
    '--new-session',
    ...['--hostname', 'sandbox'],
    ...(filtered ? ['--seccomp', `${filterDescriptor}`] : []),
    ...['--info-fd', `${infoDescriptor}`],
    ...mounts.flatMap(({ from, to, optional }) => [optional ? '--ro-bind-try' : '--ro-bind', from, to]),
    ...hidden.flatMap((folder) => ['--tmpfs', folder, '--remount-ro', folder]),
    ...['--dev-bind', '/dev/null', '/dev/null'],
    ...['--remount-ro', '/'],
    ...['--chdir', '/'],
    '--',
    ...command,
  ]
}

/** Mounts a file at its own path, resolving links. */
const mountOf = (path: string): Mount => ({ from: realpathSync(path), to: path })

/** The path of `bwrap`, and the user to run it as. */
export interface BwrapOptions extends LaunchOptions {
  readonly bwrap: string
  readonly user?: number
}

/** Binaries that a program may load, whose shared libraries are needed too. */
interface LoadableModules {
  readonly files: readonly string[]
  /** Arguments with which the program does nothing. */
  readonly idle: readonly string[]
}

/** Runs a command in `bwrap`, with these mounts and with the shared libraries that its binaries need. */
export async function launchInBwrap(
  { bwrap, user, limit }: BwrapOptions,
  program: {
    readonly command: readonly string[]
    /** The binary whose shared libraries are needed. */
    readonly executable: string
    readonly modules?: LoadableModules
    readonly mounts: readonly Mount[]
    readonly hidden?: readonly string[]
    readonly limits: KernelLimits
  },
): Promise<Runtime> {
  const mounts = [
    ...(await librariesOf(program.executable, program.modules)).map(mountOf),
    { from: '/etc/ld.so.cache', to: '/etc/ld.so.cache', optional: true },
    ...program.mounts,
  ]
  const filter = seccompFilter()
  const wrapped = bwrapCommand({ ...program, bwrap, mounts, filtered: filter !== undefined })
  const command = withKernelLimits(wrapped, program.limits)
  return { tier: 'bwrap', start: () => processChild({ command, wrapped: true, limit, filter, user }) }
}

const runCommand = promisify(execFile)

/** The shared libraries of a binary and of its modules, at the paths where the loader looks. */
async function librariesOf(executable: string, modules?: LoadableModules): Promise<readonly string[]> {
  const { files = [], idle = [] } = modules ?? {}
  // A list of files to load is separated by spaces or colons.
  if (modules && !files.some((file) => /[\s:]/.test(file))) {
    // Let the loader list the libraries of all files in one process, because `ldd` starts five for each file. Loaders
    // other than that of glibc run the program instead.
    const loader = { LD_TRACE_LOADED_OBJECTS: '1', LD_PRELOAD: files.join(':') }
    const traced = pathsIn(await printedBy(executable, idle, loader))
    if (traced.length > 0) return traced.filter((path) => !files.includes(path))
  }
  return pathsIn(await printedBy('ldd', [executable, ...files]))
}

/** What a command prints, even if it fails: `ldd` fails if one of the files is a static binary. */
async function printedBy(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const options = { maxBuffer: 4 * 1024 * 1024, env: { ...process.env, ...env } }
  const { stdout } = await runCommand(program, args, options).catch((error: { stdout?: string }) => error)
  return stdout ?? ''
}

const pathsIn = (list: string): readonly string[] => [
  ...new Set([...list.matchAll(/^\s+(?:\S+ => )?(\/\S+) \(0x/gm)].map(([, path = '']) => path)),
]
