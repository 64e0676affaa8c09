import type { Clock } from '../../core/clock.ts'
import type { Identity } from './identity.ts'

/** Tokens whose signature was checked a moment ago, by digest: to check it again costs a hundred times as much. */
interface Verified {
  get(digest: string): Identity | undefined
  /** Keeps an identity until then, though never for long: the provider may take its keys back. */
  keep(digest: string, identity: Identity, until: number): void
}

const maxEntries = 10_000
const maxMs = 5 * 60_000

export function createVerified(clock: Clock, limit = maxEntries): Verified {
  // The least recently used comes first: an entry is put at the end again whenever it is used.
  const entries = new Map<string, { readonly identity: Identity; readonly until: number; readonly keptUntil: number }>()
  return {
    get(digest) {
      const entry = entries.get(digest)
      if (entry === undefined) return undefined
      entries.delete(digest)
      if (entry.until <= clock.now() || entry.keptUntil <= clock.monotonic()) return undefined
      entries.set(digest, entry)
      return entry.identity
    },
    keep(digest, identity, until) {
      entries.delete(digest)
      const [oldest] = entries.keys()
      if (entries.size >= limit && oldest !== undefined) entries.delete(oldest)
      entries.set(digest, { identity, until, keptUntil: clock.monotonic() + maxMs })
    },
  }
}
