import type { Definition, Kind } from '../../core/entry.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { ServerFinding, ServerFindingKind } from '../../core/source-status.ts'
import { Json } from '../../json/json.ts'
import { countValues, eachElement, members, OPEN_ARRAY, walk } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { asRecord } from '../../lib/is-record.ts'
import { quote, shorten } from '../../lib/message-text.ts'
import { invalidMembers, repairedDefinition, visibleDefinition } from './definitions.ts'

/** The limits for one list of a server, from the section `discovery` of the configuration. */
export interface ListLimits {
  readonly maxEntries: number
  readonly maxListSize: number
}

export const defaultListLimits: ListLimits = { maxEntries: 10_000, maxListSize: 16 * 1024 * 1024 }

const maxPages = fixedLimits.listPages.value
const maxCursor = fixedLimits.cursorBytes.value
/** A larger definition would use more of a model's context than any model has, and more than is scanned (B5). */
const maxDefinition = fixedLimits.definitionBytes.value
const maxDefinitionValues = fixedLimits.definitionValues.value
/** Values in a whole list, as a multiple of `maxEntries`: a parsed value takes 20 times the memory of its text. */
const valuesPerEntry = 50
const maxTextLengths = {
  description: fixedLimits.descriptionCharacters.value,
  title: fixedLimits.titleCharacters.value,
} as const
const maxIdentities: Readonly<Record<string, number>> = { name: 1_024, uri: 8_192, uriTemplate: 8_192 }
/** How many entries a finding names. */
const maxNamedEntries = 10

export interface ListSpec {
  readonly method: string
  readonly kind: Kind
  /** The member of the result that contains the entries, and the member that identifies an entry. */
  readonly field: string
  readonly key: string
  /** Why a definition cannot be used, if so. */
  malformed?(definition: Definition): string | undefined
}

/** Thrown for a page without an array of entries. */
export class MalformedList extends Error {
  override readonly name = 'MalformedList'
}

const nullBytes = Buffer.from('null')
const emptyList = Buffer.from('[]')

/**
 * Reads the pages of one list. Every limit is checked on the text of an entry before the entry is parsed, so a server
 * cannot make Toolway use much more memory than the limits allow.
 */
export class ListReader {
  /** The number of bytes read. */
  bytes = 0
  /** The shortest TTL of the pages read, if one has any. */
  ttlMs: number | undefined
  /** Input schemas with numbers that a double cannot hold, by tool name, as JSON with all digits. */
  readonly exactSchemas = new Map<string, string>()
  readonly #spec: ListSpec
  readonly #limits: ListLimits
  readonly #kept = new Map<string, Definition>()
  readonly #cursors = new Set<string>()
  readonly #counted = new Map<ServerFindingKind, { count: number; readonly named: string[] }>()
  #cut: ServerFinding | undefined
  #entries = 0
  #values = 0
  #leftOut = 0

  constructor(spec: ListSpec, limits: ListLimits) {
    this.#spec = spec
    this.#limits = limits
  }

