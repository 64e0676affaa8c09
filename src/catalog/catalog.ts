import type { NamingConfig } from '../config/schema.ts'
import type { ListChangeListener, Served, View } from '../core/access.ts'
import { AppPages } from '../core/apps.ts'
import { type Call, type Caller, type CallerIdentity, clientKey, listProfile } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Kind } from '../core/entry.ts'
import type { ExposureSetting } from '../core/exposure.ts'
import type { Log } from '../core/log.ts'
import { metaSource, type Source } from '../core/source.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { TtlStore } from '../core/stores.ts'
import { listen } from '../lib/listen.ts'
import { ChosenExposures, exposureFor } from './exposure.ts'
import { SourceReadiness } from './readiness.ts'
import { isTemplateUri, isWebLink, servedChecker } from './resolve.ts'
import type { ScoreSource } from './search/combine-scores.ts'
import { SearchIndex } from './search/search-index.ts'
import { type CatalogSnapshot, type FlagsOf, type KnownItems, SnapshotBuilder } from './snapshot.ts'
import { CatalogView, type ViewedCatalog } from './view.ts'
import {
  type CatalogRules,
  isForRest,
  skillToolsIfUseful,
  summariesOf,
  type ToolsByExposure,
  toolsByExposure,
  Visibility,
} from './visibility.ts'

/** What the catalog remembers of callers. */
export interface CallerState {
  /** The pages that they read last. */
  readonly pages: AppPages
  /** The exposure modes that were chosen for them. */
  readonly exposures: ChosenExposures
}

export const createCallerState = (clock: Clock, shared?: TtlStore): CallerState => ({
  pages: new AppPages(shared),
  exposures: new ChosenExposures(clock),
})

export interface CatalogOptions {
  /** Sources in configuration order. If two of them have equal claims to a name, the first one gets it. */
  readonly sources: readonly Source[]
  readonly naming: NamingConfig
  readonly rules: CatalogRules
  /** How long a list waits for one source. Default: 8 s for a source without known entries, 2 s for any other. */
  readonly listDeadlineMs: number | undefined
  readonly flagsOf?: FlagsOf
  /** Outlives a configuration. */
  readonly callerState?: CallerState
  readonly clock: Clock
  readonly log: Log
}

const noSources: readonly ScoreSource[] = []

/** What several catalogs share. */
interface SharedItems {
  readonly items?: KnownItems
  /** What callers have seen before. If the catalog differs, listeners are notified. */
  readonly before?: CatalogSnapshot | undefined
  readonly onChange?: ListChangeListener
}

/** Everything that can be called, from these sources, under the names that callers use. */
export class Catalog implements ViewedCatalog, Disposable {
  readonly sources: ReadonlyMap<string, Source>
  readonly naming: NamingConfig
  readonly rules: CatalogRules
  readonly pages: AppPages
  readonly exposures: ChosenExposures
  readonly readiness: SourceReadiness
  readonly #builder: SnapshotBuilder
  readonly #visibility: Visibility
  readonly #changes: ListChanges
  readonly #subscriptions: readonly Disposable[]
  readonly #index = new SearchIndex()
  /** The views of callers that make many calls, as those of a session do. */
  readonly #views = new WeakMap<Caller, View>()
  #indexed: CatalogSnapshot | undefined
  #indexing: Promise<void> | undefined
  /** Snapshots that callers may have seen since the last notification. */
  #seen: readonly CatalogSnapshot[]
  #isReconsidered = false
  #shown: { readonly of: CatalogSnapshot; readonly tools: ToolsByExposure } | undefined

  constructor(options: CatalogOptions, { items, before, onChange }: SharedItems = {}) {
    const { sources, naming, rules, listDeadlineMs, clock, log } = options
    const { pages, exposures } = options.callerState ?? createCallerState(clock)
    this.sources = new Map(sources.map((source) => [source.name, source]))
    this.naming = naming
    this.rules = rules
    this.pages = pages
    this.exposures = exposures
    this.readiness = new SourceReadiness(sources, listDeadlineMs, clock)
    this.#builder = new SnapshotBuilder({ ...options, items })
    this.#visibility = new Visibility(sources, rules)
    this.#changes = new ListChanges(clock, log, () => this.#changedKinds())
    this.#subscriptions = sources.map((source) => source.onChange(() => this.#invalidate(source)))
    this.#seen = before ? [before] : []
    if (onChange) this.#changes.onChange(onChange)
    if (before) this.#changes.touch()
  }

