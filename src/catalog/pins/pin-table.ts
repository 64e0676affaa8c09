import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { jsonValue, parseJson } from '../../json/parse-json.ts'
import { inTransaction, openSqliteFile, type SqliteFile, type SqliteTrouble } from '../../lib/sqlite.ts'
import { fileName } from '../descriptor-store.ts'
import { readPinFiles } from './import-pin-files.ts'
import {
  type Approval,
  addOrigin,
  addPending,
  type DefinitionSnapshot,
  factsSchema,
  type Pin,
  type PinFacts,
  type PinKind,
  pinKey,
  pinSchema,
  type ServerPins,
} from './pin-record.ts'

/** Other versions leave the file unchanged, so change this with each change of the format. */
const pinsVersion = 1

/**
 * Each row is a pin, the facts about a server (kind `server`), or the time of a loss (kind `lost`): of the file of
 * Toolway 0.2 with this name, or of everything. A row's revision is higher than that of all rows written before.
 */
const pinsSchema = `
  CREATE TABLE pins (server TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (server, kind, name));
  CREATE INDEX pins_revision ON pins (revision)`

const upsert = `
  INSERT INTO pins VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET revision = excluded.revision, value = excluded.value`

/** How often changes are saved and those of other processes are read. */
const pinsSyncMs = 500
/** The delay after a failure. The disk may be full for a while. */
const pinsRetryMs = 10_000
/** How long to wait for another process that is writing. Writes take milliseconds. */
const pinsBusyMs = 1_000
/** Max characters stored per server. What exceeds them is stored without copies of definitions. */
const maxServerLength = 16 * 1_048_576

export const pinsFolder = (folder: string): string => join(folder, 'pins')
export const pinsPath = (folder: string): string => join(pinsFolder(folder), 'pins.sqlite')

export interface PinTableOptions {
  /** The state folder. */
  readonly folder: string
  /** Called when another process changed a decision about a server's definitions. */
  changed?(server: string): void
  readonly clock: Pick<Clock, 'now' | 'after'>
  readonly log: Log
}

/** One server's pins, in memory. Only the table changes them. */
export class StoredPins implements ServerPins {
  readonly server: string
  readonly pins = new Map<string, Pin>()
  facts: PinFacts
  /** Incremented by decisions, here or in other processes, but not when a definition is seen. */
  generation = 0
  /** Whether an operator has ever blocked one of its definitions. */
  hasBlocks = false
  readonly #lengths = new Map<string, number>()
  #length = 0

  constructor(server: string, distrusted: number) {
    this.server = server
    this.facts = { origins: [], acknowledged: 0, distrusted, listed: false }
  }

  set(pin: Pin): void {
    this.pins.set(pinKey(pin.kind, pin.name), pin)
    this.hasBlocks ||= pin.blocked !== undefined
  }

  pin(kind: PinKind, name: string): Pin | undefined {
    return this.pins.get(pinKey(kind, name))
  }

  /** Notes the length of a pin's row. Returns that of all rows. */
  measure({ kind, name }: Pin, text: string): number {
    const key = pinKey(kind, name)
    this.#length += text.length - (this.#lengths.get(key) ?? 0)
    this.#lengths.set(key, text.length)
    return this.#length
  }
}

type RowKind = PinKind | 'server' | 'lost'

const rowKey = (server: string, kind: RowKind, name = ''): string => JSON.stringify([server, kind, name])

/**
 * The pins of all servers, in memory and in a table that several processes share. What is seen is saved soon, and what
 * operators decide at once, each in a transaction that first reads the rows that others wrote.
 */
export class PinTable implements Disposable {
  readonly servers = new Map<string, StoredPins>()
  readonly #options: PinTableOptions
  readonly #file: SqliteFile
  /** The keys of the rows to save. */
  readonly #unsaved = new Set<string>()
  /** When the pins were lost: those in a file of Toolway 0.2, or, under the name '', all. */
  readonly #lost = new Map<string, number>()
  #revision = 0
  #trouble: SqliteTrouble | undefined
  #timer: Disposable | undefined

