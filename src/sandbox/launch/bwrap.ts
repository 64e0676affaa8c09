import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Runtime } from '../runtime.ts'
import { type KernelLimits, type LaunchOptions, withKernelLimits } from './options.ts'
import { filterDescriptor, infoDescriptor, processChild } from './process-child.ts'
import { seccompFilter } from './seccomp.ts'

/** What a child sees of the machine: from where, and under which name. */
export interface Mount {
  readonly from: string
  readonly to: string
  /** Whether it may be missing. */
  readonly optional?: boolean
}

/**
 * The words that start a program where it has no rights, sees nothing but `sights`, and can write nowhere. The first
 * process of its world is a `bwrap` that it cannot reach: when we are gone that one ends, and its world with it.
 */
export function bwrapCommand(options: {
  readonly bwrap: string
  readonly mounts: readonly Mount[]
  /** Folders in what it sees that are empty to it. */
  readonly hidden?: readonly string[]
  readonly filtered: boolean
  readonly command: readonly string[]
}): readonly string[] {
  const { bwrap, mounts, hidden = [], filtered, command } = options
  return [
    bwrap,
    '--unshare-all',
    // Also where we are root: without a user namespace all capabilities would stay.
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

/** A file under the name that programs know it by, also where that name is a link. */
const mountOf = (path: string): Mount => ({ from: realpathSync(path), to: path })

/** A place where there is a `bwrap`, and whom it is started as, where we may choose. */
export interface BwrapOptions extends LaunchOptions {
  readonly bwrap: string
  readonly user?: number
}

/** A command behind `bwrap`, where it sees what it is shown, and the shared libraries of its programs. */
export async function launchInBwrap(
  { bwrap, user, limit }: BwrapOptions,
  given: {
    readonly command: readonly string[]
    /** The files that are loaded with shared libraries. */
    readonly programs: readonly string[]
    readonly mounts: readonly Mount[]
    readonly hidden?: readonly string[]
    readonly limits: KernelLimits
  },
): Promise<Runtime> {
  const mounts = [
    ...(await librariesOf(given.programs)).map(mountOf),
    { from: '/etc/ld.so.cache', to: '/etc/ld.so.cache', optional: true },
    ...given.mounts,
  ]
  const filter = seccompFilter()
  const words = bwrapCommand({ ...given, bwrap, mounts, filtered: filter !== undefined })
  const options = {
    command: withKernelLimits(words, given.limits),
    wrapped: true,
    limit,
    ...(filter && { filter }),
    ...(user !== undefined && { user }),
  }
  return { tier: 'bwrap', start: () => processChild(options) }
}

const run = promisify(execFile)

/** The shared libraries that programs are loaded with, by the paths where their loader looks. */
async function librariesOf(files: readonly string[]): Promise<readonly string[]> {
  // One that is linked statically has none, and `ldd` calls that a failure.
  const { stdout } = await run('ldd', files, { maxBuffer: 4 * 1024 * 1024 }).catch((error: { stdout?: string }) => ({
    stdout: error.stdout ?? '',
  }))
  const found = stdout.matchAll(/^\s+(?:\S+ => )?(\/\S+) \(0x/gm)
  return [...new Set([...found].map(([, path = '']) => path))]
}
