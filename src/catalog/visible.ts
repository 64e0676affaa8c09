import type { Exposure } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import type { Source } from '../core/source.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { Item } from './item.ts'
import { createPages, type Pages } from './pages.ts'
import { type PerKind, perKind } from './parts.ts'
import type { Snapshot } from './snapshot.ts'
import { summariesOf } from './summaries.ts'
import { type Surfaces, surfaces } from './surfaces.ts'

/** What callers with the same rights see of one snapshot. */
export interface Visible {
  readonly items: PerKind<readonly Item[]>
  /** Of the tools, what each exposure mode shows; everything else is always shown. */
  readonly tools: Surfaces
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
): (snapshot: Snapshot, caller: Caller) => Visible {
  let known = new Map<string, Visible>()
  let of: Snapshot | undefined
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

function see(snapshot: Snapshot, sight: Sight): Visible {
  const items = perKind((kind) => snapshot.items[kind].filter(({ entry }) => sight.mayUse(entry)))
  const servers = () => sight.servers(items)
  const tools = surfaces(items.tool, servers)
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
