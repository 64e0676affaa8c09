import type { View } from '../core/access.ts'
import { type Caller, type Capabilities, profileOf } from '../core/call.ts'
import type { Kind } from '../core/entry.ts'
import { type Catalog, type CatalogOptions, type ChangeListener, createCatalog } from './catalog.ts'

/** Bounds the number of catalogs; each distinct set of client capabilities needs one. */
const maxProfiles = 32

/** A change reaches the catalogs of all profiles at the same time; call the listener once. */
function once(listener: ChangeListener): ChangeListener {
  let gathered: Set<Kind> | undefined
  return (kinds) => {
    if (gathered) {
      for (const kind of kinds) gathered.add(kind)
      return
    }
    const all = new Set(kinds)
    gathered = all
    setImmediate(() => {
      gathered = undefined
      listener(all)
    })
  }
}

/** Servers may offer more to clients with more capabilities, so each capability profile has its own catalog. */
export function createCatalogs(options: CatalogOptions): Catalog {
  const listeners = new Map<ChangeListener, Map<string, Disposable>>()
  const catalogs = new Map<string, Catalog>()
  const plain = catalogOf({})

  return {
    view: (caller: Caller): View => catalogOf(caller.capabilities).view(caller),
    onChange(given) {
      const listener = once(given)
      const following = new Map([...catalogs].map(([profile, catalog]) => [profile, catalog.onChange(listener)]))
      listeners.set(listener, following)
      return {
        [Symbol.dispose]() {
          listeners.delete(listener)
          for (const subscription of following.values()) subscription[Symbol.dispose]()
        },
      }
    },
    reconsider() {
      for (const catalog of catalogs.values()) catalog.reconsider()
    },
    ready: plain.ready,
    summaries: plain.summaries,
    everything: plain.everything,
    shown: plain.shown,
    servedUri: plain.servedUri,
    [Symbol.dispose]() {
      for (const catalog of catalogs.values()) catalog[Symbol.dispose]()
    },
  }

  function forgetOldest(): void {
    for (const [profile, catalog] of catalogs) {
      if (catalog === plain) continue
      catalogs.delete(profile)
      for (const following of listeners.values()) following.delete(profile)
      catalog[Symbol.dispose]()
      return
    }
  }

  function catalogOf(capabilities: Capabilities): Catalog {
    const profile = profileOf(capabilities)
    const known = catalogs.get(profile)
    if (known) {
      // Move to the end: the first catalog after the plain one is then the least recently used.
      if (known !== plain) catalogs.delete(profile)
      catalogs.set(profile, known)
      return known
    }
    if (catalogs.size >= maxProfiles) forgetOldest()
    const sources = options.sources.map((source) => source.seenBy?.(capabilities) ?? source)
    const catalog = createCatalog({ ...options, sources })
    catalogs.set(profile, catalog)
    for (const [listener, following] of listeners) following.set(profile, catalog.onChange(listener))
    return catalog
  }
}
