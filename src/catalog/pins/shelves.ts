import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { ServerPins } from './record.ts'
import { createShelf, type Shelf } from './shelf.ts'
import { fileName, type PinStore } from './store.ts'
import { watchFolder } from './watch.ts'

/** The shelves of all servers, kept in step with what other processes write. */
export interface Shelves extends AsyncDisposable {
  of(server: string): Shelf
  all(): Iterable<readonly [server: string, shelf: Shelf]>
  /** Takes in what other processes have written since. */
  reload(): Promise<void>
  flush(): Promise<void>
}

export interface ShelvesOptions {
  readonly store: PinStore
  /** Decisions about this server may come out otherwise. */
  changed(server: string): void
  readonly clock: Clock
  readonly log: Log
}

export async function openShelves({ store, changed, clock, log }: ShelvesOptions): Promise<Shelves> {
  const shelves = new Map<string, Shelf>()
  let signatures = await store.signatures()
  const { records, unreadable } = await store.load()
  let reloading: Promise<void> | undefined
  let again = false

  const add = (server: string, found?: ServerPins): Shelf => {
    const lost = found === undefined && unreadable.has(fileName(server))
    const shelf = createShelf({ server, found, lost, changed: () => changed(server), store, clock, log })
    shelves.set(server, shelf)
    return shelf
  }
  const of = (server: string): Shelf => shelves.get(server) ?? add(server)
  for (const record of records) add(record.server, record)

  const readAll = async (): Promise<void> => {
    do {
      again = false
      const found = await store.signatures()
      for (const [name, signature] of found) {
        if (signatures.get(name) === signature || !name.endsWith('.json')) continue
        const record = await store.read(name)
        if (record && record !== 'unreadable') of(record.server).take(record)
      }
      signatures = found
    } while (again)
  }
  const reload = (): Promise<void> => {
    again = true
    reloading ??= readAll()
      .catch((error) => log.warn({ err: error }, 'could not look for approvals'))
      .finally(() => {
        reloading = undefined
      })
    return reloading
  }
  const watching = watchFolder(store.folder, clock, () => void reload())

  return {
    of,
    all: () => shelves,
    reload,
    flush: async () => void (await Promise.all([...shelves.values()].map((shelf) => shelf.flush()))),
    async [Symbol.asyncDispose]() {
      watching[Symbol.dispose]()
      await reloading
      await Promise.allSettled([...shelves.values()].map((shelf) => shelf[Symbol.asyncDispose]()))
    },
  }
}
