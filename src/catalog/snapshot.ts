import type { NamingConfig } from '../config/schema.ts'
import type { Served } from '../core/access.ts'
import { pageOf } from '../core/apps.ts'
import { type Definition, type Entry, type Kind, seenName } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import { skillFiles } from '../core/skills.ts'
import { metaSource, type Source } from '../core/source.ts'
import type { Health } from '../core/source-status.ts'
import { asRecord, isRecord } from '../lib/is-record.ts'
import {
  assignNames,
  createNamer,
  type NameChoice,
  type NameClaim,
  type NameConflict,
  unprefixedSources,
} from './names.ts'
import { isOwnUri, servedUri, wrappedUri } from './uris.ts'

/** All served entries at one moment. A snapshot never changes; a change to any source creates a new snapshot. */
export interface CatalogSnapshot {
  /** The items in list order: meta-tools, native tools, then servers in configuration order. */
  readonly items: PerKind<readonly Item[]>
  /** The tools, also those that the operator has removed from lists and search. */
  readonly allTools: readonly Item[]
  readonly byName: PerKind<ReadonlyMap<string, Item>>
  /** The items by source, and then by the name that the source gave the entry. Used to resolve spellings. */
  readonly registry: ReadonlyMap<string, PerKind<ReadonlyMap<string, Item>>>
  /** The served form of a URI that a server mentions. A request for the served form goes to that server. */
  uriOf(server: string, uri: string): string
}

export function buildSnapshot(
  parts: readonly SourcePart[],
  itemOf: (entry: Entry, label: Label) => Item,
  warn: Warn,
): CatalogSnapshot {
  const names = perKind((kind) => {
    const assigned = assignNames(parts.flatMap((part) => part.claims[kind]))
    for (const conflict of assigned.conflicts) warnOfConflict(kind, conflict, warn)
    return assigned.names
  })
  const uriOf = uriRule(parts, names.resource)
  const registry = new Map(parts.map((part) => [part.source.name, perKind(() => new Map<string, Item>())]))
  const byName = perKind(() => new Map<string, Item>())
  const hidden: Item[] = []
  const items = perKind((kind) => {
    const listed: Item[] = []
    let at = 0
    for (const { source, stale, claims } of parts) {
      for (const { entry, name: own, alias } of claims[kind]) {
        const name = names[kind][at++] as string
        const page = kind === 'tool' ? pageOf(entry.definition) : undefined
        const servedPage = page === undefined ? undefined : uriOf(source.name, page)
        const label = { name, origin: source.origin, stale, page: servedPage }
        const known = registry.get(source.name)?.[kind] as Map<string, Item>
        // The claim to an entry's own name comes before the claims to its aliases, so the item is known here.
        const item = alias ? renameItem(known.get(seenName(entry)) as Item, name) : itemOf(entry, label)
        if (!alias) (entry.override?.hidden ? hidden : listed).push(item)
        byName[kind].set(name, item)
        known.set(own, item)
        // A renamed tool can still be called by its server's name for it.
        if (own !== entry.name && !alias) known.set(entry.name, item)
      }
    }
    return listed
  })
  const allTools = hidden.length === 0 ? items.tool : [...items.tool, ...hidden]
  return { items, allTools, byName, registry, uriOf }
}

/** Creates `uriOf`. A listed resource may keep its URI; for others, only the server name shows where to read them. */
function uriRule(parts: readonly SourcePart[], names: readonly string[]): CatalogSnapshot['uriOf'] {
  const listed = new Map<string, Map<string, string>>()
  let at = 0
  for (const { source, claims } of parts) {
    const own = new Map<string, string>()
    for (const { name } of claims.resource) own.set(name, names[at++] as string)
    listed.set(source.name, own)
  }
  return (server, uri) => listed.get(server)?.get(uri) ?? servedUri(server, uri)
}

function warnOfConflict(kind: Kind, { server, name, wanted, winner, served }: NameConflict, warn: Warn): void {
  const facts = { kind, server, name, wanted, served, winner }
  if (winner) warn(facts, 'two entries have the same name; serving this one under another name')
  else warn(facts, 'ignoring an alias that is too long, ends like a hash or has characters other than A-Z a-z 0-9 _ -')
}

/** One source's contribution to a snapshot. Depends only on the source and the naming configuration. */
export interface SourcePart {
  readonly source: Source
  /** Whether the source currently cannot confirm its entries. */
  readonly stale: boolean
  readonly claims: PerKind<readonly EntryClaim[]>
}

