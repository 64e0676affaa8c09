import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ToolwayError } from '../core/errors.ts'
import type { Locks } from '../core/stores.ts'
import { lockFile } from '../lib/file-lock.ts'

/** How long to wait for a lock. This is longer than any work under a lock takes: a token refresh times out earlier. */
const defaultMaxWaitMs = 30_000

export function memoryLocks(): Locks {
  const last = new Map<string, Promise<void>>()
  return {
    async hold(name) {
      const before = last.get(name)
      const { promise, resolve } = Promise.withResolvers<void>()
      last.set(name, promise)
      await before
      return {
        async [Symbol.asyncDispose]() {
          if (last.get(name) === promise) last.delete(name)
          resolve()
        },
      }
    },
  }
}

/** Locks for processes that share a state folder. Within one process, only one waiter at a time polls the file. */
export function fileLocks(stateFolder: string, maxWaitMs = defaultMaxWaitMs): Locks {
  const own = memoryLocks()
  const folder = join(stateFolder, 'locks')
  return {
    async hold(name) {
      const inside = await own.hold(name)
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        const file = createHash('sha256').update(name).digest('hex')
        const outside = await lockFile(join(folder, file), maxWaitMs)
        return {
          async [Symbol.asyncDispose]() {
            await outside[Symbol.asyncDispose]()
            await inside[Symbol.asyncDispose]()
          },
        }
      } catch (error) {
        await inside[Symbol.asyncDispose]()
        // Waiting does not help with an OS error, so do not report OVERLOADED.
        if ((error as NodeJS.ErrnoException).code !== undefined) throw error
        throw new ToolwayError('OVERLOADED', `${(error as Error).message}.`, { unsent: true, cause: error })
      }
    },
  }
}
