import {
  applicators,
  assertions,
  type Fields,
  isListOfItems,
  isListOfNames,
  requiredNames,
  withNumericBounds,
} from '../../core/schema-keywords.ts'
import { escapeStep, unescapeStep } from '../../json/json-pointer.ts'
import { ExactNumber } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { decodePercent } from '../../lib/url.ts'

export interface PreparedSchema {
  /** A copy in which `$ref` and `$dynamicRef` are the schemas to which they refer. */
  readonly schema: Fields
  /** Whether a reference is not a JSON pointer or an anchor of the schema as it is. */
  readonly rewritten: boolean
  readonly hasPatterns: boolean
  /** Whether a subschema depends on which members others evaluated. */
  readonly tracks: boolean
}

/** Max subschemas per schema, because compiling blocks the event loop. */
const maxCopiedSubschemas = 3000
const maxSchemaValues = 50_000
const maxSubschemaDepth = 64

/** A schema that cannot be used; the message says why. */
export class Unfit extends Error {}

const malformedSchema = (pointer: string) => new Unfit(`it is not a valid JSON Schema at ${quote(pointer, 200)}`)

/** The base URI of a schema without `$id`. */
const noBase = 'schema://toolway/'
/** Max characters in the URI of a subschema, because every reference in the subschema is resolved against it. */
const maxSchemaUri = 1000

/** A schema that defines schemas. A reference to one is left to the server. */
const metaSchema = /^https?:\/\/json-schema\.org\//

/** Keywords that drafts before 2019-09, or before 2020-12, ignore. */
const laterKeywords = 'prefixItems $dynamicRef $dynamicAnchor'
const latestKeywords = `${laterKeywords} unevaluatedItems unevaluatedProperties dependentRequired dependentSchemas minContains
  maxContains`

function ignoredKeywords($schema: unknown): ReadonlySet<string> {
  if (typeof $schema !== 'string') return new Set()
  const ignored = /draft-0[4-7]/.test($schema) ? latestKeywords : $schema.includes('2019-09') ? laterKeywords : ''
  return new Set(ignored.split(/\s+/))
}

interface Reference {
  readonly holder: Record<string, unknown>
  readonly keyword: string
  readonly to: string
  readonly base: string
}

/** Where a subschema is: its JSON pointer, its depth, its base URI, and whether it is within a condition. */
interface SchemaPlace {
  readonly pointer: string
  readonly depth: number
  readonly base: string
  readonly isCondition: boolean
}

const rootPlace: SchemaPlace = { pointer: '#', depth: 0, base: noBase, isCondition: false }

/**
 * Copies the parts of a schema that validation needs, and replaces references with what they refer to. Throws `Unfit` for
 * an invalid schema, and for references that leave the schema.
 */
export function prepareSchema(schema: Fields): PreparedSchema {
  return new SchemaCopier(schema).copy()
}

class SchemaCopier {
  readonly #schema: Fields
  readonly #isDraft4: boolean
  readonly #ignored: ReadonlySet<string>
  /** The copied subschemas by JSON pointer, and by anchor. */
  readonly #places = new Map<string, unknown>()
  readonly #references: Reference[] = []
  /** The JSON pointer of each subschema that has a URI, through `$id` or an anchor. */
  readonly #pointers = new Map<string, string>([[noBase, '#']])
  readonly #used = new Set<string>()
  #subschemas = 0
  #values = 0

  constructor(schema: Fields) {
    this.#schema = schema
    this.#isDraft4 = typeof schema.$schema === 'string' && schema.$schema.includes('draft-04')
    this.#ignored = ignoredKeywords(schema.$schema)
  }

