import type { NamingConfig } from '../config/schema.ts'
import type { Entry, Kind } from '../core/entry.ts'
import type { Source } from '../core/source.ts'
import type { Health } from '../core/source-status.ts'
import type { Claim } from './assign.ts'
import { createNamer, type NameChoice, ownSources } from './names.ts'
import { isOwnUri, servedUri, wrappedUri } from './uris.ts'
import type { Warn } from './warnings.ts'

/** What one source adds to a snapshot; it depends on that source and on the naming alone. */
export interface Part {
  readonly source: Source
  /** Set while the source cannot confirm what it once said. */
  readonly stale: boolean
  readonly claims: PerKind<readonly EntryClaim[]>
}

export interface EntryClaim extends Claim {
  readonly entry: Entry
  /** The name is another one that the entry goes by: it can be called so, and is not listed twice. */
  readonly alias?: true
}

export type PerKind<T> = Readonly<Record<Kind, T>>

export const perKind = <T>(make: (kind: Kind) => T): PerKind<T> => ({
  tool: make('tool'),
  resource: make('resource'),
  template: make('template'),
  prompt: make('prompt'),
})

/** The rule that names an entry of any kind. */
export type Choose = (entry: Entry) => NameChoice

export function createChooser(naming: NamingConfig): Choose {
  const named = createNamer(naming)
  return ({ kind, server, name }) => {
    if (kind === 'tool' || kind === 'prompt') return named(server, name)
    const unchanged = (naming.strategy === 'flat' || ownSources.includes(server)) && !isOwnUri(name)
    const served = servedUri(server, name)
    return { plain: unchanged ? [name, served] : [served], hashed: () => wrappedUri(server, name) }
  }
}

const unconfirmed: ReadonlySet<Health> = new Set(['stale', 'starting', 'unhealthy', 'needs-auth'])

/** Asks a source what it has. Of two entries with one name the first stays. */
export function readPart(source: Source, choose: Choose, warn: Warn): Part {
  const { health, heldBack } = source.status()
  const claims = perKind(() => new Map<string, EntryClaim>())
  for (const entry of source.entries()) {
    const { kind, name } = entry
    if (claims[kind].has(name)) {
      warn({ server: source.name, kind, name }, 'a server lists one name twice; the first is served')
      continue
    }
    const claim = { server: source.name, tier: tierOf(source), priority: source.priority, entry }
    claims[kind].set(name, { ...claim, name, choice: choose(entry) })
    for (const alias of entry.aliases ?? []) {
      if (claims[kind].has(alias)) continue
      claims[kind].set(alias, { ...claim, name: alias, choice: choose({ ...entry, name: alias }), alias: true })
    }
  }
  const stale = !heldBack && unconfirmed.has(health)
  return { source, stale, claims: perKind((kind) => [...claims[kind].values()]) }
}

/** The meta-tools come first, then the native tools, then all servers alike. */
export function tierOf(source: Source): number {
  const own = ownSources.indexOf(source.name)
  return own < 0 ? ownSources.length : own
}
