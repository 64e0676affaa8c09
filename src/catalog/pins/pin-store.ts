import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { fileName, type PinFiles, watchFolder } from './pin-files.ts'
import {
  type DefinitionSnapshot,
  emptyRecord,
  keyOf,
  mergePins,
  mergeRecords,
  type Pin,
  type PinKind,
  type ServerPins,
} from './pin-record.ts'

/** Changes are collected for 20 times as long as the last write took, within these bounds, before they are written. */
const gatherMs = 200
const maxGatherMs = 5_000
const restPerWrite = 20
/** The delay before retrying a failed write. The disk may be full for a while. */
const againMs = 10_000

export type ServerPinStore = ReturnType<typeof createServerPinStore>

interface PinStoreOptions {
  readonly files: PinFiles
  changed(server: string): void
  readonly clock: Clock
  readonly log: Log
}

/** One server's pins, in memory and, with a delay, on disk. `lost`: the file existed but could not be read. */
function createServerPinStore(server: string, found: ServerPins | undefined, lost: boolean, options: PinStoreOptions) {
  const { files, clock, log } = options
  let record = found ?? emptyRecord(server, lost ? clock.now() : 0)
  let pins = new Map(record.pins)
  let generation = 0
  let dirty = false
  let timer: Disposable | undefined
  let writing = Promise.resolve()
  let gather = gatherMs
  let blocks = hasBlocks(pins)

  const current = (): ServerPins => {
    if (record.pins !== pins) record = { ...record, pins }
    return record
  }

  const soon = (ms = gather) => {
    dirty = true
    timer ??= clock.after(ms, () => {
      timer = undefined
      flush().catch(() => {})
    })
  }

  const take = (other: ServerPins): void => {
    const merged = mergeRecords(current(), other)
    const news = differs(current(), merged)
    record = merged
    pins = new Map(merged.pins)
    blocks = hasBlocks(pins)
    if (!news) return
    generation++
    options.changed(server)
  }

  const write = async (): Promise<void> => {
    if (!dirty) return
    dirty = false
    const start = performance.now()
    try {
      take(await files.update(server, (disk) => (disk ? grown(disk, mergeRecords(disk, current())) : current())))
      gather = Math.min(maxGatherMs, Math.max(gatherMs, restPerWrite * (performance.now() - start)))
    } catch (error) {
      log.warn({ server, err: error }, 'could not save pins; they stay in memory, and the write is retried')
      soon(againMs)
      throw error
    }
  }

  function flush(): Promise<void> {
    timer?.[Symbol.dispose]()
    timer = undefined
    const written = writing.then(write)
    writing = written.catch(() => {})
    return written
  }

  if (lost) soon()
  return {
    get record() {
      return current()
    },
    get size() {
      return pins.size
    },
    /** Incremented if approvals, a new origin or another process's pins may change decisions. `put` does not count. */
    get generation() {
      return generation
    },
    /** Whether an operator has blocked a definition of this server. */
    get hasBlocks() {
      return blocks
    },
    pin: (kind: PinKind, name: string) => pins.get(keyOf(kind, name)),
    put(pin: Pin): void {
      const key = keyOf(pin.kind, pin.name)
      const known = pins.get(key)
      pins.set(key, known ? mergePins(known, pin) : pin)
      soon()
    },
    /** Replaces the whole record, after an operator's decision or a change that concerns the whole server. */
    replace(next: ServerPins): void {
      record = next
      pins = new Map(next.pins)
      blocks = hasBlocks(pins)
      generation++
      soon()
    },
    take,
    flush,
    async [Symbol.asyncDispose](): Promise<void> {
      await flush().catch(() => {})
      timer?.[Symbol.dispose]()
    },
  }
}

/** The record to write. It is `disk` itself if the merge adds nothing, which skips the write. */
const grown = (disk: ServerPins, merged: ServerPins): ServerPins =>
  JSON.stringify([{ ...disk, pins: [...disk.pins.values()] }]) ===
  JSON.stringify([{ ...merged, pins: [...merged.pins.values()] }])
    ? disk
    : merged

/** Whether decisions may differ between two records. */
function differs(before: ServerPins, after: ServerPins): boolean {
  if (before.acknowledged !== after.acknowledged || before.distrusted !== after.distrusted) return true
  for (const [key, { approved, blocked }] of after.pins) {
    const was = before.pins.get(key)
    if (was === undefined || JSON.stringify(was.approved.map(asDecision)) !== JSON.stringify(approved.map(asDecision)))
      return true
    if (JSON.stringify(was.blocked) !== JSON.stringify(blocked)) return true
  }
  return false
}

const hasBlocks = (pins: ReadonlyMap<string, Pin>): boolean => [...pins.values()].some(({ blocked }) => blocked)

const asDecision = ({ hash, by, high, flags }: DefinitionSnapshot & { readonly by: string }) => [hash, by, high, flags]

/** All servers' stores, kept in sync with what other processes write. */
export async function openPinStore(options: PinStoreOptions) {
  const { files, clock, log } = options
  const stores = new Map<string, ServerPinStore>()
  let signatures = await files.signatures()
  const { records, unreadable } = await files.load()
  let reloading: Promise<void> | undefined
  let again = false
  let retry: Disposable | undefined

  const add = (server: string, found?: ServerPins): ServerPinStore => {
    const lost = found === undefined && unreadable.has(fileName(server))
    const store = createServerPinStore(server, found, lost, options)
    stores.set(server, store)
    return store
  }
  const of = (server: string): ServerPinStore => stores.get(server) ?? add(server)
  for (const record of records) add(record.server, record)

  const readAll = async (): Promise<void> => {
    do {
      again = false
      const found = await files.signatures()
      for (const [name, signature] of found) {
        if (signatures.get(name) === signature || !name.endsWith('.json')) continue
        const record = await files.read(name)
        if (record && record !== 'unreadable') of(record.server).take(record)
      }
      signatures = found
    } while (again)
  }
  const reload = (): Promise<void> => {
    again = true
    reloading ??= readAll()
      .catch((error) => {
        log.warn({ err: error }, 'could not read approvals; trying again')
        retry?.[Symbol.dispose]()
        retry = clock.after(againMs, () => void reload())
      })
      .finally(() => {
        reloading = undefined
      })
    return reloading
  }
  const watching = watchFolder(files.folder, clock, () => void reload())

  return {
    of,
    all: (): ReadonlyMap<string, ServerPinStore> => stores,
    reload,
    flush: async () => void (await Promise.all([...stores.values()].map((store) => store.flush()))),
    async [Symbol.asyncDispose]() {
      watching[Symbol.dispose]()
      await reloading
      retry?.[Symbol.dispose]()
      await Promise.allSettled([...stores.values()].map((store) => store[Symbol.asyncDispose]()))
    },
  }
}
