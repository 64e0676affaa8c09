import { userInfo } from 'node:os'
import { isAbsolute, join, sep } from 'node:path'

type Variables = Readonly<Record<string, string | undefined>>

/** The user's home folder. Relative paths are ignored, because anyone may put files in the working directory. */
export const homeOf = ({ HOME = '', USERPROFILE = '' }: Variables): string =>
  [HOME, USERPROFILE].find((folder) => isAbsolute(folder)) ?? homeOfAccount()

/** The folders of the XDG specification. Relative paths are ignored, as for `homeOf`. */
export const configHome = (env: Variables): string => xdgFolder(env.XDG_CONFIG_HOME, env, '.config')
export const stateHome = (env: Variables): string => xdgFolder(env.XDG_STATE_HOME, env, join('.local', 'state'))
export const cacheHome = (env: Variables): string => xdgFolder(env.XDG_CACHE_HOME, env, '.cache')

const xdgFolder = (named = '', env: Variables, inHome: string): string =>
  isAbsolute(named) ? named : join(homeOf(env), inHome)

function homeOfAccount(): string {
  try {
    return userInfo().homedir
  } catch {
    // In containers, the user id may have no account.
    return sep
  }
}

/** The name of the operating system user, or the user id if the user has no account, as in containers. */
export function osUser(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}

/** A path in the home folder as `~/…`. */
export const tildePath = (path: string, home: string): string =>
  path.startsWith(home + sep) ? `~/${path.slice(home.length + 1).replaceAll(sep, '/')}` : path
