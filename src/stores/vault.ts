import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Vault } from '../core/stores.ts'
import { writeAtomic } from '../lib/atomic-write.ts'
import { jsonValue } from '../lib/parse-json.ts'
import { createSeal, type Seal } from '../lib/seal.ts'
import { keptSecret } from './secret-file.ts'

/**
 * A vault in a folder, with one sealed file per key. File names reveal nothing, and each file is bound to its key, so a
 * file copied over another cannot be opened. The sealing key is stored next to the folder, readable only by its owner.
 */
export function fileVault(stateFolder: string): Vault {
  const folder = join(stateFolder, 'vault')
  let opened: Promise<Seal> | undefined
  const seal = () => {
    opened ??= keptSecret(stateFolder, 'vault-key').then(createSeal)
    // Forget a failed attempt, because the folder may be writable the next time.
    opened.catch(() => {
      opened = undefined
    })
    return opened
  }

  const openedFile = async (name: string): Promise<VaultRecord | undefined> => {
    const text = await readFile(join(folder, name), 'utf8').catch(absent)
    return text === undefined ? undefined : openRecord(await seal(), name, text)
  }

  return {
    read: async (key) => (await openedFile(nameOf(key)))?.text,
    async write(key, text) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const sealed = closeRecord(await seal(), nameOf(key), { key, text })
      await writeAtomic(join(folder, nameOf(key)), `${sealed}\n`)
    },
    remove: (key) => rm(join(folder, nameOf(key)), { force: true }),
    async keys() {
      const names = (await readdir(folder).catch(absent)) ?? []
      const kept = await Promise.all(names.filter((name) => isName.test(name)).map(openedFile))
      return kept.flatMap((one) => one?.key ?? []).sort()
    },
  }
}

const isName = /^[0-9a-f]{64}$/
const nameOf = (key: string): string => createHash('sha256').update(key).digest('hex')

function absent(error: NodeJS.ErrnoException): undefined {
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
