import { userInfo } from 'node:os'

/** The user of the operating system; a container may have none. */
export function osUser(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}
