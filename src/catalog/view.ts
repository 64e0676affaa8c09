import type { NamingConfig } from '../config/schema.ts'
import type { Exposure, Served, View } from '../core/access.ts'
import type { AppPages } from '../core/apps.ts'
import type { Caller } from '../core/call.ts'
import { type Decide, type Denial, refusalOf } from '../core/decision.ts'
import type { Kind } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Source } from '../core/source.ts'
import type { Wait } from '../core/waiting.ts'
import { couldBeNamed } from './names.ts'
import {
  ambiguous,
  nothingUsable,
  ownName,
  serverNotReady,
  unknownEntry,
  unknownServer,
  type WaitedTime,
} from './not-found.ts'
import { defaultCallMs, type SourceReadiness } from './readiness.ts'
import {
  type NamedServers,
  namedServers,
  nameOn,
  resolveName,
  resolveResource,
  resolveTemplate,
  serversInUri,
} from './resolve.ts'
import type { SearchIndex } from './search/search-index.ts'
import type { CatalogSnapshot } from './snapshot.ts'
import { originalUri } from './uris.ts'
import type { Visible } from './visibility.ts'

export interface ViewOptions {
  readonly sources: ReadonlyMap<string, Source>
  readonly naming: NamingConfig
  readonly readiness: SourceReadiness
  snapshot(): CatalogSnapshot
  index(): SearchIndex
  visible(caller: Caller): Visible
  exposure(caller: Caller): Exposure
  readonly decide: Decide
  closed(caller: Caller, server: string): Denial | undefined
  readonly pages: AppPages
  /** If true, entries that the caller may not use are reported as not found. */
  readonly hideDenied: boolean
}

/**
 * The catalog as one caller sees it, always current. Resolving an entry does not check permission: the call does, with
 * a reason and an audit record. Lists and hints contain only entries that the caller may use.
 */
