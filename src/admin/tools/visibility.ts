import type { Served } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { invalidArguments } from '../../core/errors.ts'
import { metaSource } from '../../core/source.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
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
  const start = cursor === undefined ? 0 : startAfter(matching, cursor)
  const page = matching.slice(start, start + limit)
  const last = page.at(-1)
  const more = last !== undefined && start + limit < matching.length
  return { tools: page, total: matching.length, nextCursor: more ? cursorOf(last) : null }
}

const mentions = ({ name, entry }: Served, word: string): boolean =>
  [name, entry.server, entry.name, entry.definition.title, entry.definition.description].some(
    (text) => typeof text === 'string' && text.toLowerCase().includes(word),
  )

/** The cursor is the name of the page's last tool, so it stays valid when other tools are added or removed. */
const cursorOf = ({ name }: Served): string => Buffer.from(name).toString('base64url')

function startAfter(tools: readonly Served[], cursor: string): number {
  const name = Buffer.from(cursor, 'base64url').toString()
  const at = tools.findIndex((tool) => tool.name === name)
  if (at >= 0) return at + 1
  throw invalidArguments('Invalid cursor: use `nextCursor` from a previous page, or start without one.')
}
