import type { Clock } from '../../core/clock.ts'
import type { Denial } from '../../core/decision.ts'
import type { Entry } from '../../core/entry.ts'
import type { Log } from '../../core/log.ts'
import { builtInSources, type Source } from '../../core/source.ts'
import { listen } from '../../lib/listen.ts'
import type { ScanFinding } from '../scan/finding.ts'
import { ToolNames } from '../scan/lookalike-names.ts'
import { type PinnedDefinition, pinnedDefinitionOf } from './definition-snapshot.ts'
import { createNotices } from './notices.ts'
import { createPinEvaluator, createScanQueue, createUnpinnedFlags, type Pinned } from './pin-evaluator.ts'
import { openPinFiles, pinsFolder } from './pin-files.ts'
import type { Pin, PinKind, RecordedOrigin, ServerOrigin, ServerPins } from './pin-record.ts'
import { reviewPin } from './pin-review.ts'
import {
  type Approved,
  approvalOf,
  approveIn,
  blockIn,
  findPin,
  isUnacknowledged,
  type PinState,
  type PinsMode,
  type Selection,
  statesOf,
} from './pin-state.ts'
import { openPinStore, type ServerPinStore } from './pin-store.ts'

export type { Pinned } from './pin-evaluator.ts'

export interface PinsOptions {
  readonly mode: PinsMode
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}

/** Servers' approved definitions: the first one seen for each name, and those that an operator approved later. */
export interface Pins extends AsyncDisposable {
  /** Records each server's current origin. A changed origin is logged, and the server's pins stay in force. */
  noteOrigins(origins: ReadonlyMap<string, ServerOrigin>): void
  /** Compares an entry with its pin. Called for every decision, so it does more than a lookup only the first time. */
  check(entry: Entry): Pinned
  /** Compares a server's instructions with their pin. Empty instructions are always usable. */
  checkServer(server: string, instructions: string): Pinned
  /** Checks everything that a server lists. After its first listing with entries, further ones are new. */
  checkListing(server: ListedServer): void
  denialOf(entry: Entry): Denial | undefined
  /** The scanner's findings so far, plus `changed` if the definition is not approved. */
  flagsOf(entry: Entry): readonly string[]
  readonly mode: PinsMode
  list(): readonly PinState[]
  find(label: string): { readonly server: string; readonly pin: Pin } | undefined
  /** What the scanner found in the definition that the server currently offers. */
  findingsOf(label: string): readonly ScanFinding[]
  /** The names of the configured servers' tools. */
  names(): ToolNames
  approve(selection: Selection): Promise<readonly Approved[]>
  /** Blocks one definition, in every mode except `off`, until an operator approves it. */
  block(label: string, hash: string): Promise<void>
  /** Reports servers whose decisions or flags may have changed. */
  onChange(listener: (servers: ReadonlySet<string>) => void): Disposable
  /** Reports that definitions may have begun or ceased to wait for an operator. */
  onReview(listener: () => void): Disposable
  settled(): Promise<void>
}

export interface ListedServer extends Pick<Source, 'name' | 'entries'> {
  readonly instructions: string
  /** What the server lists for clients with other capabilities. */
  kinds(): ReadonlyMap<string, Pick<Source, 'entries'>>
}

interface Known {
  readonly look: PinnedDefinition
  readonly generation: number
  readonly pinned: Pinned
}

const free: Pinned = { usable: true }

