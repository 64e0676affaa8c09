import { createHash } from 'node:crypto'
import type { Entry } from '../core/entry.ts'
import type { Source } from '../core/source.ts'
import type { Server } from '../upstream/server.ts'

/** Knows what lists of servers looked like, for each kind of client that sees one of its own. */
export interface ChangedLists {
  /** Digests of the lists that are not what they were at the last look; one that is seen first has not changed. */
  look(server: Server): readonly string[]
  /** The server as those kinds of clients see it whose list is none of these. */
  others(server: Server, lists: ReadonlySet<string>): readonly Source[]
}

export function createChangedLists(): ChangedLists {
  const seen = new WeakMap<Server, ReadonlyMap<string, string>>()
  return {
    look(server) {
      // One that an operator has turned off here offers nothing here: that is no news of the server.
      if (server.control.paused) return []
      const before = seen.get(server)
      const now = new Map([...server.kinds()].map(([kind, source]) => [kind, digestOf(source.entries())]))
      seen.set(server, now)
      return [...now].filter(([kind, list]) => (before?.get(kind) ?? list) !== list).map(([, list]) => list)
    },
    others: (server, lists) => [...server.kinds().values()].filter((source) => !lists.has(digestOf(source.entries()))),
  }
}

const digests = new WeakMap<readonly Entry[], string>()

/** A list is the same array until it is another list. */
function digestOf(entries: readonly Entry[]): string {
  const known = digests.get(entries)
  if (known !== undefined) return known
  const hash = createHash('sha256')
  for (const { kind, definition } of entries) hash.update(JSON.stringify([kind, definition]))
  const digest = hash.digest('base64url').slice(0, 16)
  digests.set(entries, digest)
  return digest
}
