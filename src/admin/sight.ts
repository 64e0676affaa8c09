import { metaSource } from '../catalog/summaries.ts'
import type { Served } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { World } from '../world/world.ts'

/** The servers that somebody sees: every one for admins, those of their agent for others. */
export const serversSeenBy = (caller: Caller, { catalog }: World): readonly ServerSummary[] =>
  caller.admin ? catalog.summaries() : catalog.view(caller).servers()

/** The tools of these servers; the tools about tools are not among them. The same list until something changes. */
export const toolsSeenBy = (caller: Caller, { catalog }: World): readonly Served[] =>
  partsOf(caller.admin ? catalog.everything('tool') : catalog.view(caller).list('tool')).tools

/** Whether somebody sees the numbers of everybody: where there are no agents, everybody is the same one. */
export const seesAllFigures = (caller: Caller, { policy }: World): boolean => caller.admin || policy.agents.size === 0

interface Parts {
  readonly tools: readonly Served[]
  /** The tools about tools. */
  readonly meta: readonly Served[]
}

const known = new WeakMap<readonly Served[], Parts>()

/** Divided once: dashboards ask every second, and there may be thousands. */
export function partsOf(all: readonly Served[]): Parts {
  const before = known.get(all)
  if (before) return before
  const isMeta = ({ entry }: Served) => entry.server === metaSource
  const parts = { tools: all.filter((one) => !isMeta(one)), meta: all.filter(isMeta) }
  known.set(all, parts)
  return parts
}