  /** Reads a page. Returns the cursor of the next page; undefined if this was the last one that is read. */
  page(result: Buffer): string | undefined {
    const { field, kind } = this.#spec
    const found = pageMembers(result, field)
    const given = found.get(field)
    // Many servers write an empty list as null, or answer methods that they do not know with an empty result.
    const isEmpty = kind !== 'tool' && (given === undefined || given.equals(nullBytes))
    const list = isEmpty ? emptyList : given
    if (list?.[0] !== OPEN_ARRAY) throw new MalformedList(`"${field}" is not an array`)
    const ttl = found.get('ttlMs')
    if (ttl) this.ttlMs = Math.min(this.ttlMs ?? Number.POSITIVE_INFINITY, readTtl(ttl))
    this.bytes += result.length - (given?.length ?? 0)
    eachElement(list, (start, end) => this.#entry(list.subarray(start, end)))
    return this.#cut ? undefined : this.#nextCursor(found.get('nextCursor'))
  }

  /** Roughly ten times the CPU time that it takes to process what was read, in milliseconds. */
  get costMs(): number {
    return this.bytes / 1024 + this.#entries + this.#values / 50
  }

  definitions(): Definition[] {
    return [...this.#kept.values()]
  }

  findings(): ServerFinding[] {
    const { method } = this.#spec
    const counted = [...this.#counted].map(([kind, { count, named }]): ServerFinding => {
      const [what, limit] = explanations[kind] as readonly [string, number?]
      const more = count > named.length ? ` and ${withCommas(count - named.length)} more` : ''
      const message = `${method}: ${what}: ${named.join(', ')}${more}.`
      return { kind, method, message, count, ...(limit !== undefined && { limit }) }
    })
    const cut = this.#cut
    if (!cut) return counted
    const count = this.#leftOut
    const rest = `At least ${withCommas(count)} ${count === 1 ? 'is' : 'are'} left out.`
    return [count > 0 ? { ...cut, count, message: `${cut.message} ${rest}` } : cut, ...counted]
  }

  /** Reads one entry; always returns true, because the entries that are left out are counted. */
  #entry(text: Buffer): true {
    const { maxEntries, maxListSize } = this.#limits
    this.#entries++
    this.bytes += text.length
    if (this.#cut) this.#leftOut++
    else if (this.#entries > maxEntries) this.#stop('too-many-entries', maxEntries, 'discovery.maxEntries', 'entries')
    else if (this.bytes > maxListSize) this.#stop('large-list', maxListSize, 'discovery.maxListSize', 'bytes')
    else this.#read(text)
    return true
  }

  #stop(kind: ServerFindingKind, limit: number, setting: string | undefined, what: string): void {
    this.#leftOut = setting === undefined ? 0 : 1
    const excess = `has more than ${withCommas(limit)} ${what} (${setting ?? 'a fixed limit'}); the rest is left out.`
    this.#cutAt(kind, excess, { limit, ...(setting !== undefined && { setting }) })
  }

  /** Ends the list here, for a reason that continues the sentence "tools/list …". */
  #cutAt(kind: ServerFindingKind, reason: string, limits?: Pick<ServerFinding, 'limit' | 'setting'>): undefined {
    const { method } = this.#spec
    this.#cut = { kind, method, message: `${method} ${reason}`, ...limits }
  }

  #read(text: Buffer): void {
    const maxValues = valuesPerEntry * this.#limits.maxEntries
    const room = maxValues - this.#values
    const own = countValues(text, Math.min(room, maxDefinitionValues))
    this.#values += own
    const small = text.length <= maxDefinition || own > maxDefinitionValues ? text : this.#withoutIcons(text)
    if (own > room) this.#stop('large-list', maxValues, 'discovery.maxEntries', 'values')
    else if (own > maxDefinitionValues || !small) this.#note('large-definition', quotedName(text))
    else this.#keep(Json.raw<Definition>(small))
  }

  #keep(json: Json<Definition>): void {
    const { kind, key } = this.#spec
    const definition = json.value
    const isExact = json.exact === definition
    const reason = this.#problemOf(definition) ?? (isExact ? undefined : problemOfNumbers(definition))
    if (reason !== undefined) {
      this.#note('malformed-definition', `${definitionLabel(definition)} (${reason})`)
      return
    }
    const name = definition[key] as string
    const digits = isExact ? undefined : JSON.stringify(json.exact.inputSchema)
    if (digits !== undefined && digits !== JSON.stringify(definition.inputSchema)) this.exactSchemas.set(name, digits)
    const repaired = repairedDefinition(kind, definition)
    const invalid = repaired === definition ? [] : invalidMembers(kind, definition, repaired)
    if (invalid.length > 0) this.#note('malformed-member', `${quote(name)} (${invalid.join(', ')})`)
    this.#kept.set(name, this.#withShortTexts(repaired, name))
  }

  /** A definition that fits once its description is shortened and, if necessary, its icons are left out. */
  #withoutIcons(text: Buffer): Buffer | undefined {
    const found = members(text)
    if (!found) return undefined
    const long = (found.get('description')?.length ?? 0) - maxTextLengths.description
    const size = text.length - Math.max(0, long)
    if (size <= maxDefinition) return text
    if (size - (found.get('icons')?.length ?? 0) > maxDefinition) return undefined
    this.#note('long-text', `${quotedName(text)} (icons)`)
    const others = [...found].filter(([name]) => name !== 'icons')
    return Buffer.from(`{${others.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join()}}`)
  }

  #problemOf(definition: Definition): string | undefined {
    const { kind, key, malformed } = this.#spec
    if (typeof definition !== 'object' || definition === null) return 'not an object'
    const name = definition[key]
    if (typeof name !== 'string' || name === '') return `${key} is missing or empty`
    const limit = maxIdentities[key] as number
    if (name.length > limit) return `${key} is longer than ${withCommas(limit)} characters`
    return (
      malformed?.(definition) ??
      visibleDefinition(kind, definition).problem ??
      (this.#kept.has(name) ? 'duplicate name' : undefined)
    )
  }

  #withShortTexts(definition: Definition, name: string): Definition {
    const long = Object.entries(maxTextLengths).filter(([member, limit]) => {
      const text = definition[member]
      return typeof text === 'string' && text.length > limit
    })
    if (long.length === 0) return definition
    this.#note('long-text', `${quote(name)} (${long.map(([member]) => member).join(', ')})`)
    const short = long.map(([member, limit]) => [member, shorten(definition[member] as string, limit)])
    return { ...definition, ...Object.fromEntries(short) }
  }

  #nextCursor(text: Buffer | undefined): string | undefined {
    if (text === undefined || text.equals(nullBytes)) return undefined
    if (text[0] !== quoteByte)
      return this.#cutAt('malformed-cursor', 'returned a nextCursor that is not a string; the rest is left out.')
    if (text.length > maxCursor) {
      const excess = `returned a cursor of more than ${maxCursor / 1024} KiB (a fixed limit); the rest is left out.`
      return this.#cutAt('long-cursor', excess, { limit: maxCursor })
    }
    const cursor = jsonValue(text.toString('utf8')) as string
    if (cursor === '') return undefined
    if (this.#cursors.has(cursor))
      this.#cutAt('repeated-cursor', 'returned the same cursor twice; entries may be missing.')
    else if (this.#cursors.add(cursor).size >= maxPages) this.#stop('too-many-pages', maxPages, undefined, 'pages')
    return this.#cut ? undefined : cursor
  }

  #note(kind: ServerFindingKind, name: string): void {
    const so = this.#counted.get(kind) ?? { count: 0, named: [] }
    if (++so.count <= maxNamedEntries) so.named.push(name)
    this.#counted.set(kind, so)
  }
}