export async function createPins(options: PinsOptions): Promise<Pins> {
  const { mode, clock, log } = options
  const notices = createNotices(log, mode)
  const queue = createScanQueue()
  const listeners = new Set<(servers: ReadonlySet<string>) => void>()
  const reviewers = new Set<() => void>()
  let reviewing = false
  /** Reports that the states may have changed. Batched, because a server may change all its definitions at once. */
  const review = () => {
    if (reviewing) return
    reviewing = true
    queueMicrotask(() => {
      reviewing = false
      for (const listener of reviewers) listener()
    })
  }
  let telling: Set<string> | undefined
  /** Reports a changed server to the listeners. Reports are batched, because one file can contain many changes. */
  const tell = (server: string) => {
    review()
    if (telling) return void telling.add(server)
    const servers = new Set([server])
    telling = servers
    queueMicrotask(() => {
      telling = undefined
      for (const listener of listeners) listener(servers)
    })
  }

  const known = new WeakMap<Entry, Known>()
  const instructed = new Map<string, Known & { readonly instructions: string }>()
  let configured: ReadonlyMap<string, ServerOrigin> | undefined
  let toolNames: ToolNames | undefined
  const names = () => {
    toolNames ??= toolNamesIn(records().filter(({ server }) => configured?.has(server) ?? true))
    return toolNames
  }
  const evaluate = createPinEvaluator({ mode, notices, queue, names, flagged: tell, waiting: review, clock })
  const looseFlags = createUnpinnedFlags({ queue, notices, names, flagged: tell })
  const files = openPinFiles(pinsFolder(options.folder), log)
  const store = mode === 'off' ? undefined : await openPinStore({ files, changed: tell, clock, log })

  const check = (entry: Entry): Pinned => {
    if (!store || !isPinned(entry)) return free
    const serverStore = store.of(entry.server)
    const before = known.get(entry)
    if (before?.generation === serverStore.generation) return before.pinned
    const look = before?.look ?? pinnedDefinitionOf(entry.verbatim ?? entry.definition)
    const pinned = evaluate(serverStore, entry as Entry & { readonly kind: PinKind }, look)
    known.set(entry, { look, generation: serverStore.generation, pinned })
    return pinned
  }

  const records = () => [...(store?.all().values() ?? [])].map(({ record }) => record)
  const find: Pins['find'] = (label) => findPin(records(), label)

  const checkServer: Pins['checkServer'] = (server, instructions) => {
    if (!store || instructions === '' || builtInSources.includes(server)) return free
    const serverStore = store.of(server)
    const last = instructed.get(server)
    const before = last?.instructions === instructions ? last : undefined
    if (before?.generation === serverStore.generation) return before.pinned
    const look = before?.look ?? pinnedDefinitionOf({ instructions })
    const pinned = evaluate(serverStore, { server, kind: 'instructions', name: '' }, look)
    instructed.set(server, { instructions, look, generation: serverStore.generation, pinned })
    return pinned
  }

  return {
    mode,
    find,
    findingsOf(label) {
      const found = find(label)
      return (found && reviewPin(found.server, found.pin, names()).find(({ current }) => current)?.findings) ?? []
    },
    names,
    noteOrigins(origins) {
      if (!store) return
      configured = origins
      toolNames = undefined
      for (const [server, origin] of origins) {
        noteOrigin(store.of(server), origin, clock.now(), (from) => notices.moved(server, from, origin.text))
      }
    },
    check,
    checkServer,
    checkListing(server) {
      const entries = entriesIn(server)
      if (!store || !entries.some(isPinned)) return
      checkServer(server.name, server.instructions)
      for (const entry of entries) check(entry)
      const serverStore = store.of(server.name)
      const { record } = serverStore
      if (!record.listed) serverStore.replace({ ...record, listed: true })
    },
    denialOf(entry) {
      // Only an operator's block denies a definition in warn mode. Blocks are rare, so do not compare without one.
      if (mode !== 'quarantine' && !(isPinned(entry) && store?.of(entry.server).hasBlocks)) return undefined
      return check(entry).denial
    },
    flagsOf(entry) {
      if (builtInSources.includes(entry.server)) return []
      const { state } = check(entry)
      if (!store || !state) return looseFlags(entry)
      // Look the pin up again, because the scanner may have run since the state was created.
      const pin = store.of(entry.server).pin(state.kind, state.name)
      const snapshot = pin && [...pin.approved, ...pin.pending].find(({ hash }) => hash === state.hash)
      const flags = snapshot?.flags ?? []
      if (!pin || approvalOf(pin, state.hash)) return flags
      return [...flags, pin.approved.length > 0 ? 'changed' : 'new']
    },
    list: () => [...(store?.all() ?? [])].flatMap(([, { record }]) => statesOf(record, mode)),
    async approve(selection) {
      const all: Approved[] = []
      for (const [server, serverStore] of store?.all() ?? []) {
        const { record, approved } = approveIn(serverStore.record, selection, clock.now())
        if (record === serverStore.record) continue
        serverStore.replace(record)
        all.push(...approved)
        tell(server)
      }
      await store?.flush()
      return all
    },
    async block(label, hash) {
      const server = find(label)?.server
      const serverStore = server === undefined ? undefined : store?.of(server)
      if (server === undefined || !serverStore) return
      const record = blockIn(serverStore.record, label, hash, clock.now())
      if (record === serverStore.record) return
      serverStore.replace(record)
      tell(server)
      await store?.flush()
    },
    onReview: (listener) => listen(reviewers, listener),
    onChange: (listener) => listen(listeners, listener),
    async settled() {
      await queue.done()
      await store?.reload()
      await store?.flush()
    },
    async [Symbol.asyncDispose]() {
      listeners.clear()
      reviewers.clear()
      await queue[Symbol.asyncDispose]()
      await store?.[Symbol.asyncDispose]()
    },
  }
}

