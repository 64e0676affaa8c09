import type { NamingConfig } from '../config/schema.ts'
import type { Exposure, ListChangeListener, Served, View } from '../core/access.ts'
import { AppPages } from '../core/apps.ts'
import { type Call, type Caller, type CallerIdentity, type Capabilities, clientKey, listProfile } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Decide, Denial } from '../core/decision.ts'
import type { Kind } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import { metaSource, type Source } from '../core/source.ts'
import type { ServerSummary } from '../core/source-status.ts'
import { listen } from '../lib/listen.ts'
import { createReadiness } from './readiness.ts'
import { isTemplateUri, isWebLink, servedChecker } from './resolve.ts'
import { createSearchIndex } from './search/search-index.ts'
import { type CatalogSnapshot, createSnapshotBuilder, type FlagsOf, type KnownItems } from './snapshot.ts'
import { createView } from './view.ts'
import { createVisibility, summariesOf, type ToolsByExposure, toolsByExposure } from './visibility.ts'

/** How long a list waits by default: for a server whose entries are not known yet, and for any other server. */
const firstListMs = 8_000
const knownListMs = 2_000

export interface CatalogOptions {
  /** Sources in configuration order. If two of them have equal claims to a name, the first one gets it. */
  readonly sources: readonly Source[]
  readonly naming: NamingConfig
  /** How long a list waits for one source. Default: 8 s for a source without known entries, 2 s for any other. */
  readonly listDeadlineMs: number | undefined
  readonly decide: Decide
  /** The denial if the caller may not use anything on the server; undefined otherwise. */
  closed(caller: Caller, server: string): Denial | undefined
  exposure(caller: Caller): Exposure
  readonly flagsOf?: FlagsOf
  /** If true, entries that the caller may not use are reported as not found. */
  readonly hideDenied?: boolean
  /** The pages that callers have read; they outlive a configuration. */
  readonly pages?: AppPages
  /** The items of all catalogs, if there are several. */
  readonly items?: KnownItems
  /** What callers have seen before. If the catalog differs, listeners are notified. */
  readonly before?: CatalogSnapshot
  readonly clock: Clock
  readonly log: Log
}

export interface Catalog extends Disposable {
  /** The catalog as a caller sees it. With `hideDenied: false` denials are not hidden, whatever the configuration says. */
  view(caller: Caller, options?: { readonly hideDenied: boolean }): View
  /** Reports, debounced, which kinds of lists have changed. By then, views already show the new lists. */
  onChange(listener: ListChangeListener): Disposable
  /** Waits for sources whose entries are not known yet, regardless of permissions. */
  ready(): Promise<void>
  /** All sources except the meta-tools, regardless of permissions. */
  summaries(): readonly ServerSummary[]
  /** Every entry of the kind, regardless of permissions. */
  everything(kind: Kind): readonly Served[]
  /** The tools that an exposure mode shows to a client that has all permissions. */
  shown(exposure: Exposure): readonly Served[]
  /** Recomputes the views and notifies listeners. Call it when decisions may have changed. */
  reconsider(): void
  /** Converts URIs in the result of a call to those that its caller uses. */
  servedUris(call: Call): (uri: string) => string
  snapshot(): CatalogSnapshot
  /** Notifies listeners now if they are to be notified. */
  settle(): void
}

