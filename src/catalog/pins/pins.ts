import { existsSync } from 'node:fs'
import type { Clock } from '../../core/clock.ts'
import type { Denial } from '../../core/decision.ts'
import type { Entry } from '../../core/entry.ts'
import type { Log } from '../../core/log.ts'
import { builtInSources, type Source } from '../../core/source.ts'
import { listen } from '../../lib/listen.ts'
import type { ScanFinding } from '../scan/finding.ts'
import { ToolNames } from '../scan/lookalike-names.ts'
import { type PinnedDefinition, pinnedDefinitionOf } from './definition.ts'
import {
  createNotices,
  createScanQueue,
  createUnpinnedFlags,
  PinEvaluator,
  type Pinned,
  type PinSubject,
} from './pin-evaluator.ts'
import {
  addOrigin,
  approvalOf,
  approveSnapshot,
  blockSnapshot,
  isBlocked,
  type Pin,
  type PinKind,
  type RecordedOrigin,
  type ServerOrigin,
  type ServerPins,
  snapshotIn,
} from './pin-record.ts'
import {
  findPin,
  isUnacknowledged,
  type PinState,
  type PinsMode,
  pinLabel,
  reviewPin,
  statesOf,
  wordOf,
} from './pin-state.ts'
import { PinTable, pinsFolder, type StoredPins } from './pin-table.ts'

export type { Pinned } from './pin-evaluator.ts'

export interface PinsOptions {
  readonly mode: PinsMode
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}

/** The definitions to approve: one, by its label; all of a server's definitions; or all definitions. */
export interface Selection {
  readonly label?: string
  readonly server?: string
  /** The hash of the definition to approve. Default: the latest definition. */
  readonly hash?: string
}

interface Approved {
  readonly label: string
  readonly hash: string
}

export interface ListedServer extends Pick<Source, 'name' | 'entries'> {
  readonly instructions: string
  /** What the server lists for clients with other capabilities. */
  kinds(): ReadonlyMap<string, Pick<Source, 'entries'>>
}

interface KnownDefinition {
  readonly look: PinnedDefinition
  readonly generation: number
  readonly pinned: Pinned
}

const alwaysUsable: Pinned = { usable: true }

/** Servers' approved definitions: the first one seen for each name, and those that an operator approved later. */
export class Pins implements AsyncDisposable {
  readonly mode: PinsMode
  readonly #clock: Clock
  readonly #notices
  readonly #queue = createScanQueue()
  readonly #listeners = new Set<(servers: ReadonlySet<string>) => void>()
  readonly #reviewers = new Set<() => void>()
  readonly #table: PinTable | undefined
  readonly #evaluator: PinEvaluator | undefined
  readonly #unpinnedFlags: (entry: Entry) => readonly string[]
  readonly #known = new WeakMap<Entry, KnownDefinition>()
  readonly #instructions = new Map<string, KnownDefinition>()
  #configured: ReadonlyMap<string, ServerOrigin> | undefined
  #toolNames: ToolNames | undefined
  #changed: Set<string> | undefined

