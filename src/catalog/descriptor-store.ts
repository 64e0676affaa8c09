import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import { type Log, silentLog } from '../core/log.ts'
import type { DescriptorStore, Descriptors } from '../core/stores.ts'
import { parseJson } from '../json/parse-json.ts'
import { writeAtomic } from '../lib/files.ts'
import { isRecord } from '../lib/is-record.ts'

/** The file name for a server: readable, and unique on any file system. */
export function fileName(server: string): string {
  const hash = createHash('sha256').update(JSON.stringify(server)).digest('hex').slice(0, 16)
  return `${server.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 40)}-${hash}.json`
}

/** The record format version. Increment it when the format changes, so that other versions ignore the files. */
const listingVersion = 1

/** Persists servers' listings, one file each. A file that is damaged or from another version counts as absent. */
export function descriptorStore(folder: string, log: Log = silentLog): DescriptorStore {
  /** One read or write of a server's file at a time. */
  const turns = new FairSemaphore({ perCaller: 1 })

  return {
    async load(server, fingerprint) {
      const path = join(folder, fileName(server))
      using _turn = await turns.take(server)
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') log.warn({ server, path, err: error }, "cannot read a server's cached listing")
        return undefined
      })
      if (text === undefined) return undefined
      const record = parseJson(text)
      if (!isRemembered(record) || record.server !== server) {
        log.warn({ server, path }, "a server's cached listing is damaged; fetching it again")
        return undefined
      }
      if (record.fingerprint === fingerprint) return record.descriptors
      log.debug({ server }, "a server's configuration has changed; fetching its listing again")
      return undefined
    },
    async save(server, fingerprint, descriptors) {
      const text = JSON.stringify({ version: listingVersion, server, fingerprint, descriptors })
      using _turn = await turns.take(server)
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeAtomic(join(folder, fileName(server)), text)
    },
  }
}

interface Remembered {
  readonly server: string
  readonly fingerprint: string
  readonly descriptors: Descriptors
}

const isRemembered = (value: unknown): value is Remembered =>
  isRecord(value) && value.version === listingVersion && isDescriptors(value.descriptors)

function isDescriptors(value: unknown): value is Descriptors {
  if (!isRecord(value)) return false
  const lists = [value.tools, value.resources, value.templates, value.prompts, value.skills ?? []]
  return (
    Number.isFinite(value.fetchedAt) &&
    (value.era === 'legacy' || value.era === 'modern') &&
    typeof value.protocolVersion === 'string' &&
    isRecord(value.serverInfo) &&
    isRecord(value.capabilities) &&
    (value.instructions === undefined || typeof value.instructions === 'string') &&
    (value.exactSchemas === undefined || isTextsOfObjects(value.exactSchemas)) &&
    lists.every((list) => Array.isArray(list) && list.every(isRecord))
  )
}

const isTextsOfObjects = (value: unknown): boolean =>
  isRecord(value) && Object.values(value).every((text) => typeof text === 'string' && isRecord(parseJson(text)))