export function createCatalog(options: CatalogOptions): Catalog {
  const { sources, naming, clock, log } = options
  const merge = createSnapshotBuilder(options)
  let visibleIn = createVisibility(options)
  /** Snapshots that callers may have seen since the last notification. */
  let seen: readonly CatalogSnapshot[] = options.before ? [options.before] : []
  const index = createSearchIndex()
  let indexed: CatalogSnapshot | undefined
  let reconsidered = false
  let shown: { readonly of: CatalogSnapshot; readonly tools: ToolsByExposure } | undefined

  const snapshot = (): CatalogSnapshot => {
    const current = merge.snapshot()
    if (current !== seen.at(-1)) seen = [...seen, current]
    return current
  }

  const changes = createChanges(clock, log, () => {
    const current = snapshot()
    const changed = seen.flatMap((earlier) => changedKinds(earlier, current))
    const kinds = new Set(reconsidered ? [...changed, ...all] : changed)
    seen = [current]
    reconsidered = false
    return kinds
  })
  const changed = (source: Source) => {
    merge.invalidate(source)
    changes.touch()
  }
  const subscriptions = sources.map((source) => source.onChange(() => changed(source)))
  if (options.before) changes.touch()
  const { listDeadlineMs } = options
  const deadlineMs = { first: listDeadlineMs ?? firstListMs, known: listDeadlineMs ?? knownListMs }
  const readiness = createReadiness({ sources, deadlineMs, clock })

  /** The views of callers that make many calls, as those of a session do. */
  const views = new WeakMap<Caller, View>()
  const viewOptions = {
    sources: new Map(sources.map((source) => [source.name, source])),
    naming,
    readiness,
    snapshot,
    index: () => {
      const current = snapshot()
      // Update the index only when it is searched: servers change in bursts, and most callers never search.
      if (indexed !== current) index.update(current.items.tool.filter(({ entry }) => entry.server !== metaSource))
      indexed = current
      return index
    },
    visible: (caller: Caller) => visibleIn(snapshot(), caller),
    exposure: options.exposure,
    decide: options.decide,
    closed: options.closed,
    hideDenied: options.hideDenied ?? false,
    pages: options.pages ?? new AppPages(),
  }

  return {
    view(caller, own) {
      if (own) return createView(caller, { ...viewOptions, ...own })
      const known = views.get(caller)
      if (known) return known
      const view = createView(caller, viewOptions)
      // Which servers a caller may know of is decided when the view is created.
      if (!viewOptions.hideDenied) views.set(caller, view)
      return view
    },
    onChange: (listener) => {
      // Take a snapshot now, so that the listener gets every later change even if nothing was listed before.
      snapshot()
      return changes.onChange(listener)
    },
    ready: () => readiness.all(undefined, () => true),
    summaries: () => summariesOf(snapshot().items, sources),
    everything: (kind) => snapshot().items[kind],
    shown(exposure) {
      const of = snapshot()
      if (shown?.of !== of) shown = { of, tools: toolsByExposure(of.items.tool, () => summariesOf(of.items, sources)) }
      return shown.tools[exposure]
    },
    reconsider() {
      visibleIn = createVisibility(options)
      reconsidered = true
      changes.touch()
    },
    servedUris({ entry: { server }, input }) {
      const current = snapshot()
      const hasResources = viewOptions.sources.get(server)?.mayHaveResources?.() !== false
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
    },
    snapshot,
    settle: changes.settle,
    [Symbol.dispose]() {
      for (const subscription of subscriptions) subscription[Symbol.dispose]()
      readiness[Symbol.dispose]()
      changes[Symbol.dispose]()
    },
  }
}

const all: readonly Kind[] = ['tool', 'resource', 'template', 'prompt']

const changedKinds = (before: CatalogSnapshot, after: CatalogSnapshot): Kind[] =>
  before === after
    ? []
    : all.filter((kind) => {
        const old = before.items[kind]
        const current = after.items[kind]
        return (
          old.length !== current.length || current.some((item, at) => item !== old[at] && item.json !== old[at]?.json)
        )
      })

/** When to notify listeners: 100 ms after the last change, but within a second, so that a burst is reported once. */
const quietMs = 100
const latestMs = 1_000

/** Calls listeners, debounced, with the result of `changedKinds`, unless that is empty. */
function createChanges(clock: Clock, log: Log, changedKinds: () => ReadonlySet<Kind>) {
  const listeners = new Set<ListChangeListener>()
  let timer: Disposable | undefined
  let latest = 0

  const tell = () => {
    timer = undefined
    const kinds = changedKinds()
    if (kinds.size === 0) return
    for (const listener of listeners) {
      try {
        listener(kinds)
      } catch (error) {
        log.error({ err: error }, 'listener for list changes failed')
      }
    }
  }

  return {
    touch: () => {
      const now = clock.monotonic()
      if (timer) timer[Symbol.dispose]()
      else latest = now + latestMs
      timer = clock.after(Math.max(0, Math.min(quietMs, latest - now)), tell)
    },
    settle() {
      if (!timer) return
      timer[Symbol.dispose]()
      tell()
    },
    onChange: (listener: ListChangeListener): Disposable => listen(listeners, listener),
    [Symbol.dispose]() {
      timer?.[Symbol.dispose]()
      timer = undefined
      listeners.clear()
    },
  }
}

/** Max number of catalogs for single callers. */
const maxCallers = 64

