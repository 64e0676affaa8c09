import { mkdir, readFile, readlink, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { lockFile, removeTemporaryBeside, writeAtomic } from '../../lib/files.ts'

/** A file's state at the time it was read. Writing fails if the file has changed since then. */
export interface FileSnapshot {
  readonly path: string
  /** The path with symbolic links resolved. Writes go to this path, so that links are preserved. */
  readonly target: string
  /** The file's content; undefined if the file does not exist. */
  readonly bytes: Buffer | undefined
  readonly mode: number
  readonly owner: { readonly uid: number; readonly gid: number } | undefined
  /** The content without the byte order mark. */
  readonly text: string
  readonly mark: string
}

/** Maximum size of a client's file; far larger than any real one. */
const maxBytes = 64 * 1024 * 1024

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ELOOP: 'its symbolic link points to itself',
  ENOTDIR: 'a part of its path is a file',
  EROFS: 'its file system is read-only',
  ENOSPC: 'the disk is full',
}

function because(path: string, doing: string, thrown: unknown): FileProblem {
  const code = (thrown as NodeJS.ErrnoException).code
  return new FileProblem(`${path} cannot be ${doing}: ${reasons[code ?? ''] ?? code ?? String(thrown)}.`)
}

/**
 * Reads a file, following symbolic links. A missing file is not an error; it would be created with `newMode`. One without
 * secrets, such as our configuration, may be readable by others.
 */
export async function readSnapshot(path: string, newMode = 0o600): Promise<FileSnapshot> {
  try {
    const target = await targetOf(path)
    const facts = await stat(target).catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code === 'ENOENT') return undefined
      throw thrown
    })
    if (!facts) return { path, target, bytes: undefined, mode: newMode, owner: undefined, text: '', mark: '' }
    if (!facts.isFile()) throw new FileProblem(`${path} is not a regular file.`)
    if (facts.size > maxBytes) throw new FileProblem(`${path} is larger than 64 MiB.`)
    const bytes = await readFile(target)
    const { mode, uid, gid } = facts
    return { path, target, bytes, mode: mode & 0o7777, owner: { uid, gid }, ...decoded(path, bytes) }
  } catch (thrown) {
    throw thrown instanceof FileProblem ? thrown : because(path, 'read', thrown)
  }
}

/** Resolves symbolic links, even if the last one points to a missing file. */
async function targetOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown
  }
  const link = await readlink(path).catch(() => undefined)
  return link === undefined ? path : resolve(dirname(path), link)
}

function decoded(path: string, bytes: Buffer): { text: string; mark: string } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.startsWith('\ufeff') ? { text: text.slice(1), mark: '\ufeff' } : { text, mark: '' }
  } catch {
    throw new FileProblem(`${path} is not UTF-8 text.`, 'Save it as UTF-8 first.')
  }
}

/**
 * Serializes edits of a configuration file by several processes. The lock is next to the file, because commands and
 * gateways may use different state folders.
 */
export async function lockForEdit({ path, target }: FileSnapshot): Promise<AsyncDisposable> {
  try {
    return await lockFile(join(dirname(target), `.${basename(target)}.lock`))
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === undefined) throw new FileProblem(`${(thrown as Error).message}.`)
    throw because(path, 'written', thrown)
  }
}

/**
 * Replaces the file atomically and preserves its mode, owner and symbolic links. Fails if the file has changed since
 * the snapshot was taken. Returns the folders that were created.
 */
export async function replaceFile(before: FileSnapshot, bytes: Buffer): Promise<readonly string[]> {
  await refuseChanged(before)
  const folder = dirname(before.target)
  try {
    const made = await mkdir(folder, { recursive: true, mode: 0o700 })
    await removeTemporaryBeside(before.target)
    await writeAtomic(before.target, bytes, { mode: before.mode, owner: before.owner })
    return made === undefined ? [] : foldersFrom(made, folder)
  } catch (thrown) {
    throw because(before.path, 'written', thrown)
  }
}

/** Deletes the file. Fails if it has changed since the snapshot was taken. */
export async function remove(before: FileSnapshot): Promise<void> {
  await refuseChanged(before)
  await rm(before.target, { force: true }).catch((thrown) => {
    throw because(before.path, 'removed', thrown)
  })
}

async function refuseChanged(before: FileSnapshot): Promise<void> {
  const now = await readSnapshot(before.path)
  const same =
    now.target === before.target && (now.bytes ? before.bytes?.equals(now.bytes) : before.bytes === undefined)
  if (!same) throw new FileChanged(`${before.path} has changed in the meantime; nothing was written.`, 'Try again.')
}

function foldersFrom(first: string, last: string): string[] {
  const folders = [last]
  for (let folder = last; folder !== first && dirname(folder) !== folder; ) {
    folder = dirname(folder)
    folders.push(folder)
  }
  return folders
}

/** Thrown if a file cannot be read, edited or restored. The file is unchanged. `hint` says what to do. */
export class FileProblem extends Error {
  override readonly name: string = 'FileProblem'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

/** Thrown if a file has changed since it was read, so that writing it would undo somebody else's change. */
export class FileChanged extends FileProblem {
  override readonly name = 'FileChanged'
}