  /** The catalog as a caller sees it. With `hideDenied: false` denials are not hidden, whatever the configuration says. */
  view(caller: Caller, options?: { readonly hideDenied: boolean }): View {
    if (options) return new CatalogView(caller, this, options.hideDenied)
    const known = this.#views.get(caller)
    if (known) return known
    const { hideDenied = false } = this.rules
    const view = new CatalogView(caller, this, hideDenied)
    // Which servers a caller may know of is decided when the view is created.
    if (!hideDenied) this.#views.set(caller, view)
    return view
  }

  /** Reports, debounced, which kinds of lists have changed. By then, views already show the new lists. */
  onChange(listener: ListChangeListener): Disposable {
    // Take a snapshot now, so that the listener gets every later change even if nothing was listed before.
    this.snapshot()
    return this.#changes.onChange(listener)
  }

  /** Waits for sources whose entries are not known yet, regardless of permissions. */
  ready(): Promise<void> {
    return this.readiness.all(undefined, () => true)
  }

  /** All sources except the meta-tools, regardless of permissions. */
  summaries(): readonly ServerSummary[] {
    return summariesOf(this.snapshot().items, this.sources.values())
  }

  /** Every entry of the kind, regardless of permissions, also if it is hidden from lists. */
  everything(kind: Kind): readonly Served[] {
    const { allTools, items } = this.snapshot()
    return kind === 'tool' ? allTools : items[kind]
  }

  /** The tools that an exposure mode shows to a client that has all permissions. */
  shown(setting: ExposureSetting): readonly Served[] {
    const of = this.snapshot()
    const toolsForAll = () => skillToolsIfUseful(of.items).filter(({ entry }) => !isForRest(entry))
    if (this.#shown?.of !== of) this.#shown = { of, tools: toolsByExposure(toolsForAll(), () => this.summaries()) }
    const { tools } = this.#shown
    return tools[exposureFor(setting, tools, this.rules.auto)]
  }

  /** Recomputes the views and notifies listeners. Call it when decisions may have changed. */
  reconsider(): void {
    this.#visibility.reset()
    this.#isReconsidered = true
    this.#changes.touch()
  }

  /** Converts URIs in the result of a call to those that its caller uses. */
  servedUris({ entry: { server }, input }: Call): (uri: string) => string {
    const current = this.snapshot()
    const hasResources = this.sources.get(server)?.mayHaveResources?.() !== false
    let isServed: ((uri: string) => boolean) | undefined
    let isTemplate: boolean | undefined
    const isUnchanged = (uri: string) => {
      if (hasResources && uri === input.uri) {
        isTemplate ??= isTemplateUri(current, server, uri)
        return isTemplate
      }
      // Nobody can or has to read the URI through us, so it stays, unless it would be read from another server.
      if (hasResources && !isWebLink(current, server, uri)) return false
      isServed ??= servedChecker(current)
      return !isServed(uri)
    }
    return (uri) => (isUnchanged(uri) ? uri : current.uriOf(server, uri))
  }

  snapshot(): CatalogSnapshot {
    const current = this.#builder.snapshot()
    if (current !== this.#seen.at(-1)) this.#seen = [...this.#seen, current]
    return current
  }

  searchIndex(): SearchIndex | undefined {
    return this.#indexed === this.snapshot() ? this.#index : undefined
  }

  /** Updates the index only when it is searched: servers change in bursts, and most callers never search. */
  updateSearchIndex(): Promise<void> {
    this.#indexing ??= this.#updateIndex().finally(() => {
      this.#indexing = undefined
    })
    return this.#indexing
  }

  scoreSources(caller: Caller): readonly ScoreSource[] {
    return this.rules.scoreSources?.(caller) ?? noSources
  }

  visible(caller: Caller) {
    return this.#visibility.of(this.snapshot(), caller)
  }

  /** Notifies listeners now if they are to be notified. */
  settle(): void {
    this.#changes.settle()
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
    this.readiness[Symbol.dispose]()
    this.#changes[Symbol.dispose]()
  }

