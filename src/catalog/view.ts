import type { NamingConfig } from '../config/schema.ts'
import type { LookupOptions, Served, View } from '../core/access.ts'
import type { AppPages } from '../core/apps.ts'
import type { Caller } from '../core/call.ts'
import { refusalOf } from '../core/decision.ts'
import type { Kind } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Exposure } from '../core/exposure.ts'
import type { Source } from '../core/source.ts'
import type { Wait } from '../core/waiting.ts'
import type { ChosenExposures } from './exposure.ts'
import { couldBeNamed } from './names.ts'
import {
  ambiguous,
  nothingUsable,
  ownNameOf,
  serverNotReady,
  unknownEntry,
  unknownServer,
  type WaitedTime,
} from './not-found.ts'
import { defaultCallMs, type SourceReadiness } from './readiness.ts'
import {
  type NamedServers,
  nameOnServer,
  resolveName,
  resolveResource,
  resolveSkill,
  resolveTemplate,
  serversInName,
  serversInUri,
} from './resolve.ts'
import type { ScoreSource } from './search/combine-scores.ts'
import type { SearchIndex } from './search/search-index.ts'
import type { CatalogSnapshot, Item } from './snapshot.ts'
import { originalUri } from './uris.ts'
import type { CatalogRules, Visible } from './visibility.ts'

/** The catalog that a view shows a part of. */
export interface ViewedCatalog {
  readonly sources: ReadonlyMap<string, Source>
  readonly naming: NamingConfig
  readonly rules: CatalogRules
  readonly pages: AppPages
  readonly exposures: ChosenExposures
  readonly readiness: SourceReadiness
  snapshot(): CatalogSnapshot
  /** Undefined while the index is out of date. */
  searchIndex(): SearchIndex | undefined
  updateSearchIndex(): Promise<void>
  scoreSources(caller: Caller): readonly ScoreSource[]
  visible(caller: Caller): Visible
}

/**
 * The catalog as one caller sees it, always current. Resolving an entry does not check permission: the call does, with
 * a reason and an audit record. Lists and hints contain only entries that the caller may use. Its methods are bound,
 * because the pipeline copies those that it does not audit.
 */
export class CatalogView implements View {
  readonly #caller: Caller
  readonly #catalog: ViewedCatalog
  /** If true, entries that the caller may not use are reported as not found. */
  readonly #hidesDenied: boolean
  readonly #isPortable: boolean
  /** The sources that the caller may know of. */
  readonly #sources: ReadonlyMap<string, Source>

  constructor(caller: Caller, catalog: ViewedCatalog, hidesDenied: boolean) {
    this.#caller = caller
    this.#catalog = catalog
    this.#hidesDenied = hidesDenied
    this.#isPortable = catalog.rules.isPortable?.(caller) === true
    this.#sources = hidesDenied ? this.#knownSources() : catalog.sources
  }

  readonly conversationStarted = (): void => {
    this.#catalog.readiness.conversationStarted(this.#isOpen)
  }

  readonly ready = (brief?: 'brief'): Promise<void> => {
    return this.#catalog.readiness.all(brief, this.#isOpen)
  }

