import type { Page } from '../core/access.ts'
import { isAppOnly, pageOf, showsApps, toolsForModels } from '../core/apps.ts'
import type { Caller } from '../core/call.ts'
import type { Decide, Denial } from '../core/decision.ts'
import type { Definition, Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Exposure, ExposureSetting } from '../core/exposure.ts'
import { metaSource, type Source } from '../core/source.ts'
import { isUnhealthy, type ServerSummary } from '../core/source-status.ts'
import { setBounded } from '../lib/memoize.ts'
import type { AutoExposure } from './exposure.ts'
import { nothingUsable } from './not-found.ts'
import { createPortableItems, type PortableItems } from './portable-items.ts'
import type { ScoreSource } from './search/combine-scores.ts'
import { skillAt } from './skills.ts'
import { type CatalogSnapshot, type Item, type PerKind, perKind, renameItem } from './snapshot.ts'

/** The part of a snapshot that callers with the same permissions see. */
export interface Visible {
  readonly items: PerKind<readonly Item[]>
  /** The tools that models may be offered, as the search knows them. */
  readonly offered: readonly Item[]
  /** Set if the caller sees portable forms of tools. */
  readonly portable: PortableItems | undefined
  /** The tools for each exposure mode. The mode applies to tools only. */
  readonly tools: ToolsByExposure
  readonly toolPages: Readonly<Record<Exposure, Pages>>
  readonly pages: PerKind<Pages>
  /** Summaries of the servers. Computed on each call, because a source's status can change without a new snapshot. */
  servers(): readonly ServerSummary[]
}

/** What callers may use and see. */
export interface CatalogRules {
  readonly decide: Decide
  /** The denial if the caller may not use anything on the server; undefined otherwise. */
  closed(caller: Caller, server: string): Denial | undefined
  exposure(caller: Caller): ExposureSetting
  readonly auto?: AutoExposure
  /** Whether the caller sees portable forms of tools (W8). */
  isPortable?(caller: Caller): boolean
  /** Whether clients should load the tool at once: it is listed in every mode. */
  isAlwaysLoaded?(caller: Caller, entry: Entry): boolean
  /** Whether results may be cut for the caller: then what reads the rest is listed, in every mode. */
  mayCutResults?(caller: Caller): boolean
  /** If true, entries that the caller may not use are reported as not found. */
  readonly hideDenied?: boolean
  /** What is added to the scores of a caller's search. */
  scoreSources?(caller: Caller): readonly ScoreSource[]
}

/** Max number of cached results. The results for agents that are no longer in use are evicted. */
const maxKept = 64

/** The parts of snapshots that callers see, cached for the latest snapshot. */
export class Visibility {
  readonly #sources: readonly Source[]
  readonly #rules: CatalogRules
  readonly #known = new Map<string, Visible>()
  #of: CatalogSnapshot | undefined

  constructor(sources: readonly Source[], rules: CatalogRules) {
    this.#sources = sources
    this.#rules = rules
  }

  /** Forgets what callers see, because decisions may have changed. */
  reset(): void {
    this.#known.clear()
  }

