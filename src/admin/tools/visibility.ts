import type { Served } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { invalidArguments } from '../../core/errors.ts'
import { metaSource } from '../../core/source.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import { defaultAgent } from '../../policy/agents.ts'
import type { Generation } from '../../runtime/generation.ts'
import type { ToolsQuery } from '../contract.ts'

/** The servers that a caller may see. Admins see all servers; others see those that their own agent may use. */
export const visibleServers = (caller: Caller, { catalog }: Generation): readonly ServerSummary[] =>
  caller.admin ? catalog.summaries() : catalog.view(caller).servers()

/** The tools that a caller may see, excluding meta-tools. Returns the same array until the tools change. */
export const visibleTools = (caller: Caller, { catalog }: Generation): readonly Served[] =>
  withoutMetaTools(caller.admin ? catalog.everything('tool') : catalog.view(caller).list('tool'))

/** Whether a caller may see all agents' figures. Without configured agents, everyone may: all act as the same agent. */
export const maySeeAllFigures = (caller: Caller, { policy }: Generation): boolean =>
  caller.admin || policy.agents.size === 0

/** All configured agents, or only the default agent if none are configured. */
export const agentNames = ({ policy }: Pick<Generation, 'policy'>): readonly string[] =>
  policy.agents.size === 0 ? [defaultAgent] : [...policy.agents]

export const asAgent = (agent: string): Caller => ({
  agent,
  agents: [agent],
  principal: 'admin',
  authenticated: true,
  admin: false,
  session: 'admin',
  capabilities: {},
})

/** Removes meta-tools. Memoized, because dashboards poll every second and there may be thousands of tools. */
export const withoutMetaTools = memoizeByObject((all: readonly Served[]): readonly Served[] =>
  all.filter(({ entry }) => entry.server !== metaSource),
)

/** One page of the tools that match a query, in the order in which they are served. `total` counts all pages. */
export function selectTools(tools: readonly Served[], { query, server, cursor, limit }: ToolsQuery) {
  const words = (query ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const matching = tools.filter(
    (tool) => (server === undefined || tool.entry.server === server) && words.every((word) => mentions(tool, word)),
  )
  // A name is encoded, because it may be a URI.
  const { page, nextCursor } = pageAfter(matching, ({ name }) => Buffer.from(name).toString('base64url'), cursor, limit)
  return { tools: page, total: matching.length, nextCursor }
}

const mentions = ({ name, entry }: Served, word: string): boolean =>
  [name, entry.server, entry.name, entry.definition.title, entry.definition.description].some(
    (text) => typeof text === 'string' && text.toLowerCase().includes(word),
  )

/** A page after the item that the cursor names, so that it stays valid when other items are added or removed. */
export function pageAfter<Item>(
  all: readonly Item[],
  cursorOf: (item: Item) => string,
  cursor: string | undefined,
  limit: number,
): { readonly page: readonly Item[]; readonly nextCursor: string | null } {
  const start = cursor === undefined ? 0 : all.findIndex((item) => cursorOf(item) === cursor) + 1
  if (cursor !== undefined && start === 0) throw invalidCursor()
  const page = all.slice(start, start + limit)
  const last = page.at(-1)
  return { page, nextCursor: last !== undefined && start + limit < all.length ? cursorOf(last) : null }
}

export const invalidCursor = () =>
  invalidArguments('Invalid cursor: use `nextCursor` from a previous page, or start without one.')
