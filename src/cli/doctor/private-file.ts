import { readFile, stat } from 'node:fs/promises'
import { quoted } from '../table.ts'
import { type CheckFinding, problem } from './finding.ts'

/** The content of a private file and what is wrong with it; both absent if there is no file. */
interface PrivateFile {
  readonly finding?: CheckFinding
  readonly text?: string
}

interface PrivateFileOptions {
  readonly path: string
  /** As it is shown. */
  readonly shown: string
  /** What it is: `the token`. */
  readonly what: string
}

/** Reads it, without making it. */
export async function privateFile({ path, shown, what }: PrivateFileOptions): Promise<PrivateFile> {
  try {
    const { mode, uid } = await stat(path)
    const text = (await readFile(path, 'utf8')).trim()
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      const finding = problem(
        `${what} is readable by others (${shown}, mode ${octal(mode)})`,
        `chmod 600 ${quoted(path)}`,
      )
      return { text, finding }
    }
    return isForeign(uid) ? { text, finding: foreign(what, shown, path) } : { text }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return {}
    return { finding: problem(`${what} cannot be read (${shown}, ${code})`, ownAgain(path)) }
  }
}

export const octal = (mode: number): string => (mode & 0o777).toString(8)

/** Whether a file belongs to another user. Root may use any file. */
export function isForeign(uid: number): boolean {
  const own = process.getuid?.() ?? uid
  return own !== 0 && own !== uid
}

/** Running with sudo once leaves such files behind. */
export const ownAgain = (path: string): string => `sudo chown -R "$(id -u)" ${quoted(path)}`

const foreign = (what: string, shown: string, path: string): CheckFinding =>
  problem(`${what} belongs to another user (${shown})`, ownAgain(path))
