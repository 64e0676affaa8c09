import type { Exposure, Served, View } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import { type Decide, type Denial, refusalOf } from '../core/decision.ts'
import type { Kind } from '../core/entry.ts'
import type { Source } from '../core/source.ts'
import { ambiguous, nothingUsable, ownName, unheard, unknownEntry, unknownServer } from './missing.ts'
import type { Readiness } from './readiness.ts'
import { namedServers, resolveName } from './resolve.ts'
import { resolveResource, resolveTemplate, serversInUri } from './resources.ts'
import type { SearchIndex } from './search/search-index.ts'
import type { Snapshot } from './snapshot.ts'
import type { Visible } from './visible.ts'

export interface ViewOptions {
  readonly sources: ReadonlyMap<string, Source>
  readonly separator: string
  readonly readiness: Readiness
  snapshot(): Snapshot
  index(): SearchIndex
  visible(caller: Caller): Visible
  exposure(caller: Caller): Exposure
  readonly decide: Decide
  closed(caller: Caller, server: string): Denial | undefined
}

/**
 * What one caller sees, at any time. Finding an entry does not ask whether the caller may use it: that is decided, with
 * a reason and an audit record, when it is called. Everything that is listed or hinted at is what the caller may use.
 */
export function createView(caller: Caller, options: ViewOptions): View {
  const { sources, readiness, separator } = options

  return {
    ready: () => readiness.all(),
    list: (kind) => options.visible(caller).items[kind],
    shown: (exposure = options.exposure(caller)) => options.visible(caller).tools[exposure],
    page: (kind, cursor) => {
      const { toolPages, pages } = options.visible(caller)
      return (kind === 'tool' ? toolPages[options.exposure(caller)] : pages[kind]).page(cursor)
    },
    resolve: async (kind, spelling) => {
      const found = meanings(kind, spelling)
      if (found.length === 1) return found[0] as Served
      if (found.length > 1) throw ambiguous(kind, spelling, found.filter(mayHearOf))
      return resolveLater(kind, spelling)
    },
    find: async (kind, server, name) => {
      const known = options.snapshot().registry.get(server)?.[kind].get(name)
      if (known) return known
      const source = sources.get(server)
      if (!source) throw unknownServer(server, serverNames())
      openAmong([server])
      await readiness.of(source)
      const found = options.snapshot().registry.get(server)?.[kind].get(name)
      if (found) return found
      throw unheard(source, readiness.settled(source)) ?? unknownIn(kind, name, server)
    },
    search: (query, { limit, server }) => {
      const among = options.visible(caller).items.tool
      const { items, total } = options.index().search(query, { limit, among, server })
      return { tools: items, total }
    },
    servers: () => options.visible(caller).servers(),
    refusal: (server) => {
      const source = sources.get(server)
      const closed = source && options.closed(caller, server)
      if (closed) return refusalOf(closed, server)
      const entries = source?.entries() ?? []
      const decisions = entries.map((entry) => options.decide(caller, entry))
      const denial = decisions.find((decision) => !decision.allowed)
      if (!denial || denial.allowed || decisions.some(({ allowed }) => allowed)) return undefined
      return refusalOf({ ...denial, reason: nothingUsable(server, denial.rule) }, server)
    },
  }

  function meanings(kind: Kind, spelling: string): readonly Served[] {
    const snapshot = options.snapshot()
    if (kind === 'resource') return resolveResource(snapshot, spelling)
    if (kind === 'template') return resolveTemplate(snapshot, spelling)
    return resolveName(snapshot, kind, spelling, separator)
  }

  /** Nothing answers to the spelling yet: whoever may still have it is waited for, then it is unknown. */
  async function resolveLater(kind: Kind, spelling: string): Promise<Served> {
    const byUri = kind === 'resource' || kind === 'template'
    const { servers: meant, qualifier } = byUri
      ? { servers: serversInUri(sources.keys(), spelling), qualifier: undefined }
      : namedServers(sources.keys(), spelling, separator)
    const servers = openAmong(meant)
    const named = servers.map((server) => sources.get(server) as Source)
    if (named.length > 0) await Promise.all(named.map((source) => readiness.of(source)))
    else await readiness.all()

    const found = meanings(kind, spelling)
    if (found.length === 1) return found[0] as Served
    if (found.length > 1) throw ambiguous(kind, spelling, found.filter(mayHearOf))
    for (const source of named) {
      const refusal = unheard(source, readiness.settled(source))
      if (refusal) throw refusal
    }
    if (named.length === 0 && qualifier !== undefined) throw unknownServer(qualifier, serverNames())
    throw unknownEntry(
      kind,
      spelling,
      options.visible(caller).items[kind],
      servers.length === 1 ? servers[0] : undefined,
    )
  }

  /** How a server is, and what it may have, is nothing for whom it is closed to; throws where all of them are. */
  function openAmong(servers: readonly string[]): readonly string[] {
    const denials = servers.map((server) => options.closed(caller, server))
    const [first] = denials
    if (first && denials.every((denial) => denial)) throw refusalOf(first, servers[0] as string)
    return servers.filter((_, at) => denials[at] === undefined)
  }

  function unknownIn(kind: Kind, name: string, server: string) {
    const offered = options.visible(caller).items[kind].filter(({ entry }) => entry.server === server)
    return unknownEntry(kind, name, offered, server, ownName)
  }

  function mayHearOf(served: Served): boolean {
    return options.visible(caller).items[served.entry.kind].some(({ entry }) => entry === served.entry)
  }

  function serverNames(): readonly string[] {
    return options
      .visible(caller)
      .servers()
      .map(({ name }) => name)
  }
}