export function createView(caller: Caller, options: ViewOptions): View {
  const { readiness, naming, hideDenied } = options
  const sources = hideDenied ? knownSources() : options.sources

  const view: View = {
    conversationStarted: () => readiness.conversationStarted(isOpen),
    ready: (brief) => readiness.all(brief, isOpen),
    started: async (server, wait) => {
      const source = sources.get(server)
      if (source && !options.closed(caller, server)) await readiness.of([source], wait)
    },
    missing: (kind = 'tool') =>
      [...sources.values()].flatMap((source) => {
        const hasAll = source.entries().length > 0 && !source.incomplete?.().includes(kind)
        if (hasAll || options.closed(caller, source.name)) return []
        const { health, reason } = source.status()
        const known = health === 'healthy' || health === 'disabled'
        // Parsers of some clients reject a whole list for a lone surrogate, which the text of an error may end with.
        return known ? [] : [{ server: source.name, status: health, reason: reason.toWellFormed() }]
      }),
    listTtlMs(kind) {
      const open = [...sources.values()].filter(({ name }) => !options.closed(caller, name))
      const ttls = open.flatMap((source) => source.listTtlMs?.(kind) ?? [])
      return ttls.length > 0 ? Math.min(...ttls) : undefined
    },
    list: (kind) => options.visible(caller).items[kind],
    shown: (exposure = options.exposure(caller)) => options.visible(caller).tools[exposure],
    page: (kind, cursor) => {
      const { toolPages, pages } = options.visible(caller)
      return (kind === 'tool' ? toolPages[options.exposure(caller)] : pages[kind])(cursor)
    },
    known: (kind, spelling) => {
      const found = usable(meanings(kind, spelling))
      return found.length === 1 ? found[0] : undefined
    },
    resolve: async (kind, spelling, wait) => {
      const found = resolveNow(kind, spelling) ?? (await resolveLater(kind, spelling, wait))
      const isRead = kind === 'resource' && wait?.operation === undefined
      if (isRead) options.pages.read(caller, spelling, found.entry.server)
      return found
    },
    find: async (kind, server, name, wait) => {
      const [known] = usable(entryOf(kind, server, name))
      if (known) return known
      const source = sources.get(server)
      if (!source) throw unknownServer(server, serverNames())
      openAmong([server])
      const late = await readiness.of([source], wait, { missing: 'named' })
      const [found] = usable(entryOf(kind, server, name))
      if (found) return found
      throw serverNotReady(source, kind, waitedFor(late, source, wait)) ?? unknownIn(kind, name, server)
    },
    ownName: (kind, server, spelling) =>
      isByUri(kind) ? originalUri(server, spelling) : nameOn(server, spelling, naming),
    search: (query, { limit, server }) => {
      const among = options.visible(caller).offered
      const { items, total } = options.index().search(query, { limit, among, server })
      return { tools: items, total }
    },
    servers: () => options.visible(caller).servers(),
    refusal: closedServer,
  }
  return hideDenied ? hiding(view) : view

  /** The same view, except that denials are hidden from the caller. Denials are kept only for the audit record. */
  function hiding(shown: View): View {
    const conceal = (truth: () => ToolwayError | undefined) => (thrown: unknown) => {
      throw thrown instanceof ToolwayError ? thrown.concealing(truth()) : thrown
    }
    const firstDenial = (found: readonly Served[]): ToolwayError | undefined => {
      for (const { entry } of found) {
        const decision = options.decide(caller, entry)
        if (!decision.allowed) return refusalOf(decision, entry.server)
      }
      return undefined
    }
    return {
      ...shown,
      resolve: (kind, spelling, wait) => {
        const truth = () =>
          firstDenial(meanings(kind, spelling)) ??
          namedIn(options.sources.keys(), kind, spelling)
            .servers.map((server) => closedServer(server))
            .find((refusal) => refusal)
        return shown.resolve(kind, spelling, wait).catch(conceal(truth))
      },
      find: (kind, server, name, wait) => {
        const truth = () => firstDenial(entryOf(kind, server, name)) ?? closedServer(server)
        return shown.find(kind, server, name, wait).catch(conceal(truth))
      },
      refusal: () => undefined,
      concealed: closedServer,
    }
  }

  function closedServer(server: string, kind?: Kind): ToolwayError | undefined {
    const source = options.sources.get(server)
    const closed = source && options.closed(caller, server)
    if (closed) return refusalOf(closed, server)
    const entries = (source?.entries() ?? []).filter((entry) => kind === undefined || entry.kind === kind)
    const decisions = entries.map((entry) => options.decide(caller, entry))
    const denial = decisions.find((decision) => !decision.allowed)
    if (!denial || denial.allowed || decisions.some(({ allowed }) => allowed)) return undefined
    return refusalOf({ ...denial, reason: nothingUsable(server, denial, kind) }, server)
  }

  /** The sources that the caller may know of: those where it may use something, and those that are listed anyway. */
  function knownSources(): ReadonlyMap<string, Source> {
    const shown = new Set(serverNames())
    return new Map([...options.sources].filter(([name]) => shown.has(name) || closedServer(name) === undefined))
  }

  function usable(found: readonly Served[]): readonly Served[] {
    return hideDenied ? found.filter(({ entry }) => options.decide(caller, entry).allowed) : found
  }

  function entryOf(kind: Kind, server: string, name: string): readonly Served[] {
    const known = options.snapshot().registry.get(server)?.[kind].get(name)
    return known ? [known] : []
  }

  function meanings(kind: Kind, spelling: string): readonly Served[] {
    const snapshot = options.snapshot()
    if (kind === 'resource') return resolveResource(snapshot, spelling)
    if (kind === 'template') return resolveTemplate(snapshot, spelling)
    return resolveName(snapshot, kind, spelling, naming)
  }

  function resolveNow(kind: Kind, spelling: string): Served | undefined {
    return only(kind, spelling, usable(meanings(kind, spelling)))
  }

  function only(kind: Kind, spelling: string, found: readonly Served[]): Served | undefined {
    if (found.length > 1) throw ambiguous(kind, spelling, found.filter(mayHearOf))
    return found[0]
  }

  /** The tool that its server calls so, as the pages of apps do. The server of the page read last comes first. */
  function resolveBare(name: string): Served | undefined {
    const own = entryOf('tool', options.pages.lastServer(caller) ?? '', name)
    // The page means its own server's tool, also if the caller may not use that.
    if (own.length > 0) return usable(own)[0]
    return only(
      'tool',
      name,
      options.visible(caller).items.tool.filter(({ entry }) => entry.name === name),
    )
  }

  function namedIn(names: Iterable<string>, kind: Kind, spelling: string): NamedServers {
    if (!isByUri(kind)) return namedServers(names, spelling, naming)
    return { servers: serversInUri(names, spelling), qualifier: undefined }
  }

  /** Resolves a spelling that matches nothing yet: waits for servers that may offer the entry; fails if none does. */
  async function resolveLater(kind: Kind, spelling: string, wait: Wait | undefined): Promise<Served> {
    const { servers: meant, qualifier } = namedIn(sources.keys(), kind, spelling)
    const mayBeBare = kind === 'tool' && meant.length === 0
    const bare = mayBeBare ? resolveBare(spelling) : undefined
    if (bare) return bare
    const servers = openAmong(meant)
    const named = servers.map((server) => sources.get(server) as Source)
    // If there are several candidates, stop waiting as soon as one of them has the entry.
    const mayHave = (source: Source) =>
      isByUri(kind) ? readiness.pending(source) : couldBeNamed(source.name, spelling, naming)
    const isCandidate = (source: Source) => mayHave(source) && isOpen(source)
    const candidates = named.length > 0 ? named : [...sources.values()].filter(isCandidate)
    const missing = named.length > 0 ? 'named' : 'unnamed'
    const enough = () => usable(meanings(kind, spelling)).length > 0
    const late = await readiness.of(candidates, wait, { enough, missing })

    const found = resolveNow(kind, spelling) ?? (mayBeBare ? resolveBare(spelling) : undefined)
    if (found) return found
    for (const source of named.length > 0 ? named : late) {
      const refusal = serverNotReady(source, kind, waitedFor(late, source, wait))
      if (refusal) throw refusal
    }
    if (named.length === 0 && qualifier !== undefined) throw unknownServer(qualifier, serverNames())
    const [server] = servers.length === 1 ? servers : []
    throw unknownEntry(kind, spelling, offered(kind), server)
  }

  function isOpen({ name }: Source): boolean {
    return options.closed(caller, name) === undefined
  }

  /** The servers open to the caller, so that errors reveal nothing about closed ones. Throws if all are closed. */
  function openAmong(servers: readonly string[]): readonly string[] {
    const denials = servers.map((server) => options.closed(caller, server))
    const [first] = denials
    if (first && denials.every((denial) => denial)) throw refusalOf(first, servers[0] as string)
    return servers.filter((_, at) => denials[at] === undefined)
  }

  function unknownIn(kind: Kind, name: string, server: string) {
    const own = offered(kind).filter(({ entry }) => entry.server === server)
    return unknownEntry(kind, name, own, server, ownName)
  }

  function mayHearOf(served: Served): boolean {
    return offered(served.entry.kind).some(({ entry }) => entry === served.entry)
  }

  /** The entries that errors may suggest. Models read them, so tools for pages only are left out. */
  function offered(kind: Kind) {
    const visible = options.visible(caller)
    return kind === 'tool' ? visible.offered : visible.items[kind]
  }

  function serverNames(): readonly string[] {
    return Array.from(options.visible(caller).servers(), ({ name }) => name)
  }
}

const isByUri = (kind: Kind): boolean => kind === 'resource' || kind === 'template'

/** How long a call waited for a source that did not become ready in time. Undefined for any other source. */
function waitedFor(late: readonly Source[], source: Source, wait: Wait | undefined): WaitedTime | undefined {
  if (!late.includes(source)) return undefined
  if (wait?.timeoutMs === undefined) return { ms: source.timeoutMs ?? defaultCallMs }
  return { ms: wait.timeoutMs, parameter: wait.timeoutKey ?? 'timeout_ms' }
}
