import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { link, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export interface AtomicWriteOptions {
  /** The file mode; by default, only the owner can read the file. */
  readonly mode?: number
  /** The file's owner, if that is another user. Only root can set the owner; ignored otherwise. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined
}

/** Replaces a file. Readers see either the old or the new content, even after a crash or a power cut. */
export async function writeAtomic(
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  const folder = dirname(path)
  // Use the same folder, because a rename is atomic only within one file system.
  const temporary = temporaryBeside(path)
  try {
    await writeContent(temporary, content, options)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw nameFile(error, path)
  }
  await syncFolder(folder)
}

/**
 * Creates a folder and its parents, for their owner alone. Unlike `mkdir` with `recursive`, it reports a read-only file
 * system as EROFS, not as ENOENT, and does not loop where no folder can be created, such as in /proc.
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    if (code !== 'ENOENT' || existsSync(dirname(path))) throw error
    makeFolder(dirname(path))
    makeFolder(path)
  }
}

/** Creates a file that readers never see incomplete. Returns false if the file already exists. */
export async function writeNew(path: string, content: string): Promise<boolean> {
  const temporary = temporaryBeside(path)
  try {
    await writeFile(temporary, content, { flag: 'wx', mode: 0o600 })
    await link(temporary, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw nameFile(error, path)
  } finally {
    // Also if the disk is full, which leaves an empty file.
    await rm(temporary, { force: true })
  }
}

/** Adds the file's path to an error of `write` or `fsync`, which does not name the file. */
function nameFile(error: unknown, path: string): unknown {
  const failure = error as NodeJS.ErrnoException
  if (failure.code === undefined || failure.path !== undefined) return error
  failure.message += ` '${path}'`
  failure.path = path
  return failure
}

async function writeContent(path: string, content: string | Uint8Array, { mode = 0o600, owner }: AtomicWriteOptions) {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(content)
  if (owner && owner.uid !== process.getuid?.()) await file.chown(owner.uid, owner.gid).catch(() => {})
  // Set the mode after chown, which clears some mode bits. The umask does not affect chmod.
  if (mode !== 0o600) await file.chmod(mode)
  await file.sync()
}

/** Makes the rename durable. Windows cannot open folders, and some network file systems refuse to sync them. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using opened = await open(folder, 'r')
  await opened.sync().catch(() => {})
}

/** When this process started, by the clock that file times come from. */
const startedAt = Date.now() - process.uptime() * 1_000

const machineHash = createHash('sha256').update(hostname()).digest('hex').slice(0, 8)

/** A new path for a temporary file beside `path`. Its name tells which process writes it. */
export function temporaryBeside(path: string): string {
  const random = randomBytes(6).toString('hex')
  return join(dirname(path), `${temporaryStart(path)}${machineHash}-${process.pid}-${random}.tmp`)
}

/** How the names of temporary files for `path` begin: they are hidden. */
const temporaryStart = (path: string): string => `${basename(path).replace(/^(?!\.)/, '.')}.`

const temporaryName = /^\..+\.([0-9a-f]{8})-(\d+)-[0-9a-f]{12}\.tmp$/

/** The process of this machine that writes a temporary file; undefined if it is another machine's or not temporary. */
function writerOf(path: string): number | undefined {
  const [, where, pid] = temporaryName.exec(basename(path)) ?? []
  return where === machineHash ? Number(pid) : undefined
}

/**
 * Whether the process that created a file has ended. The pid of this process may be that of an earlier one, which is
 * the rule in containers: then the file is older than this process.
 */
export async function hasOwnerEnded(pid: number, path: string): Promise<boolean> {
  if (pid !== process.pid) return !isRunning(pid)
  const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? {}
  return mtimeMs !== undefined && mtimeMs < startedAt
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** How long to wait for a lock. A process usually holds one only while it writes a small file. */
const defaultWaitMs = 20_000
const lockPollMs = 20
/** A lock from another machine, or one that a crash left half written, counts as abandoned after this time. */
const maxLockAgeMs = 10 * 60_000

const maxLockBytes = 1_024

/** The locks that this process holds. */
const heldLocks = new Set<string>()

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
    } else await pause(lockPollMs)
  }
  heldLocks.add(mine)
  return {
    async [Symbol.asyncDispose]() {
      await rm(path, { force: true })
      heldLocks.delete(mine)
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
  if (host !== hostname() || heldLocks.has(lock)) return
  if (await hasOwnerEnded(Number(pid), path)) await removeAbandoned(path, lock)
}

async function isAbandoned(path: string, lock: string): Promise<boolean> {
  if (heldLocks.has(lock)) return false
  const [pid = '', host] = lock.split(' ')
  // Whether a process is running can be checked only on its own machine.
  if (/^\d+$/.test(pid) && host === hostname()) return hasOwnerEnded(Number(pid), path)
  const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? {}
  return mtimeMs !== undefined && Date.now() - mtimeMs > maxLockAgeMs
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
