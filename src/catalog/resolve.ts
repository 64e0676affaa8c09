import type { Kind } from '../core/entry.ts'
import type { Item } from './item.ts'
import { type Reading, readings, separators } from './separators.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * Every entry that a spelling can mean, without repetition. A served name means its entry and nothing else; any other
 * spelling is compared with the registry, server by server, so there is no guess about where a server's name ends.
 */
export function resolveName(snapshot: Snapshot, kind: Kind, spelling: string, configured: string): readonly Item[] {
  const served = snapshot.byName[kind].get(spelling)
  if (served) return [served]
  const found = new Set<Item>()
  for (const reading of readings(spelling, configured)) {
    const named = snapshot.byName[kind].get(reading.text)
    if (named) found.add(named)
    for (const [server, own] of snapshot.registry) {
      for (const name of namesAfter(server, reading)) {
        const item = own[kind].get(name)
        if (item) found.add(item)
      }
    }
  }
  return [...found]
}

/** What a spelling says about its server, for errors and for knowing whom to wait for. */
export interface NamedServers {
  /** The servers that it may name. */
  readonly servers: readonly string[]
  /** What stands where a server's name would stand, if the spelling has one at all. */
  readonly qualifier?: string
}

export function namedServers(names: Iterable<string>, spelling: string, configured: string): NamedServers {
  const all = readings(spelling, configured)
  // Behind our own name stands a server's, unless it is the name of a meta-tool.
  const inner = all.length > 1 && all.slice(1).some(({ text }) => qualifierOf(text) !== undefined)
  const considered = inner ? all.slice(1) : all
  const servers = new Set<string>()
  for (const server of names)
    if (considered.some((reading) => namesAfter(server, reading).length > 0)) servers.add(server)
  const qualifier = considered.map(({ text }) => qualifierOf(text)).find((text) => text !== undefined)
  return { servers: [...servers], ...(qualifier !== undefined && { qualifier }) }
}

const namesAfter = (server: string, { text, separators }: Reading): readonly string[] =>
  text.startsWith(server)
    ? separators
        .filter((separator) => separator !== '' && text.startsWith(separator, server.length))
        .map((separator) => text.slice(server.length + separator.length))
    : []

function qualifierOf(text: string): string | undefined {
  const ends = separators.map((separator) => text.indexOf(separator)).filter((end) => end > 0)
  return ends.length === 0 ? undefined : text.slice(0, Math.min(...ends))
}