  constructor({ mode, folder, clock, log }: PinsOptions) {
    this.mode = mode
    this.#clock = clock
    this.#notices = createNotices(log, mode)
    const flagged = (server: string) => this.#report(server)
    const scanning = { queue: this.#queue, notices: this.#notices, names: this.names, flagged }
    this.#unpinnedFlags = createUnpinnedFlags(scanning)
    if (mode === 'off') return
    this.#table = new PinTable({ folder, changed: flagged, clock, log })
    this.#table.watch()
    this.#evaluator = new PinEvaluator(this.#table, { ...scanning, mode, waiting: () => this.#report(), clock })
  }

  /** The names of the configured servers' tools. */
  readonly names = (): ToolNames => {
    this.#toolNames ??= toolNamesIn(this.#servers().filter(({ server }) => this.#configured?.has(server) ?? true))
    return this.#toolNames
  }

  #servers(): readonly ServerPins[] {
    return [...(this.#table?.servers.values() ?? [])]
  }

  /** Reports that states may have changed, and, if given, a server whose decisions or flags may have. Batched per turn. */
  #report(server?: string): void {
    if (!this.#changed) {
      queueMicrotask(() => {
        const servers = this.#changed ?? new Set()
        this.#changed = undefined
        for (const listener of this.#reviewers) listener()
        if (servers.size > 0) for (const listener of this.#listeners) listener(servers)
      })
    }
    this.#changed ??= new Set()
    if (server !== undefined) this.#changed.add(server)
  }

  /** Records each server's current origin. A changed origin is logged, and the server's pins stay in force. */
  noteOrigins(origins: ReadonlyMap<string, ServerOrigin>): void {
    if (!this.#table) return
    this.#configured = origins
    this.#toolNames = undefined
    for (const [server, origin] of origins) {
      const { origins: known } = this.#table.of(server).facts
      const last = known.at(-1)
      if (last?.hash === origin.hash) continue
      if (last) this.#notices.moved(server, last.text, origin.text)
      this.#table.putFacts(server, { origins: addOrigin(known, { ...origin, at: this.#clock.now() }) })
    }
  }

  /** Compares an entry with its pin. Called for every decision, so it does more than a lookup only the first time. */
  check(entry: Entry): Pinned {
    if (!this.#table || !isPinned(entry)) return alwaysUsable
    const before = this.#known.get(entry)
    if (before?.generation === this.#table.of(entry.server).generation) return before.pinned
    const look = before?.look ?? pinnedDefinitionOf(entry.verbatim ?? entry.definition)
    const known = this.#evaluate(entry as Entry & { readonly kind: PinKind }, look)
    this.#known.set(entry, known)
    return known.pinned
  }

  /** Compares a server's instructions with their pin. Empty instructions are always usable. */
  checkServer(server: string, instructions: string): Pinned {
    if (!this.#table || instructions === '' || builtInSources.includes(server)) return alwaysUsable
    const last = this.#instructions.get(server)
    const before = last?.look.part.instructions === instructions ? last : undefined
    if (before?.generation === this.#table.of(server).generation) return before.pinned
    const look = before?.look ?? pinnedDefinitionOf({ instructions })
    const known = this.#evaluate({ server, kind: 'instructions', name: '' }, look)
    this.#instructions.set(server, known)
    return known.pinned
  }

  #evaluate(subject: PinSubject, look: PinnedDefinition): KnownDefinition {
    const generation = this.#table?.of(subject.server).generation ?? 0
    return { look, generation, pinned: this.#evaluator?.evaluate(subject, look) ?? alwaysUsable }
  }

  /** Checks everything that a server lists. After its first listing with entries, further ones are new. */
  checkListing(server: ListedServer): void {
    const entries = entriesIn(server)
    if (!this.#table || !entries.some(isPinned)) return
    this.checkServer(server.name, server.instructions)
    for (const entry of entries) this.check(entry)
    if (!this.#table.of(server.name).facts.listed) this.#table.putFacts(server.name, { listed: true })
  }

  readonly denialOf = (entry: Entry): Denial | undefined => {
    // Only an operator's block denies a definition in warn mode. Blocks are rare, so do not compare without one.
    if (this.mode !== 'quarantine' && !(isPinned(entry) && this.#table?.of(entry.server).hasBlocks)) return undefined
    return this.check(entry).denial
  }

  /** The scanner's findings so far, plus `changed` or `new` if the definition is not approved. */
  readonly flagsOf = (entry: Entry): readonly string[] => {
    if (builtInSources.includes(entry.server)) return []
    const { state } = this.check(entry)
    if (!this.#table || !state) return this.#unpinnedFlags(entry)
    // Look the pin up again, because the scanner may have run since the state was created.
    const pin = this.#table.of(entry.server).pin(state.kind, state.name)
    const flags = (pin && snapshotIn(pin, state.hash)?.flags) ?? []
    if (!pin || approvalOf(pin, state.hash)) return flags
    return [...flags, pin.approved.length > 0 ? 'changed' : 'new']
  }

  list(): readonly PinState[] {
    return this.#servers().flatMap((record) => statesOf(record, this.mode))
  }

  find(label: string): { readonly server: string; readonly pin: Pin } | undefined {
    return findPin(this.#servers(), label)
  }

  /** What the scanner found in the definition that the server currently offers. */
  findingsOf(label: string): readonly ScanFinding[] {
    const found = this.find(label)
    return (found && reviewPin(found.server, found.pin, this.names()).find(({ current }) => current)?.findings) ?? []
  }

  async approve(selection: Selection): Promise<readonly Approved[]> {
    return this.#table ? approvePins(this.#table, selection, this.#clock.now()) : []
  }

  /** Blocks one definition, in every mode except `off`, until an operator approves it. */
  async block(label: string, hash: string): Promise<void> {
    if (this.#table) blockPin(this.#table, label, hash, this.#clock.now())
  }

  /** Reports servers whose decisions or flags may have changed. */
  onChange(listener: (servers: ReadonlySet<string>) => void): Disposable {
    return listen(this.#listeners, listener)
  }

  /** Reports that definitions may have begun or ceased to wait for an operator. */
  onReview(listener: () => void): Disposable {
    return listen(this.#reviewers, listener)
  }

  /** Resolves when everything is scanned and saved. */
  async settled(): Promise<void> {
    await this.#queue.done()
    this.#table?.flush()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear()
    this.#reviewers.clear()
    await this.#queue[Symbol.asyncDispose]()
    this.#table?.[Symbol.dispose]()
  }
}

/**
 * Approves each selected pin's latest definition. Without a label, also acknowledges a new origin or lost pins. Throws if
 * it cannot be saved.
 */
export const approvePins = (table: PinTable, selection: Selection, at: number): Approved[] =>
  table.decide(() => {
    if (selection.label === undefined && selection.server === undefined) table.acknowledgeLoss()
    return [...table.servers.values()].flatMap((stored) => approveServer(table, stored, selection, at))
  })

function approveServer(table: PinTable, stored: StoredPins, selection: Selection, at: number): Approved[] {
  const { server } = stored
  if (selection.server !== undefined && selection.server !== server) return []
  const approved: Approved[] = []
  for (const pin of stored.pins.values()) {
    const label = pinLabel(server, pin.kind, pin.name)
    if (selection.label !== undefined && selection.label !== label) continue
    const hash = selection.hash ?? hashToApprove(pin, selection)
    // If its hash is given, the approval of a definition that was trusted at first sight is recorded, too.
    const isApproved = wordOf(pin, hash) === 'approved' && (!selection.hash || approvalOf(pin, hash)?.by === 'operator')
    const snapshot = isApproved ? undefined : snapshotIn(pin, hash)
    if (!snapshot) continue
    table.put(server, approveSnapshot(pin, snapshot, at))
    approved.push({ label, hash })
  }
  const acknowledges = selection.label === undefined && (approved.length > 0 || isUnacknowledged(stored))
  if (acknowledges) table.putFacts(server, { acknowledged: at })
  if (acknowledges || approved.length > 0) table.decided(stored)
  return approved
}

/** Blocks one definition of a pin, until an operator approves it. Other definitions are not affected. */
export const blockPin = (table: PinTable, label: string, hash: string, at: number): void =>
  table.decide(() => {
    const found = findPin(table.servers.values(), label)
    if (!found || isBlocked(found.pin, hash)) return
    table.put(found.server, blockSnapshot(found.pin, hash, at))
    table.decided(table.of(found.server))
  })

/**
 * The hash to approve: the latest one. If that one is already approved, a label selects the pending one, such as a
 * variant for other clients. Approving everything skips pending ones, which may be changes that were reverted.
 */
function hashToApprove(pin: Pin, { label }: Selection): string {
  const isApproved = wordOf(pin, pin.seen.hash) === 'approved'
  return (isApproved && label !== undefined ? pin.pending.at(-1)?.hash : undefined) ?? pin.seen.hash
}

/**
 * Whether an entry is pinned. Resources are not, because they change in normal operation, and Toolway's own tools and
 * sinks are not, because their definitions change with its version.
 */
const isPinned = ({ kind, server }: Entry): boolean =>
  (kind === 'tool' || kind === 'prompt' || kind === 'skill') && !builtInSources.includes(server)

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

export interface ServerNote {
  readonly server: string
  readonly moved?: { readonly from: RecordedOrigin; readonly to: RecordedOrigin }
  readonly lostAt?: number
}

export type OfflinePins = ReturnType<typeof readPins>

/** Reads the pins from disk, for commands that work without a running gateway. */
export function readPins({ folder, mode, clock, log }: PinsOptions) {
  // Only a gateway begins a new folder: it may run as another user.
  const table = existsSync(pinsFolder(folder)) ? new PinTable({ folder, clock, log }) : undefined
  table?.[Symbol.dispose]()
  const ordered = [...(table?.servers.values() ?? [])].sort((a, b) => (a.server < b.server ? -1 : 1))
  return {
    servers: ordered.map(({ server }) => server),
    names: () => toolNamesIn(ordered),
    states: ordered.flatMap((record) => statesOf(record, mode)),
    /** Servers that need an operator's attention as a whole. */
    notes: ordered.filter(isUnacknowledged).map(serverNote),
    find: (label: string) => findPin(ordered, label),
    /** Approves definitions on disk. A running gateway applies the approval within a second. */
    async approve(selection: Selection): Promise<readonly Approved[]> {
      if (!table) return []
      using open = table
      return approvePins(open, selection, clock.now())
    },
  }
}

function serverNote({ server, facts: { origins, distrusted, acknowledged } }: ServerPins): ServerNote {
  const [from, to] = origins.slice(-2)
  const moved = from && to && to.at > acknowledged ? { from, to } : undefined
  return { server, moved, lostAt: distrusted > acknowledged ? distrusted : undefined }
}