/** Merges simultaneous notifications: a change reaches the catalogs of all profiles, but is reported once. */
function once(listener: ListChangeListener): ListChangeListener {
  /** The kinds that changed, by session; `undefined` is for all callers. */
  let gathered: Map<string | undefined, Set<Kind>> | undefined
  return (kinds, session) => {
    if (!gathered) {
      gathered = new Map()
      setImmediate(report)
    }
    const known = gathered.get(session) ?? new Set()
    gathered.set(session, known)
    for (const kind of kinds) known.add(kind)
  }

  function report(): void {
    const forAll = gathered?.get(undefined) ?? new Set()
    const bySession = [...(gathered ?? [])].filter(([session]) => session !== undefined)
    gathered = undefined
    if (forAll.size > 0) listener(forAll)
    for (const [session, kinds] of bySession) {
      const others = kinds.difference(forAll)
      if (others.size > 0) listener(others, session)
    }
  }
}

/**
 * Creates one catalog per list profile of clients, because servers may offer more to more capable clients, and one
 * for each caller that sees lists of its own.
 */
export function createCatalogs(options: CatalogOptions): Catalog {
  const listeners = new Map<ListChangeListener, Map<Catalog, Disposable>>()
  const catalogs = new Map<number, Catalog>()
  const callerCatalogs = new Map<string, Catalog>()
  const items: KnownItems = new WeakMap()
  const plain = catalogOf({})
  const callerChanges = options.sources.flatMap((source) => source.onCallerChange?.(callerChanged) ?? [])

  return {
    view: (caller, shown) => catalogFor(caller).view(caller, shown),
    onChange(given) {
      const listener = once(given)
      const following = new Map<Catalog, Disposable>()
      listeners.set(listener, following)
      for (const catalog of catalogs.values()) following.set(catalog, catalog.onChange(listener))
      return {
        [Symbol.dispose]() {
          listeners.delete(listener)
          for (const subscription of following.values()) subscription[Symbol.dispose]()
        },
      }
    },
    reconsider() {
      for (const catalog of [...catalogs.values(), ...callerCatalogs.values()]) catalog.reconsider()
    },
    ready: plain.ready,
    summaries: plain.summaries,
    everything: plain.everything,
    shown: plain.shown,
    servedUris: (call) => catalogFor(call.caller).servedUris(call),
    snapshot: plain.snapshot,
    settle: plain.settle,
    [Symbol.dispose]() {
      for (const subscription of callerChanges) subscription[Symbol.dispose]()
      for (const catalog of [...catalogs.values(), ...callerCatalogs.values()]) catalog[Symbol.dispose]()
    },
  }

  function forget(key: string, catalog: Catalog): void {
    callerCatalogs.delete(key)
    catalog.settle()
    for (const following of listeners.values()) following.delete(catalog)
    catalog[Symbol.dispose]()
  }

  function catalogFor(caller: Caller): Catalog {
    return hasLists(caller) ? callerCatalogOf(caller) : catalogOf(caller.capabilities)
  }

  function catalogOf(capabilities: Capabilities): Catalog {
    const profile = listProfile(capabilities)
    const known = catalogs.get(profile)
    if (known) return known
    const sources = options.sources.map((source) => source.seenBy?.(capabilities) ?? source)
    const catalog = createCatalog({ ...options, sources, items })
    catalogs.set(profile, catalog)
    for (const [listener, following] of listeners) following.set(catalog, catalog.onChange(listener))
    return catalog
  }

  /** Whether a server lists something else for this caller than for others with its capabilities. */
  function hasLists(caller: CallerIdentity): boolean {
    return options.sources.some((source) => source.hasListsFor?.(caller))
  }

  /** The catalog for one caller. With `before`, the caller's session is notified of what differs from that. */
  function callerCatalogOf(caller: CallerIdentity, before?: CatalogSnapshot): Catalog {
    const key = clientKey(caller)
    const known = callerCatalogs.get(key)
    if (known) {
      callerCatalogs.delete(key)
      callerCatalogs.set(key, known)
      return known
    }
    const [oldest] = callerCatalogs
    if (oldest && callerCatalogs.size >= maxCallers) forget(...oldest)
    const sources = options.sources.map((source) => source.seenBy?.(caller.capabilities, caller) ?? source)
    const catalog = createCatalog({ ...options, sources, items, ...(before && { before }) })
    callerCatalogs.set(key, catalog)
    catalog.onChange((kinds) => {
      for (const listener of listeners.keys()) listener(kinds, caller.session)
    })
    return catalog
  }

  /** Notifies a caller's session that the caller's own lists have appeared, changed or ended. */
  function callerChanged(caller: CallerIdentity): void {
    if (hasLists(caller)) return void callerCatalogOf(caller, catalogOf(caller.capabilities).snapshot())
    // The catalog is notified of the end too, perhaps later.
    setImmediate(() => {
      const key = clientKey(caller)
      const catalog = callerCatalogs.get(key)
      if (catalog && !hasLists(caller)) forget(key, catalog)
    })
  }
}