  of(snapshot: CatalogSnapshot, caller: Caller): Visible {
    if (this.#of !== snapshot) this.reset()
    this.#of = snapshot
    // The key has every caller property that the result depends on: otherwise callers could see too much.
    const readsRest = this.#rules.mayCutResults?.(caller) === true
    const isPortable = this.#rules.isPortable?.(caller)
    const { agent, endpoint, authenticated, admin, capabilities } = caller
    const key = JSON.stringify([agent, endpoint, authenticated, admin, showsApps(capabilities), readsRest, isPortable])
    const visible = this.#known.get(key) ?? this.#see(snapshot, caller, readsRest)
    setBounded(this.#known, key, visible, maxKept)
    return visible
  }

  #see(snapshot: CatalogSnapshot, caller: Caller, readsRest: boolean): Visible {
    const { decide, closed, hideDenied = false } = this.#rules
    const isListed = (entry: Entry) => (readsRest || !isForRest(entry)) && decide(caller, entry).allowed
    const allowed = perKind((kind) => snapshot.items[kind].filter(({ entry }) => isListed(entry)))
    const allowedTools = skillToolsIfUseful(allowed)
    const isServed = (name: string) => snapshot.byName.tool.has(name)
    const portable = this.#rules.isPortable?.(caller) ? createPortableItems(allowedTools, isServed) : undefined
    const shown = (tools: readonly Item[]) => (portable ? tools.map(portable.form) : tools)
    const usable = this.#withAlwaysLoad(allowedTools, caller)
    const items = { ...allowed, tool: shown(usable), resource: withoutHiddenSkills(snapshot, allowed) }
    const offered = toolsForModels(allowedTools)
    const mayReach = (server: string) => closed(caller, server) === undefined
    const whyEmpty = hideDenied ? undefined : (source: Source) => this.#whyNoReads(source, caller)
    const servers = () => summariesOf({ ...items, tool: offered }, this.#sources, mayReach, whyEmpty)
    const byMode = toolsByExposure(showsApps(caller.capabilities) ? usable : toolsForModels(usable), servers)
    const tools = perExposure((mode) => shown(byMode[mode]))
    const toolPages = perExposure((mode) => createPages(tools[mode]))
    const pages = perKind((kind) => createPages(items[kind]))
    return { items, offered, portable, tools, pages, toolPages, servers }
  }

  #withAlwaysLoad(tools: readonly Item[], caller: Caller): readonly Item[] {
    const { isAlwaysLoaded } = this.#rules
    return isAlwaysLoaded
      ? tools.map((tool) => (isAlwaysLoaded(caller, tool.entry) ? alwaysLoaded(tool) : tool))
      : tools
  }

  /** Why the caller may use no tool of a server whose tools are allowed, but not known to be read-only (J2). */
  #whyNoReads(source: Source, caller: Caller): string | undefined {
    if (source.origin === 'native') return undefined
    for (const entry of source.entries()) {
      const decision = this.#rules.decide(caller, entry)
      if (!decision.allowed && decision.code === 'WRITE_NOT_ALLOWED')
        return nothingUsable(source.name, decision, 'tool')
    }
    return undefined
  }
}

/** The meta-tools for skills, which are useless without a skill. */
const skillTools: readonly string[] = ['find_skill', 'get_skill']

/** The tools, without those for skills if there is no skill. */
export const skillToolsIfUseful = ({ tool, skill }: PerKind<readonly Item[]>): readonly Item[] =>
  skill.length > 0
    ? tool
    : tool.filter(({ entry }) => !(entry.server === metaSource && skillTools.includes(entry.name)))

/** The resources that a caller may use, without the files of skills that it may not use. */
function withoutHiddenSkills(
  { items, registry }: CatalogSnapshot,
  { resource, skill }: PerKind<readonly Item[]>,
): readonly Item[] {
  if (skill.length === items.skill.length) return resource
  const shown = new Set(skill.map(({ entry }) => entry))
  return resource.filter(({ entry }) => {
    const item = skillAt(registry.get(entry.server)?.skill, entry.name)
    return item === undefined || shown.has(item.entry)
  })
}

/** Max entries per page. Few clients request a second page, so pages are large. */
const maxPageItems = 10_000

/** Returns the page that follows a cursor. Each page is serialized once. */
type Pages = (cursor: string | undefined) => Page

function createPages(items: readonly Item[]): Pages {
  const made = new Map<number, Page>()
  let positions: Map<string, number> | undefined

  const startOf = (cursor: string | undefined): number => {
    if (cursor === undefined) return 0
    positions ??= new Map(items.map((item, index) => [itemCursor(item), index]))
    const position = positions.get(cursor)
    if (position !== undefined) return position + 1
    throw new ToolwayError('INVALID_ARGUMENTS', 'This cursor is unknown or no longer valid; list again without one.')
  }

  return (cursor) => {
    const start = startOf(cursor)
    const page = made.get(start) ?? makePage(items, start)
    // Cache only pages at multiples of the page size: every name is a valid cursor, so the cache could grow too large.
    if (start % maxPageItems === 0) made.set(start, page)
    return page
  }
}

function makePage(items: readonly Item[], start: number): Page {
  const shown = items.slice(start, start + maxPageItems)
  const last = shown.at(-1)
  const more = last !== undefined && start + maxPageItems < items.length
  const bytes = Buffer.from(`[${shown.map(({ json }) => json).join()}]`)
  return { items: bytes, count: shown.length, nextCursor: more ? itemCursor(last) : undefined }
}

/** An item's cursor: opaque to clients, equal on all replicas, and valid as long as the entry is listed. */
const itemCursor = (item: Item): string => Buffer.from(item.name).toString('base64url')

