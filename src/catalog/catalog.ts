import type { NamingConfig } from '../config/schema.ts'
import type { Exposure, Served, View } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Decide, Denial } from '../core/decision.ts'
import type { Entry, Kind } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import type { Source } from '../core/source.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { FlagsOf } from './item.ts'
import { createReadiness } from './readiness.ts'
import { createSearchIndex } from './search/search-index.ts'
import { type CatalogSnapshot, createSnapshotBuilder } from './snapshot.ts'
import { createView } from './view.ts'
import { createVisibility, metaSource, summariesOf, type ToolsByExposure, toolsByExposure } from './visibility.ts'

/** How long a list waits by default for servers of which nothing, or something, is remembered. */
const firstListMs = 15_000
const knownListMs = 2_000

export interface CatalogOptions {
  /** In the order of the configuration. */
  readonly sources: readonly Source[]
  readonly naming: NamingConfig
  /**
   * No source holds a list up longer than this. Undefined: 15 s for a source of which nothing is known yet, 2 s for any
   * other.
   */
  readonly listDeadlineMs: number | undefined
  readonly decide: Decide
  /** Why a caller can use nothing of a server, whatever it offers. */
  closed(caller: Caller, server: string): Denial | undefined
  exposure(caller: Caller): Exposure
  /** What is suspicious about a definition. */
  readonly flagsOf?: FlagsOf
  /** What a caller may not use is answered as if it did not exist. */
  readonly hideDenied?: boolean
  readonly clock: Clock
  readonly log: Log
}

/** Everything that can be called, from all sources, under the names by which callers know it. */
export interface Catalog extends Disposable {
  view(caller: Caller): View
  /** Tells which kinds of lists have really changed, debounced; by then everybody sees the new ones. */
  onChange(listener: ChangeListener): Disposable
  /** Waits for sources of which nothing is known yet, whoever may use them: for the operator. */
  ready(): Promise<void>
  /** All sources but the meta-tools, whoever may use them. */
  summaries(): readonly ServerSummary[]
  /** Every entry of a kind, whoever may use it: for the operator. */
  everything(kind: Kind): readonly Served[]
  /** The tools that a client is shown in an exposure mode if it may use everything: for the operator. */
  shown(exposure: Exposure): readonly Served[]
  /** Decisions have changed: what callers see is made anew, and they are told. */
  reconsider(): void
  /** The served form of a URI that a server mentions. */
  servedUri(server: string, uri: string): string
}

export function createCatalog(options: CatalogOptions): Catalog {
  const { sources, naming, clock, log } = options
  const merge = createSnapshotBuilder(sources, naming, log, options.flagsOf)
  const mayUse = (caller: Caller, entry: Entry) => options.decide(caller, entry).allowed
  const mayReach = (caller: Caller, server: string) => options.closed(caller, server) === undefined
  let visibleIn = createVisibility(mayUse, mayReach, sources)
  /** What anybody may have seen since the last announcement. */
  let seen: readonly CatalogSnapshot[] = []
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
  const { listDeadlineMs } = options
  const deadlineMs = { first: listDeadlineMs ?? firstListMs, known: listDeadlineMs ?? knownListMs }
  const readiness = createReadiness({ sources, deadlineMs, clock })

  const viewOptions = {
    sources: new Map(sources.map((source) => [source.name, source])),
    naming,
    readiness,
    snapshot,
    index: () => {
      const current = snapshot()
      // Brought up to date when somebody searches: servers come and go in bursts, and most callers never do.
      if (indexed !== current) index.update(current.items.tool.filter(({ entry }) => entry.server !== metaSource))
      indexed = current
      return index
    },
    visible: (caller: Caller) => visibleIn(snapshot(), caller),
    exposure: options.exposure,
    decide: options.decide,
    closed: options.closed,
    hideDenied: options.hideDenied ?? false,
  }

  return {
    view: (caller) => createView(caller, viewOptions),
    onChange: (listener) => {
      // Whoever subscribes hears of every change from now on, listed before or not.
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
      visibleIn = createVisibility(mayUse, mayReach, sources)
      reconsidered = true
      changes.touch()
    },
    servedUri: (server, uri) => snapshot().uriOf(server, uri),
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

/** Servers come and go in bursts: callers hear of a burst once, soon after its end and at the latest after a second. */
const quietMs = 100
const latestMs = 1_000

export type ChangeListener = (kinds: ReadonlySet<Kind>) => void

interface Changes extends Disposable {
  /** Something may have changed. */
  touch(): void
  onChange(listener: ChangeListener): Disposable
}

/** Tells listeners, debounced, what `changedKinds` finds when it is quiet again; nothing found, nothing told. */
function createChanges(clock: Clock, log: Log, changedKinds: () => ReadonlySet<Kind>): Changes {
  const listeners = new Set<ChangeListener>()
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
        log.error({ err: error }, 'a listener failed to hear of changed lists')
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
    onChange: (listener) => {
      // Wrapped, so that one function registered twice is two listeners.
      const own: ChangeListener = (kinds) => listener(kinds)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
    [Symbol.dispose]() {
      timer?.[Symbol.dispose]()
      timer = undefined
      listeners.clear()
    },
  }
}