  async #updateIndex(): Promise<void> {
    const current = this.snapshot()
    this.#indexed = undefined
    await this.#index.updateInTurns(current.items.tool.filter(({ entry }) => entry.server !== metaSource))
    this.#indexed = current
  }

  #invalidate(source: Source): void {
    this.#builder.invalidate(source)
    this.#changes.touch()
  }

  #changedKinds(): ReadonlySet<Kind> {
    const current = this.snapshot()
    const changed = this.#seen.flatMap((earlier) => changedKinds(earlier, current))
    const kinds = new Set(this.#isReconsidered ? listKinds : changed)
    this.#seen = [current]
    this.#isReconsidered = false
    return kinds
  }
}

const listKinds: readonly Kind[] = ['tool', 'resource', 'template', 'prompt', 'skill']

function changedKinds(before: CatalogSnapshot, after: CatalogSnapshot): Kind[] {
  if (before === after) return []
  return listKinds.filter((kind) => {
    const old = before.items[kind]
    const current = after.items[kind]
    return old.length !== current.length || current.some((item, at) => item !== old[at] && item.json !== old[at]?.json)
  })
}

/** When to notify listeners: 100 ms after the last change, but within a second, so that a burst is reported once. */
const listQuietMs = 100
const latestMs = 1_000

/** Calls listeners, debounced, with the kinds of lists that changed, unless there are none. */
class ListChanges implements Disposable {
  readonly #clock: Clock
  readonly #log: Log
  readonly #changedKinds: () => ReadonlySet<Kind>
  readonly #listeners = new Set<ListChangeListener>()
  #timer: Disposable | undefined
  #latest = 0

  constructor(clock: Clock, log: Log, changedKinds: () => ReadonlySet<Kind>) {
    this.#clock = clock
    this.#log = log
    this.#changedKinds = changedKinds
  }

