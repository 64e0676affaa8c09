import {
  applicators,
  assertions,
  isListOfItems,
  isListOfNames,
  requiredNames,
  withNumericBounds,
} from '../../core/schema-keywords.ts'
import { ExactNumber } from '../../json/exact-number.ts'
import { escapeStep, unescapeStep } from '../../json/json-pointer.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { decodePercent } from '../../lib/url.ts'

export type Prepared =
  | {
      readonly schema: Fields
      /** Whether the schema contains a number that a double cannot represent. */
      readonly rounds: boolean
      /** Whether references to IDs were replaced with JSON pointers. */
      readonly rewritten: boolean
    }
  | { readonly unfit: string }

type Fields = Readonly<Record<string, unknown>>

/** Max subschemas per schema. Compiling blocks the event loop for about 50 µs per subschema. */
const maxSubschemas = 3000
const maxValues = 50_000
const maxDepth = 64

/** The keyword that holds the cost of a subschema. It is added to every subschema. */
export const costKeyword = 'toolwayCost'

/** Requires a whole number. Added to integer subschemas in exact checks, because `type` sees the rounded value. */
export const wholeKeyword = 'toolwayWhole'

export interface Cost {
  readonly steps: number
  /** How many times the check iterates over the whole value, however large it is. */
  readonly passes: number
}

class Unfit extends Error {}

const malformed = (pointer: string) => new Unfit(`it is not a valid JSON Schema at ${quote(pointer, 200)}`)

/** The base URI of a schema without `$id`. */
const noBase = 'schema://toolway/'
/** Max characters in the URI of a subschema, because every reference in the subschema is resolved against it. */
const maxUri = 1000

/** A schema that defines schemas. A reference to one is left to the server. */
const metaSchema = /^https?:\/\/json-schema\.org\//

interface Reference {
  readonly holder: Record<string, unknown>
  readonly keyword: string
  readonly to: string
  readonly base: string
}

/**
 * Copies the parts of a schema that validation needs. Drops IDs, through which one server's schema could refer to
 * another server's, replaces references to them, verifies that references stay inside the schema, and adds the cost to
 * every subschema.
 */
