import { constants, existsSync } from 'node:fs'
import { type FileHandle, mkdir, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { ToolwayError } from '../../../core/errors.ts'

/**
 * A folder that is held open. Names in it are found through the open folder and not by its path, where the system can
 * do that: whoever puts a link in its place meanwhile leads nobody astray.
 */
export interface HeldFolder extends AsyncDisposable {
  readonly path: string
  /** How to reach a name in it. */
  at(name: string): string
  /** Whether its path still leads to it. */
  isThere(): Promise<boolean>
  /** Makes what was put into it last. */
  sync(): Promise<void>
}

const openFolder = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0)
const throughDescriptors = process.platform === 'linux' && existsSync('/proc/self/fd')

/** Opens a folder that exists; one that is a link is refused. `path` must be real. */
export async function holdFolder(path: string, at: string = path): Promise<HeldFolder> {
  const handle = await open(at, openFolder)
  return held(path, handle)
}

/** Opens a folder in a folder, and makes it if need be. */
export async function holdInside(folder: HeldFolder, name: string): Promise<HeldFolder> {
  await mkdir(folder.at(name)).catch(unless('EEXIST'))
  try {
    return await holdFolder(join(folder.path, name), folder.at(name))
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code !== 'ELOOP' && code !== 'ENOTDIR') throw thrown
    throw new ToolwayError('INVALID_PATH', `"${name}" is not a folder but a link or a file: nothing was written.`)
  }
}

function held(path: string, handle: FileHandle): HeldFolder {
  const base = throughDescriptors ? `/proc/self/fd/${handle.fd}` : path
  return {
    path,
    at: (name) => join(base, name),
    isThere: async () => (await realpath(path).catch(unless('ENOENT', 'ENOTDIR'))) === path,
    sync: () => handle.sync(),
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

/** Passes errors with these codes over. */
export const unless =
  (...codes: readonly string[]) =>
  (thrown: unknown): undefined => {
    if (!codes.includes((thrown as NodeJS.ErrnoException).code ?? '')) throw thrown
  }