function noteOrigin(
  serverStore: ServerPinStore,
  origin: ServerOrigin,
  at: number,
  moved: (from: string) => void,
): void {
  const { origins } = serverStore.record
  const last = origins.at(-1)
  if (last?.hash === origin.hash) return
  if (last) moved(last.text)
  const others = origins.filter(({ hash }) => hash !== origin.hash)
  serverStore.replace({ ...serverStore.record, origins: [...others, { ...origin, at }] })
}

/**
 * Whether an entry is pinned. Resources are not, because they change in normal operation, and Toolway's own tools and
 * sinks are not, because their definitions change with its version.
 */
const isPinned = ({ kind, server }: Entry): boolean =>
  (kind === 'tool' || kind === 'prompt') && !builtInSources.includes(server)

/** The names of all tools that are pinned in these records: approved ones first, then in the order of their appearance. */
function toolNamesIn(records: readonly ServerPins[]): ToolNames {
  const names = new ToolNames()
  const tools = records.flatMap(({ server, pins }) =>
    [...pins.values()]
      .filter(({ kind }) => kind === 'tool')
      .map(({ name, approved, pending }) => ({
        server,
        name,
        snapshot: approved[0] ?? pending[0],
        rank: approved.length > 0 ? 0 : 1,
      })),
  )
  tools.sort((a, b) => a.rank - b.rank || (a.snapshot?.at ?? 0) - (b.snapshot?.at ?? 0))
  for (const { server, name, snapshot } of tools) names.add(server, name, snapshot?.definition?.description)
  return names
}

/** The entries of the first listing that is known: a server may be listed only for clients with some capabilities. */
const entriesIn = (server: ListedServer): readonly Entry[] =>
  [server, ...server.kinds().values()].map((source) => source.entries()).find((entries) => entries.length > 0) ?? []

/** The number of definitions to check before yielding to the event loop. */
const chunk = 100

/** Checks a server's definitions whenever they may have changed, even if no client lists them. */
export function watchDefinitions(
  server: ListedServer & Pick<Source, 'onChange'>,
  pins: () => Pick<Pins, 'check' | 'checkListing' | 'names'>,
): Disposable {
  let left: Entry[] = []
  let looking = false

  const look = () => {
    for (const entry of left.splice(0, chunk)) pins().check(entry)
    looking = left.length > 0
    if (looking) setImmediate(look)
    else pins().checkListing(server)
  }

  return server.onChange(() => {
    left = [...entriesIn(server)]
    pins()
      .names()
      .offer(
        server.name,
        left.map(({ name }) => name),
      )
    if (looking) return
    looking = true
    setImmediate(look)
  })
}

export type OfflinePins = Awaited<ReturnType<typeof readPins>>

export interface ServerNote {
  readonly server: string
  readonly moved?: { readonly from: RecordedOrigin; readonly to: RecordedOrigin }
  readonly lostAt?: number
}

/** Reads the pins from disk, for commands that work without a running gateway. */
export async function readPins({ folder, mode, now, log }: { folder: string; mode: PinsMode; now: number; log: Log }) {
  const files = openPinFiles(pinsFolder(folder), log)
  const { records } = await files.load()
  const ordered = [...records].sort((a, b) => (a.server < b.server ? -1 : 1))
  return {
    servers: ordered.map(({ server }) => server),
    names: () => toolNamesIn(ordered),
    states: ordered.flatMap((record) => statesOf(record, mode)),
    /** Servers that need an operator's attention as a whole. */
    notes: ordered.filter(isUnacknowledged).map(noteOf),
    find: (label: string) => findPin(ordered, label),
    /** Approves definitions on disk. A running gateway applies the approval within a second. */
    async approve(selection: Selection): Promise<readonly Approved[]> {
      const all: Approved[] = []
      for (const { server } of ordered) {
        if (selection.server !== undefined && selection.server !== server) continue
        await files.update(server, (current) => {
          if (!current) throw new Error(`the pins of ${server} were removed`)
          const { record, approved } = approveIn(current, selection, now)
          all.push(...approved)
          return record
        })
      }
      return all
    },
  }
}

function noteOf({ server, origins, distrusted, acknowledged }: ServerPins): ServerNote {
  const [from, to] = origins.slice(-2)
  const moved = from && to && to.at > acknowledged ? { from, to } : undefined
  return { server, moved, lostAt: distrusted > acknowledged ? distrusted : undefined }
}