export function prepare(schema: Fields, exact = false): Prepared {
  const places = new Set(['#'])
  const references: Reference[] = []
  /** The JSON pointer of each subschema that has a URI, through `$id` or an anchor. */
  const pointers = new Map<string, string>([[noBase, '#']])
  let rewritten = false
  const isDraft4 = typeof schema.$schema === 'string' && schema.$schema.includes('draft-04')
  let subschemas = 0
  let values = 0
  let rounds = false

  /** The base URI of a subschema, which is noted if the subschema has its own. */
  const baseOf = (id: unknown, base: string, pointer: string): string => {
    const uri = typeof id === 'string' ? URL.parse(id, base)?.href.replace(/#$/, '') : undefined
    if (uri === undefined || uri.length > maxUri) return base
    if (!pointers.has(uri)) pointers.set(uri, pointer)
    // Before `$anchor`, an ID that is only a fragment was an anchor.
    return uri.includes('#') ? base : uri
  }

  const subschema = (given: unknown, pointer: string, depth: number, outer = noBase, isCondition = false): unknown => {
    places.add(pointer)
    if (typeof given === 'boolean') return given
    if (!isRecord(given) || given instanceof ExactNumber) throw malformed(pointer)
    if (depth > maxDepth || ++subschemas > maxSubschemas) throw new Unfit('it is too large')
    const base = baseOf(given.$id ?? (isDraft4 ? given.id : undefined), outer, pointer)
    const copy: Record<string, unknown> = {}
    let cost = 1
    for (const [keyword, value] of Object.entries(withNumericBounds(given))) {
      if (Object.hasOwn(applicators, keyword)) {
        cost += costOf(keyword, value)
        // Within a condition, requiring less would change which arguments it applies to.
        const inner = isCondition || keyword === 'not' || keyword === 'if'
        copy[keyword] = applied(keyword, value, `${pointer}/${escapeStep(keyword)}`, depth + 1, base, inner)
      } else if (Object.hasOwn(assertions, keyword)) {
        if (!assertions[keyword]?.(value)) throw malformed(`${pointer}/${escapeStep(keyword)}`)
        cost += costOf(keyword, value)
        copy[keyword] = keyword === 'required' && !isCondition ? requiredNames(given) : value
        rounds ||= holdsExactNumber(value)
      }
    }
    // The compiler ignores a condition that stands alone, although it determines which members are known.
    if (copy.if !== undefined && copy.then === undefined && copy.else === undefined) {
      copy.allOf = [...((copy.allOf as readonly unknown[] | undefined) ?? []), { anyOf: [copy.if, true] }]
    }
    // The compiler skips a property with this name.
    if (isRecord(copy.properties) && Object.hasOwn(copy.properties, '__proto__')) {
      const [, schema] = Object.entries(copy.properties).find(([name]) => name === '__proto__') ?? []
      copy.patternProperties = { '^__proto__$': schema, ...(copy.patternProperties as Fields) }
    }
    values += valuesIn(copy)
    if (values > maxValues) throw new Unfit('it is too large')
    const { $ref, $dynamicRef, $anchor, $dynamicAnchor } = copy as Record<string, string | undefined>
    for (const anchor of [$anchor, $dynamicAnchor]) {
      if (anchor === undefined) continue
      places.add(`#${anchor}`)
      pointers.set(`${base}#${anchor}`, pointer)
    }
    // Without a type, `nullable` has no meaning and the compiler rejects it.
    if (copy.type === undefined) delete copy.nullable
    if (exact && isWhole(copy.type)) copy[wholeKeyword] = true
    const toPay: Cost = { steps: Math.ceil(cost), passes: passesOf(copy) }
    const holder = { ...copy, [costKeyword]: toPay }
    for (const [keyword, to] of Object.entries({ $ref, $dynamicRef })) {
      if (to === undefined) continue
      // Readers disagree about whether it separates steps.
      if (/%2f/i.test(to)) throw new Unfit('it has a reference with an encoded slash')
      references.push({ holder, keyword, to, base })
    }
    return holder
  }

  const applied = (
    keyword: string,
    value: unknown,
    pointer: string,
    depth: number,
    base: string,
    isCondition: boolean,
  ): unknown => {
    const kind = applicators[keyword]
    if (isListOfItems(keyword, value) || (kind === 'list' && Array.isArray(value))) {
      return value.map((item, index) => subschema(item, `${pointer}/${index}`, depth, base, isCondition))
    }
    if (kind === 'one') return subschema(value, pointer, depth, base, isCondition)
    if (kind === 'list' || !isRecord(value)) throw malformed(pointer)
    const named = Object.entries(value).map(([name, item]) => {
      const inner = `${pointer}/${escapeStep(name)}`
      return [name, isListOfNames(keyword, item) ? item : subschema(item, inner, depth, base, isCondition)]
    })
    return Object.fromEntries(named)
  }

  /** A reference within the schema, as a JSON pointer or an anchor. */
  const local = ({ to, base }: Reference): string => {
    const decoded = decodePercent(to)
    if (to.startsWith('#') && base === noBase && (places.has(decoded) || to.startsWith('#/'))) return decoded
    const found = [base, noBase].flatMap((from) => {
      const [document = '', fragment = ''] = URL.parse(to, from)?.href.split('#') ?? []
      const root = pointers.get(document)
      const part = decodePercent(fragment)
      if (part !== '' && !part.startsWith('/')) return pointers.get(`${document}#${part}`) ?? []
      return root === undefined ? [] : `${root}${part}`
    })
    // Many schemas were put into others without changing their references.
    return found.find((pointer) => places.has(pointer)) ?? (to.startsWith('#') ? decoded : (found[0] ?? decoded))
  }

  try {
    const copy = subschema(schema, '#', 0) as Record<string, unknown>
    const definitions: Record<string, unknown> = isRecord(copy.$defs) ? copy.$defs : {}
    const added = new Map<string, string>()
    // Preparing what a reference points to may add references, which this loop also visits.
    for (const reference of references) {
      const { holder, keyword } = reference
      const to = local(reference)
      if (to !== decodePercent(reference.to)) rewritten = true
      if (places.has(to)) {
        holder[keyword] = to === decodePercent(reference.to) ? reference.to : encodeURI(to)
        continue
      }
      if (metaSchema.test(to)) {
        delete holder[keyword]
        continue
      }
      const name = added.get(to) ?? nameBeside(definitions, added.size)
      if (!added.has(to)) {
        added.set(to, name)
        definitions[name] = subschema(partAt(schema, to, places), `#/$defs/${name}`, 1)
      }
      holder[keyword] = `#/$defs/${name}`
    }
    return { schema: added.size > 0 ? { ...copy, $defs: definitions } : copy, rounds, rewritten }
  } catch (error) {
    if (error instanceof Unfit) return { unfit: error.message }
    throw error
  }
}

/** Keywords that hold values, which are not schemas even if they look like one. */
const valueKeywords = new Set(['const', 'enum', 'default', 'example', 'examples'])

/** The part of a schema that a JSON pointer names, such as `#/components/schemas/Pet`. */
function partAt(schema: Fields, reference: string, places: ReadonlySet<string>): unknown {
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

function nameBeside(definitions: Fields, count: number): string {
  let name = `toolwayPart${count}`
  while (Object.hasOwn(definitions, name)) name += '_'
  return name
}

const isWhole = (type: unknown): boolean => {
  const types = [type].flat()
  return types.includes('integer') && !types.includes('number')
}

function holdsExactNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return value instanceof ExactNumber || Object.values(value).some(holdsExactNumber)
}

/** The cost of a keyword in budget steps. Alternatives cost more: one that fails creates an error object. */
function costOf(keyword: string, value: unknown): number {
  const members = typeof value === 'object' && value !== null ? Object.keys(value).length : 0
  if (keyword === 'anyOf' || keyword === 'oneOf') return 6 * members
  return (keyword === 'enum' || keyword === 'const' ? valuesIn(value) : members) / 8
}

/** Keywords that count the characters in a string or iterate over all members of an object. */
const wholeKeywords = new Set(
  `minLength maxLength minProperties maxProperties additionalProperties patternProperties propertyNames
  unevaluatedProperties`.split(/\s+/),
)

function passesOf(schema: Fields): number {
  const compared = [schema.enum ?? [], schema.const ?? []].flat().filter(isRecord)
  return compared.length + Object.keys(schema).filter((keyword) => wholeKeywords.has(keyword)).length
}

/** Counts a value and all values inside it. Stops soon after the limit is reached. */
export function valuesIn(value: unknown, limit = maxValues): number {
  const open = [value]
  let count = 0
  while (open.length > 0 && count <= limit) {
    const next = open.pop()
    count++
    if (typeof next === 'object' && next !== null) for (const member of Object.values(next)) open.push(member)
  }
  return count
}
