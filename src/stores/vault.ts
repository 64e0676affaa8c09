import { hash } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ToolwayError } from '../core/errors.ts'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import type { Locks, Vault } from '../core/stores.ts'
import { jsonValue } from '../json/parse-json.ts'
import { lockFile, makeFolder, writeAtomic } from '../lib/files.ts'
import { createLazy } from '../lib/memoize.ts'
import { createSeal, type Seal } from '../lib/seal.ts'
import { keptSecret } from './secret-file.ts'

/**
 * A vault in a folder, with one sealed file per key. File names reveal nothing, and each file is bound to its key, so a
 * file copied over another cannot be opened. The sealing key is stored next to the folder, readable only by its owner.
 */
export function fileVault(stateFolder: string): Vault {
  const folder = join(stateFolder, 'vault')
  const seal = vaultSeal(stateFolder)

  const openedFile = async (name: string): Promise<VaultRecord | undefined> => {
    const text = await readFile(join(folder, name), 'utf8').catch(undefinedIfAbsent)
    return text === undefined ? undefined : openRecord(await seal(), name, text)
  }

  return {
    read: async (key) => (await openedFile(recordName(key)))?.text,
    async write(key, text) {
      makeFolder(folder)
      const sealed = closeRecord(await seal(), recordName(key), { key, text })
      await writeAtomic(join(folder, recordName(key)), `${sealed}\n`)
    },
    remove: (key) => rm(join(folder, recordName(key)), { force: true }),
    async keys() {
      const names = (await readdir(folder).catch(undefinedIfAbsent)) ?? []
      const kept = await Promise.all(names.filter((name) => recordNamePattern.test(name)).map(openedFile))
      return kept.flatMap((one) => one?.key ?? []).sort()
    },
  }
}

/** The seal of the vault's files, and of other private data at rest. Its key is read or made on first use. */
export const vaultSeal = (stateFolder: string): (() => Promise<Seal>) =>
  createLazy(async () => createSeal(await keptSecret(stateFolder, 'vault-key'))).get

const recordNamePattern = /^[0-9a-f]{64}$/
const recordName = (key: string): string => hash('sha256', key)

function undefinedIfAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** The content of a record. It includes the key, because the record's name is only a hash of the key. */
interface VaultRecord {
  readonly key: string
  readonly text: string
}

/** The maximum size of a record, far larger than any token. A larger record was not written by Toolway. */
const maxRecord = 256 * 1024

/** Seals a record and binds it to its name, so that a record copied over another cannot be opened. */
export const closeRecord = (seal: Seal, name: string, record: VaultRecord): string =>
  seal.close(JSON.stringify({ key: record.key, text: record.text }), name)

/** Opens a record; undefined if it is damaged, has another name, or was sealed with another key. */
export function openRecord(seal: Seal, name: string, sealed: string): VaultRecord | undefined {
  const content = sealed.length > maxRecord ? undefined : seal.open(sealed.trim(), name)
  return content === undefined ? undefined : (jsonValue(content) as VaultRecord)
}

/** How long to wait for a lock. This is longer than any work under a lock takes: a token refresh times out earlier. */
const maxFileLockWaitMs = 30_000

export function memoryLocks(): Locks {
  const locks = new FairSemaphore({ perCaller: 1 })
  return {
    async hold(name) {
      const held = await locks.take(name)
      return { [Symbol.asyncDispose]: async () => held[Symbol.dispose]() }
    },
  }
}

/** Locks that processes compete for. Within one process, only one waiter at a time does, so that it alone polls. */
export function competingLocks(compete: (name: string) => Promise<AsyncDisposable>): Locks {
  const own = memoryLocks()
  return {
    async hold(name) {
      await using held = new AsyncDisposableStack()
      held.use(await own.hold(name))
      held.use(await compete(name))
      return held.move()
    },
  }
}

/** Locks for processes that share a state folder. */
export function fileLocks(stateFolder: string, maxWaitMs = maxFileLockWaitMs): Locks {
  const folder = join(stateFolder, 'locks')
  return competingLocks(async (name) => {
    try {
      makeFolder(folder)
      return await lockFile(join(folder, hash('sha256', name)), maxWaitMs)
    } catch (error) {
      // Waiting does not help with an OS error, so do not report OVERLOADED.
      if ((error as NodeJS.ErrnoException).code !== undefined) throw error
      throw new ToolwayError('OVERLOADED', `${(error as Error).message}.`, { unsent: true, cause: error })
    }
  })
}