  constructor(options: PinTableOptions) {
    this.#options = options
    const path = pinsPath(options.folder)
    const mayHavePins = holdsFiles(pinsFolder(options.folder))
    this.#file = openSqliteFile({
      path,
      version: pinsVersion,
      keepsOtherVersions: true,
      busyMs: pinsBusyMs,
      create: (database) => this.#create(database),
      prepare: () => this.#opened(),
      say: (trouble) => this.#report(trouble),
    })
    if (this.#use((database) => this.#load(database))) return
    const code = this.#trouble?.code
    if (code === 'EMFILE' || code === 'ENFILE') throw Object.assign(new Error(`cannot read ${path}: ${code}`), { code })
    // First sight must not count as approval while the pins cannot be read.
    if (mayHavePins) this.#lost.set('', options.clock.now())
  }

  of(server: string): StoredPins {
    const known = this.servers.get(server)
    if (known) return known
    const pins = new StoredPins(server, this.#lost.get('') || this.#lost.get(fileName(server)) || 0)
    this.servers.set(server, pins)
    return pins
  }

  put(server: string, pin: Pin): void {
    this.of(server).set(pin)
    this.#unsaved.add(rowKey(server, pin.kind, pin.name))
  }

  putFacts(server: string, facts: Partial<PinFacts>): void {
    const stored = this.of(server)
    stored.facts = { ...stored.facts, ...facts }
    this.#unsaved.add(rowKey(server, 'server'))
  }

  /** Trusts servers at first sight again that were unknown when pins were lost. */
  acknowledgeLoss(): void {
    for (const server of this.#lost.keys()) {
      this.#lost.set(server, 0)
      this.#unsaved.add(rowKey(server, 'lost'))
    }
  }

  /** Applies operators' decisions to the latest pins and saves them. If that fails, they stay in memory and it throws. */
  decide<T>(run: () => T): T {
    let result: { readonly value: T } | undefined
    const isSaved = this.#save(() => {
      result ??= { value: run() }
    })
    result ??= { value: run() }
    if (!isSaved) throw this.#failure()
    // Unlike a commit, this also survives a power cut.
    this.#use((database) => database.exec('PRAGMA wal_checkpoint(PASSIVE)'))
    return result.value
  }

  /** Notes that decisions about a server's definitions may have changed. */
  decided(stored: StoredPins): void {
    stored.generation++
    if (this.#timer) this.#options.changed?.(stored.server)
  }

  /** Saves what has changed, and reads what others changed. Returns false if it fails. */
  sync(): boolean {
    return this.#unsaved.size > 0 ? this.#save(() => {}) : this.#use((database) => this.#load(database))
  }

  /** The same, but throws if it fails. */
  flush(): void {
    if (!this.sync()) throw this.#failure()
  }

  /** Keeps the pins in sync until the table is disposed of. */
  watch(): void {
    this.#timer = this.#options.clock.after(this.#trouble ? pinsRetryMs : pinsSyncMs, () => {
      this.sync()
      this.watch()
    })
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
    if (this.#unsaved.size > 0) this.sync()
    this.#file[Symbol.dispose]()
  }

  #use(work: (database: DatabaseSync) => unknown): boolean {
    return this.#file.use((database) => ({ value: work(database) })) !== undefined
  }

  #save(run: () => void): boolean {
    const isSaved = this.#use((database) =>
      inTransaction(database, () => {
        this.#load(database)
        run()
        const save = database.prepare(upsert)
        for (const key of this.#unsaved) {
          const [server, kind, name] = jsonValue(key) as [string, RowKind, string]
          save.run(server, kind, name, this.#revision + 1, this.#rowText(server, kind, name))
        }
      }),
    )
    if (!isSaved) return false
    if (this.#unsaved.size > 0) this.#revision++
    this.#unsaved.clear()
    return true
  }

  #rowText(server: string, kind: RowKind, name: string): string {
    if (kind === 'lost') return String(this.#lost.get(server))
    const stored = this.of(server)
    if (kind === 'server') return JSON.stringify(stored.facts)
    const pin = stored.pin(kind, name) as Pin
    const text = JSON.stringify(pin)
    if (stored.measure(pin, text) <= maxServerLength) return text
    const bare = JSON.stringify(pin, (key, value) => (key === 'definition' ? undefined : value))
    stored.measure(pin, bare)
    return bare
  }

  #load(database: DatabaseSync): void {
    const rows = database.prepare('SELECT * FROM pins WHERE revision > ? ORDER BY revision').iterate(this.#revision)
    for (const { server, kind, name, value, revision } of rows) {
      this.#read(server as string, kind as RowKind, name as string, value as string)
      this.#revision = revision as number
    }
  }

  /** Applies a row that another process wrote. It wins; definitions that only this process has seen await approval. */
  #read(server: string, kind: RowKind, name: string, value: string): void {
    const isUnsaved = this.#unsaved.delete(rowKey(server, kind, name))
    if (kind === 'lost') return void this.#lost.set(server, Number(value))
    const stored = this.of(server)
    const json = parseJson(value)
    // Do not compile the schemas (`jitless`): that takes longer than parsing the rows that are read at startup.
    if (kind === 'server') {
      const facts = factsSchema.safeParse(json, { jitless: true }).data
      if (!facts) return void this.#distrust(stored)
      const { acknowledged, distrusted, origins } = stored.facts
      const own = isUnsaved ? origins.at(-1) : undefined
      stored.facts = own ? { ...facts, origins: addOrigin(facts.origins, own) } : facts
      if (facts.acknowledged !== acknowledged || facts.distrusted !== distrusted) this.decided(stored)
      return
    }
    const read = pinSchema.safeParse(json, { jitless: true }).data
    if (!read) return void this.#distrust(stored)
    stored.measure(read, value)
    const before = stored.pin(kind, name)
    const seen = isUnsaved && before ? [...before.approved.map(withoutApproval), ...before.pending] : []
    const pin = seen.reduce(addPending, read)
    if (pin === read) stored.set(pin)
    else this.put(server, pin)
    if (!before || decisionsIn(before) !== decisionsIn(pin)) this.decided(stored)
  }

  #distrust({ server }: StoredPins): void {
    this.#options.log.warn({ server }, "a server's pins are damaged; its definitions need approval")
    this.putFacts(server, { distrusted: this.#options.clock.now() })
  }

  /** Fills a new file: with the pins of earlier versions, or, if a damaged file was moved aside, with a note of the loss. */
  #create(database: DatabaseSync): void {
    const { folder, clock, log } = this.#options
    database.exec(pinsSchema)
    const save = database.prepare(upsert)
    const replaces = this.#trouble?.aside !== undefined
    this.#trouble = undefined
    const { records, lost } = replaces ? { records: [], lost: [''] } : readPinFiles(pinsFolder(folder), log)
    for (const file of lost) save.run(file, 'lost', '', 1, String(clock.now()))
    for (const { server, facts, pins } of records) {
      save.run(server, 'server', '', 1, JSON.stringify(facts))
      for (const pin of pins.values()) save.run(server, pin.kind, pin.name, 1, JSON.stringify(pin))
    }
  }

  /** A file was opened for the first time, or in place of one that was removed or damaged: save all that is known. */
  #opened(): void {
    this.#revision = 0
    this.#lost.clear()
    for (const [server, { pins }] of this.servers) {
      this.putFacts(server, {})
      for (const pin of pins.values()) this.put(server, pin)
    }
  }

  #report(trouble: SqliteTrouble | undefined): void {
    const { folder, log } = this.#options
    this.#trouble = trouble
    if (!trouble) return
    const message =
      trouble.aside === undefined
        ? 'could not save pins; they stay in memory, and the write is retried'
        : 'moved damaged pins away; approve definitions again with `toolway pins approve`'
    log.warn({ path: pinsPath(folder), ...trouble }, message)
  }

  #failure(): Error {
    const { code = 'unknown error' } = this.#trouble ?? {}
    return new Error(`could not save pins: ${pinsPath(this.#options.folder)} cannot be read or written (${code})`)
  }
}

const withoutApproval = ({ by: _, ...snapshot }: Approval): DefinitionSnapshot => snapshot

/** What decisions depend on. */
const decisionsIn = ({ approved, blocked }: Pin): string =>
  JSON.stringify([approved.map(({ hash, by, high, flags }) => [hash, by, high, flags]), blocked])

/** Whether a folder has files, or cannot be read. */
function holdsFiles(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0
  } catch (error) {
    return !['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}
