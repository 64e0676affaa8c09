import { readFile, stat } from 'node:fs/promises'
import { shellQuote } from '../../lib/shell-words.ts'
import { type CheckFinding, problem } from './finding.ts'

interface PrivateFile {
  readonly path: string
  /** The path as shown to the user. */
  readonly shown: string
  /** What the file contains, such as `the token`. */
  readonly what: string
}

/** The content of a private file and any problem with it; both are absent if there is no file. */
export async function privateFile(file: PrivateFile): Promise<{ finding?: CheckFinding; text?: string }> {
  const { path, shown, what } = file
  try {
    const { mode, uid } = await stat(path)
    const text = (await readFile(path, 'utf8')).trim()
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      const message = `${what} is readable by others (${shown}, mode ${octal(mode)})`
      return { text, finding: problem(message, `chmod 600 ${shellQuote(path)}`) }
    }
    if (!isForeign(uid)) return { text }
    return { text, finding: problem(`${what} belongs to another user (${shown})`, chownCommand(path)) }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return {}
    return { finding: problem(`${what} cannot be read (${shown}, ${code})`, chownCommand(path)) }
  }
}

export const octal = (mode: number): string => (mode & 0o777).toString(8)

/** Whether a file belongs to another user. Root may use any file. */
export function isForeign(uid: number): boolean {
  const own = process.getuid?.() ?? uid
  return own !== 0 && own !== uid
}

/**
 * The command that gives a file or folder back to the user. Running Toolway even once with sudo leaves files owned by
 * root. Use `-R` only for a folder that contains nothing but Toolway's files.
 */
export const chownCommand = (path: string, recursive?: '-R'): string =>
  `sudo chown ${recursive ? '-R ' : ''}"$(id -u)" ${shellQuote(path)}`
