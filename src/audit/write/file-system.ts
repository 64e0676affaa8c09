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

/** The file system functions that the log uses; tests make them fail. */
export interface FileSystem {
  openSync(path: string, flags: string, mode?: number): number
  closeSync(fd: number): void
  /** May write fewer bytes than given. */
  writeSync(fd: number, bytes: Buffer, offset: number, length: number, position: number | null): number
  ftruncateSync(fd: number, bytes: number): void
  fdatasync(fd: number): Promise<void>
  fsyncSync(fd: number): void
  /** A new file survives a crash only after its folder is synced. */
  syncFolder(path: string): Promise<void>
  /** Undefined once the file is unlinked: whatever is written to it is lost. */
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
    // Windows cannot sync folders and does not need to.
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

export function writeFully(files: FileSystem, fd: number, bytes: Buffer, position: number | null = null): void {
  for (let done = 0; done < bytes.length; ) {
    const written = files.writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done)
    // Avoid an endless loop if the disk accepts nothing and reports no error.
    if (written === 0) throw Object.assign(new Error('nothing was written'), { code: 'EIO' })
    done += written
  }
}
