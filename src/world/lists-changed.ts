import { isDeepStrictEqual } from 'node:util'
import type { Entry } from '../core/entry.ts'
import type { Server } from '../upstream/server.ts'

/**
 * Tells, each time it is asked, whether a server offers something else than the last time, to any kind of client. To be
 * heard for the first time is no change, and how a server is has nothing to do with it: what it has answered is as good
 * as before.
 */
export function createListsChanged(server: Pick<Server, 'kinds'>): () => boolean {
  const before = new Map<string, readonly Entry[]>()
  return () => {
    let changed = false
    for (const [kind, source] of server.kinds()) {
      const [old, entries] = [before.get(kind), source.entries()]
      if (old === entries) continue
      before.set(kind, entries)
      if (old && !isDeepStrictEqual(old.map(offered), entries.map(offered))) changed = true
    }
    return changed
  }
}

const offered = ({ kind, definition }: Entry) => [kind, definition]