interface EntryClaim extends NameClaim {
  readonly entry: Entry
  /** Whether the name is an alias of the entry. An alias can be called but is not listed. */
  readonly alias?: true
}

export type PerKind<T> = Readonly<Record<Kind, T>>

export const perKind = <T>(make: (kind: Kind) => T): PerKind<T> => ({
  tool: make('tool'),
  resource: make('resource'),
  template: make('template'),
  prompt: make('prompt'),
  skill: make('skill'),
})

type Choose = (entry: Entry) => NameChoice

export function createChooser(naming: NamingConfig): Choose {
  const named = createNamer(naming)
  return ({ kind, server, name }) => {
    if (kind === 'tool' || kind === 'prompt') return named(server, name)
    const isOwn = server === metaSource
    // A skill is identified by its server and its URI, whatever the naming.
    const isFlat = naming.strategy === 'flat' && kind !== 'skill'
    const unchanged = isOwn || ((isFlat || unprefixedSources.includes(server)) && !isOwnUri(name))
    const served = servedUri(server, name)
    return { plain: unchanged ? [name, served] : [served], hashed: () => wrappedUri(server, name) }
  }
}

const unconfirmedHealth: ReadonlySet<Health> = new Set(['stale', 'starting', 'unhealthy', 'needs-auth'])

/** Reads a source's entries. If a name occurs twice, the first entry wins. */
export function readSourcePart(source: Source, choose: Choose, warn: Warn): SourcePart {
  const { health, heldBack } = source.status()
  const claims = perKind(() => new Map<string, EntryClaim>())
  for (const entry of source.entries()) {
    const { kind } = entry
    const name = seenName(entry)
    if (claims[kind].has(name)) {
      warn({ server: source.name, kind, name }, 'a server lists the same name twice; serving the first')
      continue
    }
    const claim = { server: source.name, tier: tierOf(source), priority: source.priority, entry }
    claims[kind].set(name, { ...claim, name, choice: choose(name === entry.name ? entry : { ...entry, name }) })
    for (const alias of entry.aliases ?? []) {
      if (claims[kind].has(alias)) continue
      claims[kind].set(alias, { ...claim, name: alias, choice: choose({ ...entry, name: alias }), alias: true })
    }
  }
  const stale = !heldBack && unconfirmedHealth.has(health)
  return { source, stale, claims: perKind((kind) => [...claims[kind].values()]) }
}

function tierOf(source: Source): number {
  const own = unprefixedSources.indexOf(source.name)
  return own < 0 ? unprefixedSources.length : own
}

type Warn = (facts: object, message: string) => void

/** Returns a function that tells whether it gets a key for the first time. Too many keys are forgotten. */
export function firstTimes(maxKeys: number): (key: string) => boolean {
  const seen = new Set<string>()
  return (key) => {
    if (seen.has(key)) return false
    if (seen.size >= maxKeys) seen.clear()
    seen.add(key)
    return true
  }
}

/** Logs each warning once. Names are reassigned whenever any server changes, which would repeat the warnings. */
function warnOnce(log: Log): Warn {
  const isNew = firstTimes(10_000)
  return (facts, message) => {
    if (isNew(message + JSON.stringify(facts))) log.warn(facts, message)
  }
}

/** The items of entries. Several builders share them, because most entries are the same in all catalogs. */
export type KnownItems = WeakMap<Entry, { readonly label: Label; readonly item: Item }>

interface SnapshotBuilderOptions {
  readonly sources: readonly Source[]
  readonly naming: NamingConfig
  readonly flagsOf?: FlagsOf | undefined
  readonly items?: KnownItems | undefined
  readonly log: Log
}

/** Merges sources into snapshots. Reuses the parts of unchanged sources and the items of unchanged entries. */
export class SnapshotBuilder {
  readonly #ordered: readonly Source[]
  readonly #choose: Choose
  readonly #warn: Warn
  readonly #flagsOf: FlagsOf | undefined
  readonly #items: KnownItems
  readonly #parts = new Map<Source, SourcePart>()
  #current: CatalogSnapshot | undefined

  constructor({ sources, naming, flagsOf, items = new WeakMap(), log }: SnapshotBuilderOptions) {
    this.#ordered = [...sources].sort((a, b) => tierOf(a) - tierOf(b))
    this.#choose = createChooser(naming)
    this.#warn = warnOnce(log)
    this.#flagsOf = flagsOf
    this.#items = items
  }

