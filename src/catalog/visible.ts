import type { Exposure } from '../config/schema.ts'
import type { Caller } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import type { Item } from './item.ts'
import { createPages, type Pages } from './pages.ts'
import { type PerKind, perKind } from './parts.ts'
import type { Snapshot } from './snapshot.ts'

/** What callers with the same rights see of one snapshot. */
export interface Visible {
  readonly items: PerKind<readonly Item[]>
  /** For tools, what the exposure mode shows; everything else is always shown. */
  readonly tools: Readonly<Record<Exposure, Pages>>
  readonly pages: PerKind<Pages>
  has(item: Item): boolean
}

/** The meta-tools: the source that the exposure modes are about. */
export const metaSource = 'toolway'

/** Agents that nobody uses any more must not pile up. */
const mostKept = 64

/** Keeps, per snapshot, what each agent sees. */
export function createVisibility(
  mayUse: (caller: Caller, entry: Entry) => boolean,
): (snapshot: Snapshot, caller: Caller) => Visible {
  let known = new Map<string, Visible>()
  let of: Snapshot | undefined
  return (snapshot, caller) => {
    if (of !== snapshot) known = new Map()
    of = snapshot
    // All of a caller that a rule can depend on; its name alone would let an unauthenticated one see too much.
    const key = JSON.stringify([caller.agent, caller.authenticated, caller.admin])
    const visible = known.get(key) ?? see(snapshot, (entry) => mayUse(caller, entry))
    known.delete(key)
    known.set(key, visible)
    if (known.size > mostKept) known.delete(known.keys().next().value as string)
    return visible
  }
}

function see(snapshot: Snapshot, mayUse: (entry: Entry) => boolean): Visible {
  const items = perKind((kind) => snapshot.items[kind].filter(({ entry }) => mayUse(entry)))
  const pages = perKind((kind) => createPages(items[kind]))
  const meta = createPages(items.tool.filter(({ entry }) => entry.server === metaSource))
  const direct = createPages(items.tool.filter(({ entry }) => entry.server !== metaSource))
  const members = new Set(perKindValues(items).flat())
  return { items, pages, tools: { direct, meta, both: pages.tool, code: meta }, has: (item) => members.has(item) }
}

const perKindValues = (items: PerKind<readonly Item[]>) => [items.tool, items.resource, items.template, items.prompt]