  readonly started = async (server: string, wait?: Wait): Promise<void> => {
    const source = this.#sources.get(server)
    if (source && this.#isOpen(source)) await this.#catalog.readiness.of([source], wait)
  }

  readonly missing = (kind: Kind = 'tool') => {
    return [...this.#sources.values()].flatMap((source) => {
      const hasAll = source.entries().length > 0 && !source.incomplete?.().includes(kind)
      if (hasAll || !this.#isOpen(source)) return []
      const { health, reason } = source.status()
      const known = health === 'healthy' || health === 'disabled'
      // Parsers of some clients reject a whole list for a lone surrogate, which the text of an error may end with.
      return known ? [] : [{ server: source.name, status: health, reason: reason.toWellFormed() }]
    })
  }

  readonly listTtlMs = (kind: Kind): number | undefined => {
    const open = [...this.#sources.values()].filter(this.#isOpen)
    const ttls = open.flatMap((source) => source.listTtlMs?.(kind) ?? [])
    return ttls.length > 0 ? Math.min(...ttls) : undefined
  }

  readonly list = (kind: Kind): readonly Item[] => {
    return this.#visible().items[kind]
  }

  readonly shown = (exposure: Exposure = this.exposure()): readonly Item[] => {
    return this.#visible().tools[exposure]
  }

  readonly page = (kind: Kind, cursor?: string) => {
    const { toolPages, pages } = this.#visible()
    return (kind === 'tool' ? toolPages[this.exposure()] : pages[kind])(cursor)
  }

  readonly known = (kind: Kind, spelling: string): Served | undefined => {
    const found = this.#usable(this.#meanings(kind, spelling))
    const [only] = found.length === 1 ? found : []
    return only && this.#isPortable ? this.#portable(only) : only
  }

  readonly resolve = async (kind: Kind, spelling: string, wait?: LookupOptions): Promise<Served> => {
    try {
      const isRead = kind === 'resource' && wait?.operation === undefined
      const own = isRead ? await this.#resourceOfPage(spelling) : undefined
      const found = own ?? this.#resolveNow(kind, spelling) ?? (await this.#resolveLater(kind, spelling, wait))
      if (isRead) await this.#catalog.pages.read(this.#caller, spelling, found.entry.server)
      return this.#isPortable ? this.#portable(found) : found
    } catch (thrown) {
      const servers = () => this.#namedIn(this.#catalog.sources.keys(), kind, spelling).servers
      throw this.#concealing(thrown, () => this.#meanings(kind, spelling), servers)
    }
  }

  readonly find = async (kind: Kind, server: string, name: string, wait?: LookupOptions): Promise<Served> => {
    try {
      const [known] = this.#usable(this.#entryOf(kind, server, name))
      const found = known ?? (await this.#findLater(kind, server, name, wait))
      return this.#isPortable ? this.#portable(found) : found
    } catch (thrown) {
      throw this.#concealing(
        thrown,
        () => this.#entryOf(kind, server, name),
        () => [server],
      )
    }
  }

  readonly ownName = (kind: Kind, server: string, spelling: string): string | undefined => {
    return isByUri(kind) ? originalUri(server, spelling) : nameOnServer(server, spelling, this.#catalog.naming)
  }

  readonly search = async (query: string, { limit, server }: { limit: number; server?: string }) => {
    let index = this.#catalog.searchIndex()
    for (; index === undefined; index = this.#catalog.searchIndex()) await this.#catalog.updateSearchIndex()
    const among = this.#visible().offered
    const sources = this.#catalog.scoreSources(this.#caller)
    const { items, total } = index.search(query, { limit, among, server, sources })
    return { tools: this.#isPortable ? items.map((item) => this.#portable(item)) : items, total }
  }

  readonly servers = () => {
    return this.#visible().servers()
  }

  readonly refusal = (server: string, kind?: Kind): ToolwayError | undefined => {
    return this.#hidesDenied ? undefined : this.#refusalOf(server, kind)
  }

  readonly concealed = (server: string): ToolwayError | undefined => {
    return this.#hidesDenied ? this.#refusalOf(server) : undefined
  }

  #visible(): Visible {
    return this.#catalog.visible(this.#caller)
  }

  /** What this caller sees of a tool; other entries are the same for all callers. */
  #portable(served: Served): Served {
    const { portable } = this.#visible()
    return portable && served.entry.kind === 'tool' && !served.isPortable ? portable.form(served as Item) : served
  }

  readonly exposure = (): Exposure => {
    const { rules, exposures } = this.#catalog
    const setting = this.#caller.exposure ?? rules.exposure(this.#caller)
    if (setting !== 'auto') return setting
    const isComplete = this.missing().every(({ status }) => status !== 'starting')
    return exposures.choose(this.#caller, this.#visible().tools, rules.auto, isComplete)
  }

  readonly #isOpen = ({ name }: Source): boolean => this.#catalog.rules.closed(this.#caller, name) === undefined

  /** The sources that the caller may know of: those where it may use something, and those that are listed anyway. */
  #knownSources(): ReadonlyMap<string, Source> {
    const shown = new Set(this.#serverNames())
    const mayKnow = (name: string) => shown.has(name) || this.#refusalOf(name) === undefined
    return new Map([...this.#catalog.sources].filter(([name]) => mayKnow(name)))
  }

  /** If denials are hidden, an error keeps the denial that it hides for the audit record only. */
  #concealing(thrown: unknown, found: () => readonly Served[], servers: () => readonly string[]): unknown {
    if (!this.#hidesDenied || !(thrown instanceof ToolwayError)) return thrown
    const { decide } = this.#catalog.rules
    for (const { entry } of found()) {
      const decision = decide(this.#caller, entry)
      if (!decision.allowed) return thrown.concealing(refusalOf(decision, entry.server))
    }
    const refusals = servers().map((server) => this.#refusalOf(server))
    return thrown.concealing(refusals.find((refusal) => refusal))
  }

  #refusalOf(server: string, kind?: Kind): ToolwayError | undefined {
    const { decide, closed } = this.#catalog.rules
    const source = this.#catalog.sources.get(server)
    const denied = source && closed(this.#caller, server)
    if (denied) return refusalOf(denied, server)
    const entries = (source?.entries() ?? []).filter((entry) => kind === undefined || entry.kind === kind)
    const decisions = entries.map((entry) => decide(this.#caller, entry))
    const denial = decisions.find((decision) => !decision.allowed)
    if (!denial || denial.allowed || decisions.some(({ allowed }) => allowed)) return undefined
    return refusalOf({ ...denial, reason: nothingUsable(server, denial, kind) }, server)
  }

  #usable(found: readonly Served[]): readonly Served[] {
    if (!this.#hidesDenied) return found
    return found.filter(({ entry }) => this.#catalog.rules.decide(this.#caller, entry).allowed)
  }

  #entryOf(kind: Kind, server: string, name: string): readonly Served[] {
    const known = this.#catalog.snapshot().registry.get(server)?.[kind].get(name)
    return known ? [known] : []
  }

  #meanings(kind: Kind, spelling: string): readonly Served[] {
    const snapshot = this.#catalog.snapshot()
    const renamed = this.#isPortable && kind === 'tool' ? this.#visible().portable?.renamed.get(spelling) : undefined
    if (renamed) return [renamed]
    if (kind === 'resource') return resolveResource(snapshot, spelling)
    if (kind === 'template') return resolveTemplate(snapshot, spelling)
    if (kind === 'skill') return resolveSkill(snapshot, spelling)
    return resolveName(snapshot, kind, spelling, this.#catalog.naming)
  }

  #resolveNow(kind: Kind, spelling: string): Served | undefined {
    return this.#only(kind, spelling, this.#usable(this.#meanings(kind, spelling)))
  }

  #only(kind: Kind, spelling: string, found: readonly Served[]): Served | undefined {
    if (found.length < 2) return found[0]
    const offered = new Set(found.flatMap(({ entry }) => this.#offered(entry.kind)).map(({ entry }) => entry))
    const named = found.filter(({ entry }) => offered.has(entry))
    throw ambiguous(kind, spelling, named)
  }

  /** The tool that its server calls so, as the pages of apps do. The server of the page read last comes first. */
  async #resolveBare(name: string): Promise<Served | undefined> {
    const server = await this.#catalog.pages.lastServer(this.#caller)
    const own = this.#entryOf('tool', server ?? '', name)
    // The page means its own server's tool, also if the caller may not use that.
    if (own.length > 0) return this.#usable(own)[0]
    const namesakes = this.list('tool').filter(({ entry }) => entry.name === name || entry.override?.name === name)
    return this.#only('tool', name, namesakes)
  }

  /** Of the resources that several servers have under this URI, the one of the server whose page was read last. */
  async #resourceOfPage(uri: string): Promise<Served | undefined> {
    const found = this.#usable(this.#meanings('resource', uri))
    if (found.length < 2) return undefined
    const server = await this.#catalog.pages.lastServer(this.#caller)
    return found.find(({ entry }) => entry.server === server)
  }

  #namedIn(names: Iterable<string>, kind: Kind, spelling: string): NamedServers {
    if (!isByUri(kind)) return serversInName(names, spelling, this.#catalog.naming)
    return { servers: serversInUri(names, spelling), qualifier: undefined }
  }

  async #findLater(kind: Kind, server: string, name: string, wait?: Wait): Promise<Served> {
    const source = this.#sources.get(server)
    if (!source) throw unknownServer(server, this.#serverNames())
    this.#openAmong([server])
    const late = await this.#catalog.readiness.of([source], wait, { missing: 'named' })
    const [found] = this.#usable(this.#entryOf(kind, server, name))
    if (found) return found
    const refusal = serverNotReady(source, kind, waitedFor(late, source, wait))
    if (refusal) throw refusal
    const own = this.#offered(kind).filter(({ entry }) => entry.server === server)
    throw unknownEntry(kind, name, own, server, ownNameOf)
  }

  /** Resolves a spelling that matches nothing yet: waits for servers that may offer the entry; fails if none does. */
  async #resolveLater(kind: Kind, spelling: string, wait: Wait | undefined): Promise<Served> {
    const { readiness, naming } = this.#catalog
    const { servers: meant, qualifier } = this.#namedIn(this.#sources.keys(), kind, spelling)
    const mayBeBare = kind === 'tool' && meant.length === 0
    const bare = mayBeBare ? await this.#resolveBare(spelling) : undefined
    if (bare) return bare
    const servers = this.#openAmong(meant)
    const named = servers.map((server) => this.#sources.get(server) as Source)
    // If there are several candidates, stop waiting as soon as one of them has the entry.
    const mayHave = (source: Source) =>
      isByUri(kind) ? readiness.pending(source) : couldBeNamed(source.name, spelling, naming)
    const isCandidate = (source: Source) => mayHave(source) && this.#isOpen(source)
    const candidates = named.length > 0 ? named : [...this.#sources.values()].filter(isCandidate)
    const missing = named.length > 0 ? 'named' : 'unnamed'
    const enough = () => this.#usable(this.#meanings(kind, spelling)).length > 0
    const late = await readiness.of(candidates, wait, { enough, missing })

    const found = this.#resolveNow(kind, spelling) ?? (mayBeBare ? await this.#resolveBare(spelling) : undefined)
    if (found) return found
    for (const source of named.length > 0 ? named : late) {
      const refusal = serverNotReady(source, kind, waitedFor(late, source, wait))
      if (refusal) throw refusal
    }
    if (named.length === 0 && qualifier !== undefined) throw unknownServer(qualifier, this.#serverNames())
    const [server] = servers.length === 1 ? servers : []
    throw unknownEntry(kind, spelling, this.#offered(kind), server)
  }

  /** The servers open to the caller, so that errors reveal nothing about closed ones. Throws if all are closed. */
  #openAmong(servers: readonly string[]): readonly string[] {
    const denials = servers.map((server) => this.#catalog.rules.closed(this.#caller, server))
    const [first] = denials
    if (first && denials.every((denial) => denial)) throw refusalOf(first, servers[0] as string)
    return servers.filter((_, at) => denials[at] === undefined)
  }

  /** The entries that errors may suggest. Models read them, so tools for pages only are left out. */
  #offered(kind: Kind): readonly Item[] {
    const { offered, items } = this.#visible()
    return kind === 'tool' ? offered : items[kind]
  }

  #serverNames(): readonly string[] {
    return this.servers().map(({ name }) => name)
  }
}

const isByUri = (kind: Kind): boolean => kind !== 'tool' && kind !== 'prompt'

/** How long a call waited for a source that did not become ready in time. Undefined for any other source. */
function waitedFor(late: readonly Source[], source: Source, wait: Wait | undefined): WaitedTime | undefined {
  if (!late.includes(source)) return undefined
  if (wait?.timeoutMs === undefined) return { ms: source.timeoutMs ?? defaultCallMs }
  return { ms: wait.timeoutMs, parameter: wait.timeoutKey ?? 'timeout_ms' }
}