  invalidate(source: Source): void {
    this.#current = undefined
    this.#parts.delete(source)
  }

  /** The current snapshot. It is the same object until `invalidate` is called. */
  snapshot(): CatalogSnapshot {
    this.#current ??= buildSnapshot(this.#ordered.map(this.#partOf), this.#itemOf, this.#warn)
    return this.#current
  }

  readonly #partOf = (source: Source): SourcePart => {
    const part = this.#parts.get(source) ?? readSourcePart(source, this.#choose, this.#warn)
    this.#parts.set(source, part)
    return part
  }

  readonly #itemOf = (entry: Entry, label: Label): Item => {
    const known = this.#items.get(entry)
    if (known && sameLabel(known.label, label)) return known.item
    const item = createItem(entry, label, this.#flagsOf)
    this.#items.set(entry, { label, item })
    return item
  }
}

const sameLabel = (a: Label, b: Label): boolean =>
  a.name === b.name && a.stale === b.stale && a.page === b.page && a.origin === b.origin

/** A served entry with its definition as JSON, which is serialized on demand and cached. */
export interface Item extends Served {
  readonly json: string
}

export interface Label {
  readonly name: string
  readonly origin: 'native' | 'forwarded'
  /** Whether the source currently cannot confirm its entries. */
  readonly stale: boolean
  /** The served URI of the app page named in a tool's `_meta`. */
  readonly page?: string
}

const kindNameField: Readonly<Record<Kind, string>> = {
  tool: 'name',
  prompt: 'name',
  resource: 'uri',
  template: 'uriTemplate',
  skill: 'uri',
}

const ourKeys = new Set(['source', 'server', 'stale', 'flags', 'tags'].map((word) => `dev.toolway/${word}`))

/** Returns the scanner's findings in an entry's definition, one word per finding (B5). */
export type FlagsOf = (entry: Entry) => readonly string[]

/** Creates the item for an entry. Builds the definition on first use, because most entries are never listed. */
export function createItem(entry: Entry, label: Label, flagsOf: FlagsOf = () => []): Item {
  let made: { readonly flags: string; readonly definition: Definition; json?: string } | undefined
  /** The definition with the current flags, which the background scanner may add after the first listing. */
  const served = () => {
    const flags = flagsOf(entry)
    const key = flags.join()
    if (made?.flags !== key) made = { flags: key, definition: servedDefinition(entry, label, flags) }
    return made
  }
  return {
    name: label.name,
    entry,
    get definition() {
      return served().definition
    },
    get json() {
      const current = served()
      current.json ??= JSON.stringify(current.definition)
      return current.json
    },
  }
}

export function renameItem(item: Item, name: string): Item {
  const definition = () => ({ ...item.definition, [kindNameField[item.entry.kind]]: name })
  return {
    name,
    entry: item.entry,
    get definition() {
      return definition()
    },
    get json() {
      return JSON.stringify(definition())
    },
  }
}

/** The source's definition with the served name and Toolway's `_meta`. Members keep the source's order. */
function servedDefinition(entry: Entry, label: Label, flags: readonly string[]): Definition {
  const meta: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(asRecord(entry.definition._meta))) {
    if (!ourKeys.has(key)) defineMember(meta, key, label.page === undefined ? value : withPage(key, value, label.page))
  }
  meta['dev.toolway/source'] = label.origin
  meta['dev.toolway/server'] = entry.server
  if (entry.override && entry.override.tags.length > 0) meta['dev.toolway/tags'] = entry.override.tags
  if (label.stale) meta['dev.toolway/stale'] = true
  if (flags.length > 0) meta['dev.toolway/flags'] = flags
  const files = entry.kind === 'skill' ? skillFiles(entry.definition) : undefined
  const resources = files?.map((file) => ({ ...file, uri: servedUri(entry.server, file.uri) }))
  const served = { ...entry.definition, [kindNameField[entry.kind]]: label.name, _meta: meta }
  return resources ? { ...served, resources } : served
}

function withPage(key: string, value: unknown, page: string): unknown {
  if (key === 'ui/resourceUri') return page
  return key === 'ui' && isRecord(value) && 'resourceUri' in value ? { ...value, resourceUri: page } : value
}

/** Sets a member. Assigning to `__proto__`, a key that a server may send, would set the prototype instead. */
export const defineMember = (target: object, key: string, value: unknown): object =>
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true })
