import type { Exposure, Page } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Source } from '../core/source.ts'
import type { ServerSummary } from '../core/source-status.ts'
import { type Item, renamed } from './item.ts'
import { type CatalogSnapshot, type PerKind, perKind } from './snapshot.ts'

/** What callers with the same rights see of one snapshot. */
export interface Visible {
  readonly items: PerKind<readonly Item[]>
  /** Of the tools, what each exposure mode shows; everything else is always shown. */
  readonly tools: ToolsByExposure
  readonly toolPages: Readonly<Record<Exposure, Pages>>
  readonly pages: PerKind<Pages>
  /** The sources of what is seen, as they are now. */
  servers(): readonly ServerSummary[]
}

/** Agents that nobody uses any more must not pile up. */
const maxKept = 64

/** Keeps, per snapshot, what each agent sees. */
export function createVisibility(
  mayUse: (caller: Caller, entry: Entry) => boolean,
  mayReach: (caller: Caller, server: string) => boolean,
  sources: readonly Source[],
): (snapshot: CatalogSnapshot, caller: Caller) => Visible {
  let known = new Map<string, Visible>()
  let of: CatalogSnapshot | undefined
  return (snapshot, caller) => {
    if (of !== snapshot) known = new Map()
    of = snapshot
    // All of a caller that a rule can depend on; its name alone would let an unauthenticated one see too much.
    const key = JSON.stringify([caller.agent, caller.authenticated, caller.admin])
    const visible =
      known.get(key) ??
      see(snapshot, {
        mayUse: (entry) => mayUse(caller, entry),
        servers: (items) => summariesOf(items, sources, (server) => mayReach(caller, server)),
      })
    known.delete(key)
    known.set(key, visible)
    if (known.size > maxKept) known.delete(known.keys().next().value as string)
    return visible
  }
}

interface Sight {
  mayUse(entry: Entry): boolean
  servers(items: PerKind<readonly Item[]>): readonly ServerSummary[]
}

function see(snapshot: CatalogSnapshot, sight: Sight): Visible {
  const items = perKind((kind) => snapshot.items[kind].filter(({ entry }) => sight.mayUse(entry)))
  const servers = () => sight.servers(items)
  const tools = toolsByExposure(items.tool, servers)
  return {
    items,
    tools,
    pages: perKind((kind) => createPages(items[kind])),
    toolPages: {
      direct: createPages(tools.direct),
      meta: createPages(tools.meta),
      both: createPages(tools.both),
      code: createPages(tools.code),
    },
    servers,
  }
}

/** Few clients ask for a second page, so the first one holds whatever a client can bear. */
const pageSize = 10_000

/** A list cut into pages whose bytes are put together once. */
interface Pages {
  page(cursor: string | undefined): Page
}

function createPages(items: readonly Item[]): Pages {
  const made = new Map<number, Page>()
  let positions: Map<string, number> | undefined

  const startOf = (cursor: string | undefined): number => {
    if (cursor === undefined) return 0
    positions ??= new Map(items.map((item, index) => [cursorOf(item), index]))
    const position = positions.get(cursor)
    if (position !== undefined) return position + 1
    throw new ToolwayError('INVALID_ARGUMENTS', 'This cursor is unknown or no longer valid; list again without one.')
  }

  return {
    page: (cursor) => {
      const start = startOf(cursor)
      const page = made.get(start) ?? makePage(items, start)
      // Only pages that follow one another are kept: any name makes a cursor, and each would make a page.
      if (start % pageSize === 0) made.set(start, page)
      return page
    },
  }
}

function makePage(items: readonly Item[], start: number): Page {
  const shown = items.slice(start, start + pageSize)
  const last = shown.at(-1)
  const more = last !== undefined && start + pageSize < items.length
  return { items: joined(shown), count: shown.length, ...(more && { nextCursor: cursorOf(last) }) }
}

/** Opaque to clients, and the same on every replica: it holds for as long as that entry is listed. */
const cursorOf = (item: Item): string => Buffer.from(item.name).toString('base64url')

const joined = (items: readonly Item[]): Buffer => Buffer.from(`[${items.map(({ json }) => json).join()}]`)

/** The meta-tools: the source that the exposure modes are about. */
export const metaSource = 'toolway'

/** The sources of these items; the meta-tools are not among them. */
export function summariesOf(
  items: PerKind<readonly Item[]>,
  sources: Iterable<Source>,
  mayReach: (server: string) => boolean = () => true,
): readonly ServerSummary[] {
  const usable = new Set<string>()
  const tools = new Map<string, number>()
  for (const list of Object.values(items)) for (const { entry } of list) usable.add(entry.server)
  for (const { entry } of items.tool) tools.set(entry.server, (tools.get(entry.server) ?? 0) + 1)
  // A server that has said nothing yet is shown to whom it may concern: it may have something for this caller.
  const silent = (source: Source) => source.entries().length === 0 && mayReach(source.name)
  const shown = [...sources].filter(
    (source) => source.name !== metaSource && (usable.has(source.name) || silent(source)),
  )
  return shown.map((source) => ({ name: source.name, status: source.status(), tools: tools.get(source.name) ?? 0 }))
}

/** The tools that are shown in each exposure mode. */
export type ToolsByExposure = Readonly<Record<Exposure, readonly Item[]>>

/** All that code mode shows (B3): how to find a tool, how to declare it, how to call it. */
const codeTools = [
  { server: metaSource, name: 'search_tools' },
  { server: metaSource, name: 'describe_tools' },
  { server: 'native', name: 'execute_code' },
] as const

/**
 * What each exposure mode shows of the tools that a caller may use. Nothing is shown twice: what goes by several names
 * is listed by its own, and by another one only where that mode knows it so. Whatever is not shown can still be called.
 */
export function toolsByExposure(items: readonly Item[], servers: () => readonly ServerSummary[]): ToolsByExposure {
  const direct = items.filter(({ entry }) => entry.server !== metaSource)
  const meta = items
    .filter(({ entry }) => entry.server === metaSource && !codeTools.some(({ name }) => name === entry.name))
    .map((item) => told(item, servers))
  const code = codeTools.flatMap(({ server, name }) => {
    const goesBy = ({ entry }: Item) => entry.name === name || entry.aliases?.includes(name) === true
    const item = items.find((one) => one.entry.server === server && goesBy(one))
    if (!item) return []
    return [told(item.entry.name === name ? item : renamed(item, name), servers)]
  })
  return { direct, meta, both: [...meta, ...direct], code }
}

/** What tells of servers tells each caller of those that it sees, and of no others. */
function told(item: Item, servers: () => readonly ServerSummary[]): Item {
  const description = item.entry.descriptionFor?.(servers(), item.name)
  if (description === undefined) return item
  const definition = { ...item.definition, description }
  return { ...item, definition, json: JSON.stringify(definition) }
}
