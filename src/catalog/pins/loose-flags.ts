import type { Entry } from '../../core/entry.ts'
import type { Notices } from './notices.ts'
import type { ScanQueue } from './scan-queue.ts'
import { lookAt, scan, verdictOf } from './sight.ts'

export interface LooseFlagsOptions {
  readonly queue: ScanQueue
  readonly notices: Notices
  flagged(server: string): void
}

/** What the scanner finds in definitions that are not pinned; none until it has looked. */
export function createLooseFlags({ queue, notices, flagged }: LooseFlagsOptions): (entry: Entry) => readonly string[] {
  const known = new WeakMap<Entry, readonly string[]>()
  return (entry) => {
    const flags = known.get(entry)
    if (flags) return flags
    known.set(entry, [])
    queue.add(() => {
      const look = lookAt(entry.verbatim ?? entry.definition)
      const findings = scan(look)
      known.set(entry, verdictOf(findings).flags)
      notices.found(entry.server, `${entry.kind}:${entry.server}.${entry.name}`, look.hash, findings)
      if (findings.length > 0) flagged(entry.server)
    })
    return known.get(entry) ?? []
  }
}
