import { realpathSync } from 'node:fs'

/** What a child sees of the machine: from where, and under which name. */
export interface Sight {
  readonly from: string
  readonly to: string
  /** Whether it may be missing. */
  readonly optional?: boolean
}

/** Descriptors that `bwrap` is given, beside the three that everybody has. */
export const filterDescriptor = 3
export const infoDescriptor = 4

/**
 * The words that start a program where it has no rights, sees nothing but `sights`, and can write nowhere. The first
 * process of its world is a `bwrap` that it cannot reach: when we are gone that one ends, and its world with it.
 */
export function bwrapCommand(options: {
  readonly bwrap: string
  readonly sights: readonly Sight[]
  /** Folders in what it sees that are empty to it. */
  readonly hidden?: readonly string[]
  readonly filtered: boolean
  readonly command: readonly string[]
}): readonly string[] {
  const { bwrap, sights, hidden = [], filtered, command } = options
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
    ...sights.flatMap(({ from, to, optional }) => [optional ? '--ro-bind-try' : '--ro-bind', from, to]),
    ...hidden.flatMap((folder) => ['--tmpfs', folder, '--remount-ro', folder]),
    ...['--dev-bind', '/dev/null', '/dev/null'],
    ...['--remount-ro', '/'],
    ...['--chdir', '/'],
    '--',
    ...command,
  ]
}

/** A file under the name that programs know it by, also where that name is a link. */
export const sightOf = (path: string): Sight => ({ from: realpathSync(path), to: path })
