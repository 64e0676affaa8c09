import { existsSync, mkdirSync, statSync } from 'node:fs'
import { link, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { temporaryBeside } from './file-owner.ts'

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
    await write(temporary, content, options)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw named(error, path)
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
    throw named(error, path)
  } finally {
    // Also if the disk is full, which leaves an empty file.
    await rm(temporary, { force: true })
  }
}

/** Adds the file's path to an error of `write` or `fsync`, which does not name the file. */
function named(error: unknown, path: string): unknown {
  const failure = error as NodeJS.ErrnoException
  if (failure.code === undefined || failure.path !== undefined) return error
  failure.message += ` '${path}'`
  failure.path = path
  return failure
}

async function write(path: string, content: string | Uint8Array, { mode = 0o600, owner }: AtomicWriteOptions) {
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
