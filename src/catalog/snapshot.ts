import type { Entry, Kind } from '../core/entry.ts'
import { assign, type Conflict } from './assign.ts'
import { type Item, type Label, pageOf, renamed } from './item.ts'
import { type Part, type PerKind, perKind } from './parts.ts'
import { servedUri } from './uris.ts'
import type { Warn } from './warnings.ts'

/** Everything that is served at one moment. Immutable; a change of any source makes another one. */
export interface Snapshot {
  /** In the order of listing: the meta-tools, the native tools, then servers as configured. */
  readonly items: PerKind<readonly Item[]>
  readonly byName: PerKind<ReadonlyMap<string, Item>>
  /** By source and by the entry's own names: what spellings are resolved against. */
  readonly registry: ReadonlyMap<string, PerKind<ReadonlyMap<string, Item>>>
  /** The served form of a URI that a server mentions: one that leads back to that server. */
  uriOf(server: string, uri: string): string
}

/** Names everything and puts it in order. */
export function buildSnapshot(
  parts: readonly Part[],
  itemOf: (entry: Entry, label: Label) => Item,
  warn: Warn,
): Snapshot {
  const names = perKind((kind) => {
    const assigned = assign(parts.flatMap((part) => part.claims[kind]))
    for (const conflict of assigned.conflicts) tell(kind, conflict, warn)
    return assigned.names
  })
  const uriOf = uriRule(parts, names.resource)
  const registry = new Map(parts.map((part) => [part.source.name, perKind(() => new Map<string, Item>())]))
  const byName = perKind(() => new Map<string, Item>())
  const items = perKind((kind) => {
    const listed: Item[] = []
    let at = 0
    for (const { source, stale, claims } of parts) {
      for (const { entry, name: own, alias } of claims[kind]) {
        const name = names[kind][at++] as string
        const page = kind === 'tool' ? pageOf(entry.definition) : undefined
        const servedPage = page === undefined ? undefined : { page: uriOf(source.name, page) }
        const label = { name, origin: source.origin, stale, ...servedPage }
        const known = registry.get(source.name)?.[kind] as Map<string, Item>
        // Aliases stand behind the entry's own name.
        const item = alias ? renamed(known.get(entry.name) as Item, name) : itemOf(entry, label)
        if (!alias) listed.push(item)
        byName[kind].set(name, item)
        known.set(own, item)
      }
    }
    return listed
  })
  return { items, byName, registry, uriOf }
}

/** What a server lists may keep its own URI; of anything else, only the form with the server says where to read it. */
function uriRule(parts: readonly Part[], names: readonly string[]): Snapshot['uriOf'] {
  const listed = new Map<string, Map<string, string>>()
  let at = 0
  for (const { source, claims } of parts) {
    const own = new Map<string, string>()
    for (const { name } of claims.resource) own.set(name, names[at++] as string)
    listed.set(source.name, own)
  }
  return (server, uri) => listed.get(server)?.get(uri) ?? servedUri(server, uri)
}

function tell(kind: Kind, { server, name, wanted, winner, served }: Conflict, warn: Warn): void {
  const facts = { kind, server, name, wanted, served, ...(winner && { winner }) }
  if (winner) warn(facts, 'two entries want one name; the one that ranks lower is served under another')
  else
    warn(facts, 'an alias has other characters than A-Z a-z 0-9 _ -, is too long or ends like a hash; it is not used')
}
