import type { NamingConfig } from '../config/schema.ts'
import type { Served } from '../core/access.ts'
import type { Entry, Kind } from '../core/entry.ts'
import { metaSource } from '../core/source.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import { listsFile, skillAt } from './skills.ts'
import type { CatalogSnapshot, Item, PerKind } from './snapshot.ts'
import { isOwnUri, type MatchesTemplate, originalUri, segment, serverSegment, templateMatcher } from './uris.ts'

/**
 * All entries that a spelling can match, without duplicates. An exact served name wins. Any other spelling is compared
 * with each server's names, so there is no need to guess where the server name ends.
 */
export function resolveName(snapshot: CatalogSnapshot, kind: Kind, spelling: string, naming: Naming): readonly Item[] {
  const served = snapshot.byName[kind].get(spelling)
  if (served) return [served]
  const found = new Set<Item>()
  for (const reading of nameReadings(spelling, naming)) {
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

/** The servers that a spelling can refer to. Used for errors, and to decide which servers to wait for. */
export interface NamedServers {
  readonly servers: readonly string[]
  /** The part of the spelling where a server name is expected. Undefined if the spelling has no such part. */
  readonly qualifier: string | undefined
}

export function serversInName(names: Iterable<string>, spelling: string, naming: Naming): NamedServers {
  const all = nameReadings(spelling, naming)
  // After the name of the gateway, expect a server name, unless the rest is the name of a meta-tool.
  const inner = all.length > 1 && all.slice(1).some(({ text }) => qualifierOf(text) !== undefined)
  const considered = inner ? all.slice(1) : all
  const isNamed = (server: string) => considered.some((reading) => namesAfter(server, reading).length > 0)
  const qualifier = considered.map(({ text }) => qualifierOf(text)).find((text) => text !== undefined)
  return { servers: [...new Set(names)].filter(isNamed), qualifier }
}

/** The name that a spelling has on a server; undefined if the spelling does not start with the server's name. */
export const nameOnServer = (server: string, spelling: string, naming: Naming): string | undefined =>
  nameReadings(spelling, naming).flatMap((reading) => namesAfter(server, reading))[0]

const namesAfter = (server: string, { text, separators }: Reading): readonly string[] =>
  text.startsWith(server)
    ? separators
        .filter((separator) => separator !== '' && text.startsWith(separator, server.length))
        .map((separator) => text.slice(server.length + separator.length))
    : []

function qualifierOf(text: string): string | undefined {
  const ends = nameSeparators.map((separator) => text.indexOf(separator)).filter((end) => end > 0)
  return ends.length === 0 ? undefined : text.slice(0, Math.min(...ends))
}

/** Separators that are accepted between server and tool, in addition to the configured one. */
const nameSeparators: readonly string[] = ['::', '.', '__', '/']

/** One way to parse a spelling: `text` is a served name, or server and tool joined by one of `separators`. */
interface Reading {
  readonly text: string
  readonly separators: readonly string[]
}

type Naming = Pick<NamingConfig, 'separator' | 'gateway'>

/** All ways to parse a spelling: unmodified first, then without the name of the gateway, which clients may put before it. */
function nameReadings(spelling: string, { separator, gateway = metaSource }: Naming): readonly Reading[] {
  const known = nameSeparators.includes(separator) ? nameSeparators : [...nameSeparators, separator]
  const behind = (own: string): readonly Reading[] =>
    [...nameSeparators, '_'].flatMap((one) => {
      if (!spelling.startsWith(own + one)) return []
      return { text: spelling.slice(own.length + one.length), separators: one === '_' ? ['_'] : known }
    })
  return [{ text: spelling, separators: known }, ...[...new Set([metaSource, gateway])].flatMap(behind)]
}

/**
 * All entries that a URI can refer to. Tries these in order: a served name; a template served unchanged; a URI in a
 * server's served form, listed or not; a URI as a server spells it. More than one result means that the URI is
 * ambiguous.
 */
export function resolveResource(snapshot: CatalogSnapshot, uri: string): readonly Served[] {
  // A file of a skill is read through the skill, however it is found, so that no decision about the skill is bypassed.
  if (snapshot.items.skill.length === 0) return resolveUri(snapshot, uri)
  const inside = skillFilesInside(snapshot, uri)
  if (inside) return inside
  const found = resolveUri(snapshot, uri)
  const files = found.flatMap((served) => fileOfSkill(snapshot, served) ?? [served])
  return found.length > 0 ? files : skillFilesAsSpelt(snapshot, uri)
}

function resolveUri(snapshot: CatalogSnapshot, uri: string): readonly Served[] {
  const served = snapshot.byName.resource.get(uri) ?? snapshot.byName.template.get(uri)
  if (served) return [reading(served, served.entry.name)]
  const unchanged = readUnchanged(snapshot, uri)
  if (unchanged.length > 0) return unchanged
  const inside = [...snapshot.registry.keys()].flatMap((server) => resolveInside(snapshot, server, uri))
  return inside.length > 0 ? inside : resolveOriginal(snapshot, uri)
}

/** Whether a URI is read from this server by a template that is served unchanged. */
export function isTemplateUri(snapshot: CatalogSnapshot, server: string, uri: string): boolean {
  if (snapshot.byName.resource.has(uri)) return false
  const servers = readUnchanged(snapshot, uri).map(({ entry }) => entry.server)
  return servers.length === 1 && servers[0] === server
}

/** Whether clients can load a URI from the web themselves, and this server has no template for it. */
export const isWebLink = (snapshot: CatalogSnapshot, server: string, uri: string): boolean =>
  /^https?:/i.test(uri) &&
  firstPerServer([...(snapshot.registry.get(server)?.template.values() ?? [])], uri).length === 0

const readUnchanged = (snapshot: CatalogSnapshot, uri: string): readonly Served[] =>
  firstPerServer(unchangedTemplates(snapshot), uri)

const unchangedTemplates = ({ items }: CatalogSnapshot): readonly Item[] =>
  items.template.filter((item) => item.name === item.entry.name)

/**
 * Returns a function that tells whether a URI is one that Toolway serves, or has the form of one. Fast, because a result
 * may contain thousands of URIs, and long ones.
 */
export function servedChecker(snapshot: CatalogSnapshot): (uri: string) => boolean {
  const { registry, byName } = snapshot
  const segments = new Set(Array.from(registry.keys(), segment))
  const templates = snapshot.items.template
  const listed = [...registry.values()].filter((own) => own.resource.size > 0 || own.template.size > 0)
  return (uri) =>
    isOwnUri(uri) ||
    segments.has(serverSegment(uri)) ||
    byName.resource.has(uri) ||
    byName.template.has(uri) ||
    listed.some((own) => own.resource.has(uri) || own.template.has(uri)) ||
    templates.some(({ entry }) => matcherOf(entry)(uri))
}

export const resolveSkill = ({ byName, registry }: CatalogSnapshot, uri: string): readonly Item[] => {
  const served = byName.skill.get(uri)
  return served ? [served] : [...registry.values()].flatMap((own) => own.skill.get(uri) ?? [])
}

export function resolveTemplate(snapshot: CatalogSnapshot, template: string): readonly Served[] {
  const served = snapshot.byName.template.get(template)
  if (served) return [served]
  return [...snapshot.registry].flatMap(([server, own]) => {
    const original = originalUri(server, template)
    return (original === undefined ? undefined : own.template.get(original)) ?? own.template.get(template) ?? []
  })
}

export const serversInUri = (names: Iterable<string>, uri: string): readonly string[] =>
  [...names].filter((server) => originalUri(server, uri) !== undefined)

/**
 * Resolves a URI in this server's served form. The server's own URIs may start with its name too, so they may have that
 * form unchanged. Servers with resources accept any URI in the served form, even if it is not listed.
 */
function resolveInside(snapshot: CatalogSnapshot, server: string, served: string): readonly Served[] {
  const original = originalUri(server, served)
  const own = snapshot.registry.get(server)
  if (original === undefined || !own) return []
  const listed = readListed(own, original) ?? readListed(own, served)
  if (listed) return [listed]
  const templates = [...own.template.values()]
  const matching = [original, served].flatMap((uri) => firstPerServer(templates, uri))
  if (matching.length > 0) return matching.slice(0, 1)
  const [sibling] = own.resource.size > 0 ? own.resource.values() : templates
  return sibling ? [unlistedResource(sibling.entry, original, served)] : []
}

/** Resolves a URI as its server spells it: one that it lists, or else one that a template of it expands to. */
function resolveOriginal({ registry, items }: CatalogSnapshot, uri: string): readonly Served[] {
  const listed = [...registry.values()].flatMap((own) => readListed(own, uri) ?? [])
  return listed.length > 0 ? listed : firstPerServer(items.template, uri)
}

function readListed(own: PerKind<ReadonlyMap<string, Item>>, uri: string): Served | undefined {
  const item = own.resource.get(uri) ?? own.template.get(uri)
  return item && reading(item, uri)
}

function firstPerServer(items: readonly Item[], uri: string): readonly Served[] {
  const found = new Map<string, Served>()
  for (const item of items) {
    const { server } = item.entry
    if (!found.has(server) && matcherOf(item.entry)(uri)) found.set(server, reading(item, uri))
  }
  return [...found.values()]
}

const matcherOf = memoizeByObject((entry: Entry): MatchesTemplate => templateMatcher(entry.name))

/** The file of a skill that a URI in a server's served form names; undefined if it is not inside a skill. */
function skillFilesInside({ registry }: CatalogSnapshot, uri: string): readonly Served[] | undefined {
  for (const [server, { skill }] of registry) {
    const original = skill.size > 0 ? originalUri(server, uri) : undefined
    const item = original === undefined ? undefined : skillAt(skill, original)
    if (item && original !== undefined) return listsFile(item, original) ? [reading(item, original)] : []
  }
  return undefined
}

function fileOfSkill(
  { registry }: CatalogSnapshot,
  { entry, uri = entry.name }: Served,
): readonly Served[] | undefined {
  const item = skillAt(registry.get(entry.server)?.skill, uri)
  return item && (listsFile(item, uri) ? [reading(item, uri)] : [])
}

const skillFilesAsSpelt = ({ registry }: CatalogSnapshot, uri: string): readonly Served[] =>
  [...registry.values()].flatMap(({ skill }) => {
    const item = skillAt(skill, uri)
    return item && listsFile(item, uri) ? [reading(item, uri)] : []
  })

const reading = (item: Item, uri: string): Served => ({
  name: item.name,
  entry: item.entry,
  get definition() {
    return item.definition
  },
  uri,
})

/** An entry for an unlisted URI, run through another entry but named after the URI for policy and audit. */
const unlistedResource = ({ server, traits, run, subscribe }: Entry, uri: string, served: string): Served => ({
  name: served,
  entry: { kind: 'resource', server, name: uri, definition: { uri }, traits, run, subscribe },
  definition: { uri: served },
  uri,
})
