import { mkdtemp, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { type Check, type Finding, ok, problem } from './finding.ts'
import { isForeign, octal, ownAgain } from './private-file.ts'
import { quoted } from './words.ts'

/** Whether everything that outlives a start can be written. */
export const storeFolderCheck = ({ stores, audit }: Config, short: (path: string) => string): Check => ({
  name: 'stores.folder',
  async run() {
    const folders = [...new Set([stores.path, stores.common, audit.path])]
    const found = await Promise.all(folders.map((path) => folderProblem(path, short(path))))
    const findings = found.filter((finding) => finding !== undefined)
    return findings.length > 0 ? findings : ok(`${short(stores.path)} can be written`)
  },
})

async function folderProblem(path: string, shown: string): Promise<Finding | undefined> {
  const there = await nearest(path)
  if (!there.isFolder) {
    return problem(
      `${shown} cannot be a folder: ${there.path} is a file`,
      `mv ${quoted(there.path)} ${quoted(`${there.path}.old`)}`,
    )
  }
  const writable = there.path === path ? '' : `, and ${there.path} does not let us make it`
  try {
    // Trying is the only way to know: modes say nothing of read-only file systems, quotas and the like.
    await rmdir(await mkdtemp(join(there.path, '.toolway-doctor-')))
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    return problem(`${shown} cannot be written (${code})${writable}`, remedies[code]?.(there.path) ?? elsewhere)
  }
  if (there.path !== path) return undefined
  if (isForeign(there.uid)) return problem(`${shown} belongs to another user`, ownAgain(path))
  if (process.platform === 'win32' || (there.mode & 0o022) === 0) return undefined
  return problem(`others may write to ${shown} (mode ${octal(there.mode)})`, `chmod 700 ${quoted(path)}`)
}

const elsewhere = 'stores.path: /a/folder/that/can/be/written'

const remedies: Readonly<Record<string, (path: string) => string>> = {
  EACCES: (path) => `${ownAgain(path)} && chmod u+rwx ${quoted(path)}`,
  EPERM: (path) => `${ownAgain(path)} && chmod u+rwx ${quoted(path)}`,
  ENOSPC: (path) => `df -h ${quoted(path)}   # make room there`,
  EDQUOT: () => 'quota   # make room there',
}

/** The folder, or what there is of the way to it. */
export async function nearest(path: string): Promise<{
  readonly path: string
  readonly isFolder: boolean
  readonly mode: number
  readonly uid: number
}> {
  try {
    const found = await stat(path)
    return { path, isFolder: found.isDirectory(), mode: found.mode, uid: found.uid }
  } catch (error) {
    if (dirname(path) === path) throw error
    return nearest(dirname(path))
  }
}