  copy(): PreparedSchema {
    const schema = this.#subschema(this.#schema, rootPlace) as Fields
    let rewritten = false
    // What a reference points to may have references, which this loop also visits.
    for (const reference of this.#references) {
      const { holder, keyword } = reference
      const to = this.#local(reference)
      if (to !== decodePercent(reference.to)) rewritten = true
      if (metaSchema.test(to)) delete holder[keyword]
      else {
        if (!this.#places.has(to)) {
          this.#subschema(partAt(this.#schema, to, this.#places), { ...rootPlace, pointer: to, depth: 1 })
        }
        holder[keyword] = this.#places.get(to)
      }
    }
    const uses = (...keywords: readonly string[]) => keywords.some((keyword) => this.#used.has(keyword))
    const tracks = uses('unevaluatedProperties', 'unevaluatedItems')
    return { schema, rewritten, tracks, hasPatterns: uses('pattern', 'patternProperties') }
  }

  /** The base URI of a subschema, which is noted if the subschema has its own. */
  #baseOf(id: unknown, { base, pointer }: SchemaPlace): string {
    const uri = typeof id === 'string' ? URL.parse(id, base)?.href.replace(/#$/, '') : undefined
    if (uri === undefined || uri.length > maxSchemaUri) return base
    if (!this.#pointers.has(uri)) this.#pointers.set(uri, pointer)
    // Before `$anchor`, an ID that is only a fragment was an anchor.
    return uri.includes('#') ? base : uri
  }

  #subschema(given: unknown, place: SchemaPlace): unknown {
    const { pointer, depth, isCondition } = place
    this.#places.set(pointer, given)
    if (typeof given === 'boolean') return given
    if (!isRecord(given) || given instanceof ExactNumber) throw malformedSchema(pointer)
    if (depth > maxSubschemaDepth || ++this.#subschemas > maxCopiedSubschemas) throw new Unfit('it is too large')
    const base = this.#baseOf(given.$id ?? (this.#isDraft4 ? given.id : undefined), place)
    const copy: Record<string, unknown> = {}
    this.#places.set(pointer, copy)
    for (const [keyword, value] of Object.entries(withNumericBounds(given))) {
      if (this.#ignored.has(keyword)) continue
      const inner = { pointer: `${pointer}/${escapeStep(keyword)}`, depth: depth + 1, base, isCondition }
      if (Object.hasOwn(applicators, keyword)) {
        // Within a condition, requiring less would change which arguments it applies to.
        copy[keyword] = this.#applied(keyword, value, {
          ...inner,
          isCondition: isCondition || keyword === 'not' || keyword === 'if',
        })
      } else if (Object.hasOwn(assertions, keyword)) {
        if (!assertions[keyword]?.(value)) throw malformedSchema(inner.pointer)
        copy[keyword] = keyword === 'required' && !isCondition ? requiredNames(given) : value
      } else continue
      this.#used.add(keyword)
    }
    this.#values += valuesIn(copy)
    if (this.#values > maxSchemaValues) throw new Unfit('it is too large')
    this.#noteNames(copy, base, pointer)
    return copy
  }

  #noteNames(copy: Record<string, unknown>, base: string, pointer: string): void {
    const { $ref, $dynamicRef, $anchor, $dynamicAnchor } = copy as Record<string, string | undefined>
    for (const anchor of [$anchor, $dynamicAnchor]) {
      if (anchor === undefined) continue
      if (!this.#places.has(`#${anchor}`)) this.#places.set(`#${anchor}`, copy)
      this.#pointers.set(`${base}#${anchor}`, pointer)
    }
    for (const [keyword, to] of Object.entries({ $ref, $dynamicRef })) {
      if (to === undefined) continue
      // Readers disagree about whether it separates steps.
      if (/%2f/i.test(to)) throw new Unfit('it has a reference with an encoded slash')
      this.#references.push({ holder: copy, keyword, to, base })
    }
  }

  #applied(keyword: string, value: unknown, place: SchemaPlace): unknown {
    const kind = applicators[keyword]
    const inner = (item: unknown, name: string) =>
      this.#subschema(item, { ...place, pointer: `${place.pointer}/${escapeStep(name)}` })
    if (isListOfItems(keyword, value) || (kind === 'list' && Array.isArray(value))) {
      return value.map((item, index) => inner(item, `${index}`))
    }
    if (kind === 'one') return this.#subschema(value, place)
    if (kind === 'list' || !isRecord(value)) throw malformedSchema(place.pointer)
    const named = Object.entries(value).map(([name, item]) => [
      name,
      isListOfNames(keyword, item) ? item : inner(item, name),
    ])
    return Object.fromEntries(named)
  }

  /** A reference within the schema, as a JSON pointer or an anchor. */
  #local({ to, base }: Reference): string {
    const decoded = decodePercent(to)
    if (to.startsWith('#') && base === noBase && (this.#places.has(decoded) || to.startsWith('#/'))) return decoded
    const found = [base, noBase].flatMap((from) => {
      const [document = '', fragment = ''] = URL.parse(to, from)?.href.split('#') ?? []
      const root = this.#pointers.get(document)
      const part = decodePercent(fragment)
      if (part !== '' && !part.startsWith('/')) return this.#pointers.get(`${document}#${part}`) ?? []
      return root === undefined ? [] : `${root}${part}`
    })
    // Many schemas were put into others without changing their references.
    return found.find((pointer) => this.#places.has(pointer)) ?? (to.startsWith('#') ? decoded : (found[0] ?? decoded))
  }
}

/** Keywords that hold values, which are not schemas even if they look like one. */
const valueKeywords = new Set(['const', 'enum', 'default', 'example', 'examples'])

/** The part of a schema that a JSON pointer names, such as `#/components/schemas/Pet`. */
function partAt(schema: Fields, reference: string, places: ReadonlyMap<string, unknown>): unknown {
  if (!reference.startsWith('#')) throw new Unfit('it has a reference to another document')
  let part: unknown = schema
  let place = '#'
  for (const name of reference.split('/').slice(1).map(unescapeStep)) {
    const isValue = places.has(place) && valueKeywords.has(name)
    const has = typeof part === 'object' && part !== null && Object.hasOwn(part, name) && !isValue
    part = has ? (part as Fields)[name] : undefined
    // A reference may have any number of steps, and looking up every place takes as long as the reference is long.
    if (part === undefined) break
    place += `/${escapeStep(name)}`
  }
  if (part === undefined || !reference.startsWith('#/')) {
    throw new Unfit('it has a reference to a part that it does not define')
  }
  return part
}

/** Counts a value and all values inside it. Stops soon after the limit is reached. */
export function valuesIn(value: unknown, limit = maxSchemaValues): number {
  const open = [value]
  let count = 0
  while (open.length > 0 && count <= limit) {
    const next = open.pop()
    count++
    if (typeof next === 'object' && next !== null) for (const member of Object.values(next)) open.push(member)
  }
  return count
}
