import type { NamingConfig } from '../config/schema.ts'
import type { Entry } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import type { Source } from '../core/source.ts'
import { createItem, type FlagsOf, type Item, type Label } from './item.ts'
import { createChooser, type Part, readPart, tierOf } from './parts.ts'
import { buildSnapshot, type Snapshot } from './snapshot.ts'
import { warnOnce } from './warnings.ts'

export interface Merge {
  /** Forgets what is known of one source; the next `snapshot` asks it again. */
  invalidate(source: Source): void
  /** The same object until something has been invalidated. */
  snapshot(): Snapshot
}

/** Merges sources into snapshots. Only what has changed is made again: a part per source, an item per entry. */
export function createMerge(sources: readonly Source[], naming: NamingConfig, log: Log, flagsOf?: FlagsOf): Merge {
  const ordered = [...sources].sort((a, b) => tierOf(a) - tierOf(b))
  const choose = createChooser(naming)
  const warn = warnOnce(log)
  const parts = new Map<Source, Part>()
  const items = new WeakMap<Entry, { label: Label; item: Item }>()
  let current: Snapshot | undefined

  const partOf = (source: Source): Part => {
    const part = parts.get(source) ?? readPart(source, choose, warn)
    parts.set(source, part)
    return part
  }

  const itemOf = (entry: Entry, label: Label): Item => {
    const known = items.get(entry)
    if (known && sameLabel(known.label, label)) return known.item
    const item = createItem(entry, label, flagsOf)
    items.set(entry, { label, item })
    return item
  }

  return {
    invalidate: (source) => {
      current = undefined
      parts.delete(source)
    },
    snapshot: () => {
      current ??= buildSnapshot(ordered.map(partOf), itemOf, warn)
      return current
    },
  }
}

const sameLabel = (a: Label, b: Label): boolean =>
  a.name === b.name && a.stale === b.stale && a.page === b.page && a.origin === b.origin
