import {
  closeSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'

/** What writing the log needs of a file system: small, so that a test can make any of it fail. */
export interface FileSystem {
  openSync(path: string, flags: string, mode?: number): number
  closeSync(fd: number): void
  /** May write less than it is given. */
  writeSync(fd: number, bytes: Buffer, offset: number, length: number, position: number | null): number
  ftruncateSync(fd: number, bytes: number): void
  fdatasync(fd: number): Promise<void>
  fsyncSync(fd: number): void
  /** A folder must know a new file before that file counts. */
  syncFolder(path: string): Promise<void>
  /** How long a file is; undefined once it is gone from its folder, so that what is written to it is lost. */
  length(fd: number): number | undefined
  unlinkSync(path: string): void
  mkdirSync(path: string): void
}

export const nodeFileSystem: FileSystem = {
  openSync,
  closeSync,
  writeSync,
  ftruncateSync,
  fdatasync: promisify(fdatasync),
  fsyncSync,
  syncFolder: async (path) => {
    // Windows has no such thing and needs none.
    if (process.platform === 'win32') return
    await using folder = await open(path, 'r')
    await folder.sync()
  },
  length: (fd) => {
    const { nlink, size } = fstatSync(fd)
    return nlink === 0 ? undefined : size
  },
  unlinkSync,
  mkdirSync: (path) => mkdirSync(path, { recursive: true, mode: 0o700 }),
}

/** Writes all of it or throws. */
export function writeFully(files: FileSystem, fd: number, bytes: Buffer, position: number | null = null): void {
  for (let done = 0; done < bytes.length; ) {
    const written = files.writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done)
    // A disk that takes nothing and does not say why would otherwise keep us here for ever.
    if (written === 0) throw Object.assign(new Error('nothing was written'), { code: 'EIO' })
    done += written
  }
}
