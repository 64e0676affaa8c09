import { randomBytes } from 'node:crypto'
import { link, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { writeNew } from './atomic-write.ts'
import { hasOwnerEnded, temporaryStart, writerOf } from './file-owner.ts'

/** How long to wait for a lock. A process usually holds one only while it writes a small file. */
const defaultWaitMs = 20_000
const pollMs = 20
/** A lock from another machine, or one that a crash left half written, counts as abandoned after this time. */
const maxAgeMs = 10 * 60_000

const maxLockBytes = 1_024

/** The locks that this process holds. */
const held = new Set<string>()

/** Holds a lock file until the returned object is disposed of. Removes the lock of a process that has died. */
export async function lockFile(path: string, waitMs = defaultWaitMs): Promise<AsyncDisposable> {
  const mine = `${process.pid} ${hostname()} ${randomBytes(6).toString('hex')}\n`
  const end = performance.now() + waitMs
  while (!(await writeNew(path, mine))) {
    const found = await readFile(path, 'utf8').catch(() => '')
    if (await isAbandoned(path, found)) await removeAbandoned(path, found)
    else if (performance.now() > end) {
      throw new Error(
        `${path} is locked by process ${found.trim() || 'unknown'}; if that process is not running, remove the file`,
      )
    } else await pause(pollMs)
  }
  held.add(mine)
  return {
    async [Symbol.asyncDispose]() {
      await rm(path, { force: true })
      held.delete(mine)
    },
  }
}

/**
 * Removes what killed processes of this machine left in a folder and its subfolders: temporary files, and locks whose
 * names end with `.lock`. Leaves everything that Toolway may not have written, because users choose the folder.
 */
export async function removeLeftovers(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const subfolders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
  for (const place of [folder, ...subfolders]) {
    const names = await readdir(place).catch(() => [])
    // A file that cannot be removed does no harm.
    for (const name of names) await removeLeftover(join(place, name)).catch(() => {})
  }
}

/** Removes the temporary files that killed processes of this machine left beside a file. */
export async function removeTemporaryBeside(path: string): Promise<void> {
  const start = temporaryStart(path)
  for (const name of await readdir(dirname(path)).catch(() => [])) {
    if (name.startsWith(start)) await removeLeftover(join(dirname(path), name)).catch(() => {})
  }
}

const lockText = /^(\d+) (\S+) [0-9a-f]{12}\n$/

async function removeLeftover(path: string): Promise<void> {
  const writer = writerOf(path)
  if (writer !== undefined && (await hasOwnerEnded(writer, path))) await rm(path, { force: true })
  if (!path.endsWith('.lock') || (await stat(path)).size > maxLockBytes) return
  const lock = await readFile(path, 'utf8')
  const [, pid, host] = lockText.exec(lock) ?? []
  if (host !== hostname() || held.has(lock)) return
  if (await hasOwnerEnded(Number(pid), path)) await removeAbandoned(path, lock)
}

async function isAbandoned(path: string, lock: string): Promise<boolean> {
  if (held.has(lock)) return false
  const [pid = '', host] = lock.split(' ')
  // Whether a process is running can be checked only on its own machine.
  if (/^\d+$/.test(pid) && host === hostname()) return hasOwnerEnded(Number(pid), path)
  const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? {}
  return mtimeMs !== undefined && Date.now() - mtimeMs > maxAgeMs
}

/** Removes an abandoned lock. Moves it aside first, and puts it back if it turns out to be a new lock. */
async function removeAbandoned(path: string, abandoned: string): Promise<void> {
  const aside = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await rename(path, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  if ((await readFile(aside, 'utf8')) !== abandoned) await link(aside, path).catch(() => {})
  await rm(aside, { force: true })
}
