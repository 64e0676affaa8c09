import { metaSource } from '../../catalog/visibility.ts'
import type { Served } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import type { ToolsQuery } from '../../serve/admin/service.ts'
import type { Generation } from '../generation.ts'

/** The servers that somebody sees: every one for admins, those of their agent for others. */
export const visibleServers = (caller: Caller, { catalog }: Generation): readonly ServerSummary[] =>
  caller.admin ? catalog.summaries() : catalog.view(caller).servers()

/** The tools of these servers; the tools about tools are not among them. The same list until something changes. */
export const visibleTools = (caller: Caller, { catalog }: Generation): readonly Served[] =>
  splitTools(caller.admin ? catalog.everything('tool') : catalog.view(caller).list('tool')).tools

/** Whether somebody sees the numbers of everybody: where there are no agents, everybody is the same one. */
export const maySeeAllFigures = (caller: Caller, { policy }: Generation): boolean =>
  caller.admin || policy.agents.size === 0

interface SplitTools {
  readonly tools: readonly Served[]
  /** The tools about tools. */
  readonly meta: readonly Served[]
}

const known = new WeakMap<readonly Served[], SplitTools>()

/** Divided once: dashboards ask every second, and there may be thousands. */
export function splitTools(all: readonly Served[]): SplitTools {
  const before = known.get(all)
  if (before) return before
  const isMeta = ({ entry }: Served) => entry.server === metaSource
  const context = { tools: all.filter((one) => !isMeta(one)), meta: all.filter(isMeta) }
  known.set(all, context)
  return context
}

/** Some of the tools that fit. */
interface SelectedTools {
  readonly tools: readonly Served[]
  /** How many fit on all pages. */
  readonly total: number
  readonly nextCursor: string | null
}

/** The tools that somebody looks for, a page at a time, in the order in which they are served. */
export function selectTools(tools: readonly Served[], { query, server, cursor, limit }: ToolsQuery): SelectedTools {
  const words = (query ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const fitting = tools.filter(
    (tool) => (server === undefined || tool.entry.server === server) && words.every((word) => mentions(tool, word)),
  )
  const start = cursor === undefined ? 0 : startAfter(fitting, cursor)
  const page = fitting.slice(start, start + limit)
  const last = page.at(-1)
  const more = last !== undefined && start + limit < fitting.length
  return { tools: page, total: fitting.length, nextCursor: more ? cursorOf(last) : null }
}

const mentions = ({ name, entry }: Served, word: string): boolean =>
  [name, entry.server, entry.name, entry.definition.title, entry.definition.description].some(
    (text) => typeof text === 'string' && text.toLowerCase().includes(word),
  )

/** A name holds its place, whatever else comes and goes. */
const cursorOf = ({ name }: Served): string => Buffer.from(name).toString('base64url')

function startAfter(tools: readonly Served[], cursor: string): number {
  const name = Buffer.from(cursor, 'base64url').toString()
  const at = tools.findIndex((tool) => tool.name === name)
  if (at >= 0) return at + 1
  throw new ToolwayError('INVALID_ARGUMENTS', 'This cursor is unknown or no longer valid; begin again without one.')
}