/** Summaries of the sources that have some of these items, or a reason to have no tools, without the meta-tools. */
export function summariesOf(
  items: PerKind<readonly Item[]>,
  sources: Iterable<Source>,
  mayReach: (server: string) => boolean = () => true,
  whyEmpty: (source: Source) => string | undefined = () => undefined,
): readonly ServerSummary[] {
  const usable = new Set<string>()
  const tools = new Map<string, number>()
  for (const list of Object.values(items)) for (const { entry } of list) usable.add(entry.server)
  for (const { entry } of items.tool) tools.set(entry.server, (tools.get(entry.server) ?? 0) + 1)
  // A server that has listed nothing yet may still offer something to this caller, so include it.
  const silent = (source: Source) => source.entries().length === 0 && mayReach(source.name)
  return [...sources].flatMap((source) => {
    const { name } = source
    if (name === metaSource) return []
    const reason = tools.has(name) ? undefined : whyEmpty(source)
    if (reason === undefined && !usable.has(name) && !silent(source)) return []
    const status = source.status()
    const isExplained = reason === undefined || isUnhealthy(status.health)
    return [{ name, status: isExplained ? status : { ...status, reason }, tools: tools.get(name) ?? 0 }]
  })
}

/** Whether an entry only reads the rest of results that were cut. */
export const isForRest = ({ kind, server, name }: Entry): boolean =>
  server === metaSource && (kind === 'template' || name === 'read_result')

export type ToolsByExposure = Readonly<Record<Exposure, readonly Item[]>>

const perExposure = <T>(make: (mode: Exposure) => T): Readonly<Record<Exposure, T>> => ({
  direct: make('direct'),
  meta: make('meta'),
  both: make('both'),
  code: make('code'),
})

/** The only tools in code mode (B3): one each to find tools, to declare them, and to run programs that call them. */
const codeTools = [
  { server: metaSource, name: 'search_tools' },
  { server: metaSource, name: 'describe_tools' },
  { server: 'native', name: 'execute_code' },
] as const

/**
 * The tools that each exposure mode shows, out of those that the caller may use. Each tool is listed once: under an
 * alias where code mode requires one, otherwise under its own name. Tools with a page are shown in every mode, because
 * hosts show the page of a tool that they know; so are tools to load at once. Tools that are not shown can be called.
 */
export function toolsByExposure(items: readonly Item[], servers: () => readonly ServerSummary[]): ToolsByExposure {
  const direct = items.filter(({ entry }) => entry.server !== metaSource)
  const meta = items
    .filter(({ entry }) => entry.server === metaSource && !codeTools.some(({ name }) => name === entry.name))
    .map((item) => describeFor(item, servers))
  const code = codeTools.flatMap(({ server, name }) => {
    const hasName = ({ entry }: Item) => entry.name === name || entry.aliases?.includes(name) === true
    const item = items.find((one) => one.entry.server === server && hasName(one))
    if (!item) return []
    return [describeFor(item.entry.name === name ? item : renameItem(item, name), servers)]
  })
  const always = direct.filter(({ definition }) => isAlwaysListed(definition))
  const rest = meta.filter(({ entry }) => isForRest(entry))
  return {
    direct: [...direct, ...rest],
    meta: [...meta, ...always],
    both: [...meta, ...direct],
    code: [...code, ...always, ...rest],
  }
}

/** The member of `_meta` that tells clients with a search of their own to show a tool to the model at once. */
const alwaysLoadKey = 'anthropic/alwaysLoad'

function alwaysLoaded(item: Item): Item {
  const definition = { ...item.definition, _meta: { ...item.definition._meta, [alwaysLoadKey]: true } }
  return { ...item, definition, json: JSON.stringify(definition) }
}

const isAlwaysListed = (definition: Definition): boolean =>
  definition._meta !== undefined &&
  (definition._meta[alwaysLoadKey] === true || (pageOf(definition) !== undefined && !isAppOnly(definition)))

/** An item whose description mentions only servers that the caller sees. */
function describeFor(item: Item, servers: () => readonly ServerSummary[]): Item {
  const description = item.entry.descriptionFor?.(servers(), item.name)
  if (description === undefined) return item
  const definition = { ...item.definition, description }
  return { ...item, definition, json: JSON.stringify(definition) }
}