/** The last member of each name that matters, as a parser would return it. */
function pageMembers(result: Buffer, field: string): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>()
  walk(result, (name, start, end) => {
    if (name === field || name === 'nextCursor' || name === 'ttlMs') found.set(name, result.subarray(start, end))
    return true
  })
  return found
}

const quoteByte = 0x22

/** Why a definition cannot be listed if it has a number such as 1e999, which would become null. */
function problemOfNumbers(definition: Definition): string | undefined {
  let problem: string | undefined
  JSON.stringify(definition, (_, value) => {
    if (typeof value === 'number' && !Number.isFinite(value)) problem = 'a number is too large'
    return value
  })
  return problem
}

const explanations: Partial<Record<ServerFindingKind, readonly [what: string, limit?: number]>> = {
  'malformed-definition': ['malformed definitions are left out'],
  'malformed-member': ['invalid members of definitions are left out or repaired'],
  'large-definition': [
    `definitions of more than ${maxDefinition / 1024} KiB or ${withCommas(maxDefinitionValues)} values are left out`,
    maxDefinition,
  ],
  'long-text': [
    'descriptions of more than 64 KiB are shortened, and icons that do not fit are left out',
    maxTextLengths.description,
  ],
}

/** A whole number with commas. `toLocaleString` loads all locales, which takes 15 ms of a start. */
export function withCommas(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

function definitionLabel(item: unknown): string {
  const { name } = asRecord(item)
  return quote(typeof name === 'string' ? name : (JSON.stringify(item) ?? 'undefined'))
}

/** The name in a definition that is too large to be parsed. */
function quotedName(text: Buffer): string {
  let name = '(no name)'
  walk(text, (key, start, end) => {
    const isName = key === 'name' || key === 'uri' || key === 'uriTemplate'
    if (isName) name = text.toString('utf8', start + 1, Math.min(end - 1, start + 100))
    return !isName
  })
  return quote(name)
}

/** The longest TTL, so that clients get a number that they can use. */
const maxTtlMs = 86_400_000

/** A TTL in milliseconds. One that cannot be understood counts as 0. */
function readTtl(text: Buffer): number {
  const ttl = jsonValue(text.toString())
  return typeof ttl === 'number' && ttl > 0 ? Math.floor(Math.min(ttl, maxTtlMs)) : 0
}
