import { randomUUID } from 'node:crypto'
import { link, open, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

export interface AtomicWriteOptions {
  /** Readable only by its owner by default. */
  readonly mode?: number
  /** For a file of another user. Only root can set it; ignored otherwise. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined
}

/**
 * Replaces a file: readers see the old content or the new one, also after a crash or a power cut. The temporary file is
 * in the same folder, because a rename is atomic within one file system only.
 */
export async function writeAtomic(
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteOptions = {},
): Promise<void> {
  const folder = dirname(path)
  const temporary = join(folder, `.${basename(path)}.${randomUUID()}.tmp`)
  try {
    await write(temporary, content, options)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
  await syncFolder(folder)
}

/** Creates a file that is never seen incomplete; false if it exists already. */
export async function writeNew(path: string, content: string): Promise<boolean> {
  const temporary = `${path}.${randomUUID()}`
  await writeFile(temporary, content, { flag: 'wx', mode: 0o600 })
  try {
    await link(temporary, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(temporary, { force: true })
  }
}

async function write(path: string, content: string | Uint8Array, { mode = 0o600, owner }: AtomicWriteOptions) {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(content)
  if (owner && owner.uid !== process.getuid?.()) await file.chown(owner.uid, owner.gid).catch(() => {})
  // After chown, which clears some bits. The umask does not apply here.
  if (mode !== 0o600) await file.chmod(mode)
  await file.sync()
}

/** Makes the rename itself durable. Windows cannot open folders; some network file systems refuse to sync them. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using opened = await open(folder, 'r')
  await opened.sync().catch(() => {})
}
