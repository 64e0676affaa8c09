import { mkdtemp, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { connectPostgres, postgresErrorReason } from '../../stores/postgres/connection.ts'
import { currentSchemaVersion, schemaVersion } from '../../stores/postgres/migrations.ts'
import { quoted, sizeText } from '../table.ts'
import { type CheckFinding, type DoctorCheck, findingsOr, ok, problem, warning } from './finding.ts'
import { isForeign, octal, ownAgain } from './private-file.ts'

/** Checks that the state folders are writable. */
export const storeFolderCheck = ({ stores, audit }: Config, short: (path: string) => string): DoctorCheck => ({
  name: 'stores.folder',
  async run() {
    const folders = [...new Set([stores.path, stores.common, audit.path])]
    const found = await Promise.all(folders.map((path) => folderProblem(path, short(path))))
    return findingsOr(found, ok(`${short(stores.path)} is writable`))
  },
})

async function folderProblem(path: string, shown: string): Promise<CheckFinding | undefined> {
  const there = await nearest(path)
  if (!there.isFolder) {
    const remedy = `mv ${quoted(there.path)} ${quoted(`${there.path}.old`)}`
    return problem(`${shown} cannot be a folder: ${there.path} is a file`, remedy)
  }
  const writable = there.path === path ? '' : `, and it cannot be created in ${there.path}`
  try {
    // Try to create a folder, because file modes do not reveal a read-only file system or an exhausted quota.
    await rmdir(await mkdtemp(join(there.path, '.toolway-doctor-')))
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    return problem(`${shown} is not writable (${code})${writable}`, remedies[code]?.(there.path) ?? elsewhere)
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
  ENOSPC: (path) => `df -h ${quoted(path)}   # free some space there`,
  EDQUOT: () => 'quota   # free some space there',
}

/** The folder, or its nearest existing parent. */
async function nearest(path: string): Promise<{ path: string; isFolder: boolean; mode: number; uid: number }> {
  try {
    const found = await stat(path)
    return { path, isFolder: found.isDirectory(), mode: found.mode, uid: found.uid }
  } catch (error) {
    if (dirname(path) === path) throw error
    return nearest(dirname(path))
  }
}

/** Space that the audit log reserves for the end records of calls in flight. */
const reserveBytes = 256 * 1024
/** Minimum free space; less is a problem. This is enough for the reserve and some records. */
const minBytes = 4 * reserveBytes
/** Free space below which a warning is shown. This is enough for a few log files. */
const enoughBytes = 256 * 1024 * 1024

/** Checks the free space for the audit log; without space, write calls are refused. */
export const storeSpaceCheck = ({ audit }: Config, measure = freeBytes): DoctorCheck => ({
  name: 'stores.space',
  async run() {
    const { path } = await nearest(audit.path)
    const { bytes, noFiles } = await measure(path)
    const look = `df -h ${quoted(path)}   # free some space there, or set audit.path and stores.path`
    if (noFiles) return problem("the audit log's file system has no inodes left", `df -i ${quoted(path)}`)
    const free = `${sizeText(bytes)} free for the audit log`
    if (bytes < minBytes) return problem(`${free}, which is too little, so write calls are refused`, look)
    return bytes < enoughBytes ? warning(free, look) : ok(free)
  },
})

async function freeBytes(path: string): Promise<{ readonly bytes: number; readonly noFiles: boolean }> {
  const { bavail, bsize, files, ffree } = await statfs(path)
  // Some file systems do not report the number of files; `files` is 0 then.
  return { bytes: bavail * bsize, noFiles: files > 0 && ffree === 0 }
}

export function postgresChecks({ stores: { postgres: configured } }: Config, command: string): DoctorCheck[] {
  if (!configured || configured.disabled) return []
  const check: DoctorCheck = {
    name: 'stores.postgres',
    async run() {
      await using postgres = await connectPostgres(configured.url)
      const { where } = postgres
      try {
        const number = await schemaVersion(postgres)
        if (number >= currentSchemaVersion) return ok(`${where} is reachable, and its tables are up to date`)
        const behind = `${where} is reachable; its tables are outdated`
        return configured.migrate === 'auto'
          ? ok(`${behind} and will be migrated at the next start`)
          : problem(behind, `${command} migrate`)
      } catch (cause) {
        const message = `${where} is unavailable (${postgresErrorReason(cause)}): audit records stay on this machine until it is available`
        return warning(message, 'stores.postgres.url: postgres://USER@HOST/DATABASE')
      }
    },
  }
  return [check]
}
