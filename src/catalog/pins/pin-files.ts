import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { mkdir, readdir, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { builtInSources } from '../../core/source.ts'
import { writeAtomic } from '../../lib/atomic-write.ts'
import { lockFile } from '../../lib/file-lock.ts'
import { parseRecord, recordText, type ServerPins } from './pin-record.ts'

/** Max bytes per pin file. Toolway never writes a larger one, so a larger file is not read into memory. */
const largestFile = 64 * 1_048_576

/** Max time to wait for the lock on a file. Other processes may be waiting for the same lock. */
const lockWaitMs = 12_000

export type PinFiles = ReturnType<typeof openPinFiles>

export const pinsFolder = (folder: string): string => join(folder, 'pins')

const setAside = '.damaged'

/** Access to the pin files: one per server, shared by several processes. */
export function openPinFiles(folder: string, log: Log) {
  /**
   * Reads one file: undefined if it does not exist, 'unreadable' if it is damaged or written by a newer Toolway. Rejects
   * if too many files are open.
   */
  const read = async (name: string): Promise<ServerPins | 'unreadable' | undefined> => {
    const path = join(folder, name)
    try {
      if ((await stat(path)).size > largestFile) throw new Error('the file is too large')
      const record = parseRecord(await readFile(path, 'utf8'))
      if (record === 'newer') {
        log.warn(
          { path },
          'pins were written by a newer version of Toolway; leaving the file unchanged and trusting no definitions',
        )
        return 'unreadable'
      }
      // 0.1.0 pinned sinks, too.
      if (record && builtInSources.includes(record.server)) return undefined
      if (record && fileName(record.server) === name) return record
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
        return (await isThere(path + setAside)) ? 'unreadable' : undefined
      }
      if (isOutOfFiles(error)) throw error
      log.warn({ path, err: error }, "cannot read a server's pins; its definitions need approval")
      return 'unreadable'
    }
    await rename(path, path + setAside)
    log.warn(
      { path: path + setAside },
      "moved a server's damaged pins away; approve its definitions again with `toolway pins approve`",
    )
    return 'unreadable'
  }

  return {
    folder,
    read,
    async load() {
      const names = new Set((await list(folder)).map((name) => name.replace(setAside, '')))
      const records: ServerPins[] = []
      const unreadable = new Set<string>()
      for (const name of names) {
        const record = await read(name)
        if (record === 'unreadable') unreadable.add(name)
        else if (record) records.push(record)
      }
      return { records, unreadable }
    },
    /** Changes a server's record under a lock. Writes nothing if `change` returns its argument. */
    async update(server: string, change: (current: ServerPins | undefined) => ServerPins): Promise<ServerPins> {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const name = fileName(server)
      await using _lock = await lockFile(join(folder, `.${name}.lock`), lockWaitMs)
      const found = await read(name)
      if (found === 'unreadable' && (await isThere(join(folder, name))))
        throw new Error(`not overwriting ${name} because it cannot be read`)
      const current = found === 'unreadable' ? undefined : found
      const next = change(current)
      if (next !== current) await writeAtomic(join(folder, name), recordText(next))
      return next
    },
    /** The mtime, size and inode of each file, to detect writes by other processes. */
    async signatures(): Promise<ReadonlyMap<string, string>> {
      const found = new Map<string, string>()
      for (const name of await list(folder)) {
        const { mtimeMs, size, ino } = (await stat(join(folder, name)).catch(() => undefined)) ?? {}
        if (mtimeMs !== undefined) found.set(name, `${mtimeMs} ${size} ${ino}`)
      }
      return found
    },
  }
}

const isThere = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

/** Whether too many files are open, which says nothing about the file that was to be read. */
const isOutOfFiles = (error: unknown): boolean =>
  ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')

async function list(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    // An empty list would mean that there are no pins, and every definition would be trusted.
    if (isOutOfFiles(error)) throw error
    return []
  })
  return names.filter((name) => /^[^.].*\.json(?:\.damaged)?$/.test(name))
}

/** The file name for a server: readable, and unique on any file system. */
export function fileName(server: string): string {
  const hash = createHash('sha256').update(JSON.stringify(server)).digest('hex').slice(0, 16)
  return `${server.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 40)}-${hash}.json`
}

/** How often to poll the folder's mtime, a fallback for watching. Every write ends with a rename, which changes it. */
const pollMs = 500

/** Calls `touched` when the folder may have changed. The folder does not have to exist yet. */
export function watchFolder(folder: string, clock: Clock, touched: () => void): Disposable {
  let watcher: FSWatcher | undefined
  let timer: Disposable | undefined
  let last: number | undefined
  let over = false

  const listen = () => {
    try {
      watcher = watch(folder, { persistent: false }, touched)
      watcher.on('error', () => {
        watcher?.close()
        watcher = undefined
      })
    } catch {
      watcher = undefined
    }
  }

  const look = async () => {
    const mtimeMs = (await stat(folder).catch(() => undefined))?.mtimeMs
    if (over) return
    if (mtimeMs !== undefined && !watcher) listen()
    if (mtimeMs !== last) touched()
    last = mtimeMs
    timer = clock.after(pollMs, () => void look())
  }

  listen()
  timer = clock.after(pollMs, () => void look())
  return {
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
      watcher?.close()
    },
  }
}