  onChange(listener: ListChangeListener): Disposable {
    return listen(this.#listeners, listener)
  }

  touch(): void {
    const now = this.#clock.monotonic()
    if (this.#timer) this.#timer[Symbol.dispose]()
    else this.#latest = now + latestMs
    const ms = Math.max(0, Math.min(listQuietMs, this.#latest - now))
    this.#timer = this.#clock.after(ms, () => this.#notify())
  }

  settle(): void {
    if (!this.#timer) return
    this.#timer[Symbol.dispose]()
    this.#notify()
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    this.#listeners.clear()
  }

  #notify(): void {
    this.#timer = undefined
    const kinds = this.#changedKinds()
    if (kinds.size === 0) return
    for (const listener of this.#listeners) {
      try {
        listener(kinds)
      } catch (error) {
        this.#log.error({ err: error }, 'listener for list changes failed')
      }
    }
  }
}

/** Max number of catalogs for single callers. */
const maxCallerCatalogs = 64

/**
 * One catalog per list profile of clients, because servers may offer more to more capable clients, and one for each
 * caller that sees lists of its own.
 */
export class Catalogs implements Disposable {
  readonly #options: CatalogOptions
  /** The sources that may list something else for one caller than for others with its capabilities. */
  readonly #personal: readonly Source[]
  readonly #listeners = new Set<ListChangeListener>()
  readonly #byProfile = new Map<number, Catalog>()
  /** By the callers that see lists of their own, the least recently used first. */
  readonly #byCaller = new Map<string, Catalog>()
  readonly #items: KnownItems = new WeakMap()
  readonly #callerChanges: readonly Disposable[]
  /** The catalog of clients without capabilities. */
  readonly #common: Catalog

  constructor(options: CatalogOptions) {
    this.#options = options
    this.#personal = options.sources.filter((source) => source.hasListsFor)
    this.#common = this.#ofProfile({ capabilities: {} })
    const changed = (caller: CallerIdentity) => this.#callerChanged(caller)
    this.#callerChanges = options.sources.flatMap((source) => source.onCallerChange?.(changed) ?? [])
  }

  view(caller: Caller, options?: { readonly hideDenied: boolean }): View {
    return this.#of(caller).view(caller, options)
  }

  /** Reports, debounced, which kinds of lists have changed, for all callers or for one session. */
  onChange(listener: ListChangeListener): Disposable {
    // From now on, every change is reported, even of what nobody has listed.
    for (const catalog of this.#byProfile.values()) catalog.snapshot()
    return listen(this.#listeners, mergeNotices(listener))
  }

  ready(): Promise<void> {
    return this.#common.ready()
  }

  summaries(): readonly ServerSummary[] {
    return this.#common.summaries()
  }

  everything(kind: Kind): readonly Served[] {
    return this.#common.everything(kind)
  }

  shown(setting: ExposureSetting): readonly Served[] {
    return this.#common.shown(setting)
  }

  servedUris(call: Call): (uri: string) => string {
    return this.#of(call.caller).servedUris(call)
  }

  reconsider(): void {
    for (const catalog of this.#all()) catalog.reconsider()
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#callerChanges) subscription[Symbol.dispose]()
    for (const catalog of this.#all()) catalog[Symbol.dispose]()
  }

  #all(): readonly Catalog[] {
    return [...this.#byProfile.values(), ...this.#byCaller.values()]
  }

  #of(caller: CallerIdentity): Catalog {
    return this.#hasLists(caller) ? this.#ofCaller(caller) : this.#ofProfile(caller)
  }

  #ofProfile({ capabilities }: Pick<CallerIdentity, 'capabilities'>): Catalog {
    const profile = listProfile(capabilities)
    const known = this.#byProfile.get(profile)
    if (known) return known
    const sources = this.#options.sources.map((source) => source.seenBy?.(capabilities) ?? source)
    const catalog = this.#open(sources)
    if (this.#listeners.size > 0) catalog.snapshot()
    this.#byProfile.set(profile, catalog)
    return catalog
  }

  #hasLists(caller: CallerIdentity): boolean {
    for (const source of this.#personal) if (source.hasListsFor?.(caller)) return true
    return false
  }

  /** The catalog for one caller. With `before`, the caller's session is notified of what differs from that. */
  #ofCaller(caller: CallerIdentity, before?: CatalogSnapshot): Catalog {
    const key = clientKey(caller)
    const known = this.#byCaller.get(key)
    const [oldest] = this.#byCaller
    if (oldest && !known && this.#byCaller.size >= maxCallerCatalogs) this.#forget(...oldest)
    const catalog = known ?? this.#openFor(caller, before)
    this.#byCaller.delete(key)
    this.#byCaller.set(key, catalog)
    return catalog
  }

  #openFor(caller: CallerIdentity, before: CatalogSnapshot | undefined): Catalog {
    const sources = this.#options.sources.map((source) => source.seenBy?.(caller.capabilities, caller) ?? source)
    const catalog = this.#open(sources, caller.session, before)
    catalog.snapshot()
    return catalog
  }

  #open(sources: readonly Source[], session?: string, before?: CatalogSnapshot): Catalog {
    const onChange = (kinds: ReadonlySet<Kind>) => {
      for (const listener of this.#listeners) listener(kinds, session)
    }
    return new Catalog({ ...this.#options, sources }, { items: this.#items, before, onChange })
  }

  #forget(key: string, catalog: Catalog): void {
    this.#byCaller.delete(key)
    catalog.settle()
    catalog[Symbol.dispose]()
  }

  /** Notifies a caller's session that the caller's own lists have appeared, changed or ended. */
  #callerChanged(caller: CallerIdentity): void {
    if (this.#hasLists(caller)) return void this.#ofCaller(caller, this.#ofProfile(caller).snapshot())
    // The catalog is notified of the end too, perhaps later.
    setImmediate(() => {
      const key = clientKey(caller)
      const catalog = this.#byCaller.get(key)
      if (catalog && !this.#hasLists(caller)) this.#forget(key, catalog)
    })
  }
}

/** Merges simultaneous notifications: a change reaches the catalogs of all profiles, but is reported once. */
function mergeNotices(listener: ListChangeListener): ListChangeListener {
  /** The kinds that changed, by session; `undefined` is for all callers. */
  const gathered = new Map<string | undefined, ReadonlySet<Kind>>()
  const report = () => {
    const all = gathered.get(undefined) ?? new Set()
    const sessions = [...gathered].filter(([session]) => session !== undefined)
    gathered.clear()
    if (all.size > 0) listener(all)
    for (const [session, kinds] of sessions) {
      const others = kinds.difference(all)
      if (others.size > 0) listener(others, session)
    }
  }
  return (kinds, session) => {
    if (gathered.size === 0) setImmediate(report)
    gathered.set(session, kinds.union(gathered.get(session) ?? new Set()))
  }
}
