import { userInfo } from 'node:os'
import { isAbsolute, sep } from 'node:path'

type Variables = Readonly<Record<string, string | undefined>>

/**
 * The folder of the user. A variable that is empty or relative would lead to wherever we were started, and there anybody
 * may have put a token, or a program.
 */
export const homeOf = ({ HOME = '', USERPROFILE = '' }: Variables): string =>
  [HOME, USERPROFILE].find((folder) => isAbsolute(folder)) ?? homeOfAccount()

function homeOfAccount(): string {
  try {
    return userInfo().homedir
  } catch {
    // Containers run as users that nobody has heard of.
    return sep
  }
}

/** The user of the operating system; a container may have none. */
export function osUser(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}
