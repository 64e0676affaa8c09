import { userInfo } from 'node:os'
import { isAbsolute, sep } from 'node:path'

type Variables = Readonly<Record<string, string | undefined>>

/**
 * The user's home folder. Ignores empty and relative variables: they would lead to the working directory, where anybody
 * may have placed a token or a program.
 */
export const homeOf = ({ HOME = '', USERPROFILE = '' }: Variables): string =>
  [HOME, USERPROFILE].find((folder) => isAbsolute(folder)) ?? homeOfAccount()

function homeOfAccount(): string {
  try {
    return userInfo().homedir
  } catch {
    // In containers, the user id may have no account.
    return sep
  }
}

/** The name of the OS user, or its id if it has no account, as in containers. */
export function osUser(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}
