import { asRecord, isRecord } from '../../lib/is-record.ts'
import {
  type Alternative,
  arrayOrEmpty,
  joinTexts,
  SchemaExpansion,
  type SchemaObject,
  type SchemaType,
  typeOfValue,
} from './alternatives.ts'
import { schemaHints, shortJson } from './hints.ts'
import type { Restoration } from './restore-arguments.ts'

/** Nested objects and arrays below this level are given as text. */
const maxPortableLevels = 5

/** Limits for the values of an enum: a longer one becomes a hint. */
const maxPortableValues = 250
const maxValueCharacters = 15_000

export interface PortableSchema {
  readonly schema: SchemaObject
  /** How to convert arguments. Undefined if they are the same for both schemas. */
  readonly restoration?: Restoration | undefined
}

/**
 * Rewrites a tool's input schema with the few keywords that all model APIs accept: type, description, properties,
 * required, items, enum of texts, format date-time, and anyOf with nothing beside it. It may allow more than the
 * original, against which arguments are validated. What cannot be expressed is given as JSON text.
 */
export const rewriteSchema = (schema: unknown): PortableSchema => new SchemaRewriter(schema).root()

/** What a schema becomes. Without a `schema`, no value but null is valid. */
interface MemberForm extends Partial<PortableSchema> {
  readonly nullable?: boolean
}

class SchemaRewriter {
  readonly #root: unknown
  readonly #expansion: SchemaExpansion

  constructor(root: unknown) {
    this.#root = root
    this.#expansion = new SchemaExpansion(root)
  }

  root(): PortableSchema {
    const objects = this.#expansion.alternatives(this.#root, new Set(['#'])).filter(({ type }) => type === 'object')
    const group = objects.length > 0 ? objects : [{ schema: {}, type: 'object', refs: new Set<string>() } as const]
    const { properties, ...rest } = this.#members(group, 1)
    if (Object.keys(properties).length > 0) return portableObject(group, { properties, ...rest })
    const placeholder = 'no_arguments'
    const nothing = { type: 'boolean', description: 'Leave this out: the tool takes no arguments.' }
    const restoration = { ...rest.restoration, placeholder }
    return { schema: { type: 'object', properties: { [placeholder]: nothing } }, restoration }
  }

  #form(schema: unknown, refs: ReadonlySet<string>, level: number): MemberForm {
    const all = this.#expansion.alternatives(schema, refs)
    const alternatives = all.filter(({ type }) => type !== 'null')
    const nullable = alternatives.length < all.length
    if (alternatives.length === 0) return { nullable }
    if (alternatives.some(({ type }) => type === undefined)) return { ...anyValueSchema(alternatives), nullable }
    const hasNumbers = alternatives.some(({ type }) => type === 'number')
    const groups = Map.groupBy(alternatives, ({ type }) => (type === 'integer' && hasNumbers ? 'number' : type))
    const forms = [...groups].map(([type, group]) => this.#typed(type as SchemaType, group, level))
    return { ...oneOfForms(forms), nullable }
  }

  #typed(type: SchemaType, group: readonly Alternative[], level: number): PortableSchema {
    if (type === 'object') {
      const { properties, ...rest } = this.#members(group, level)
      const isText = level > maxPortableLevels || Object.keys(properties).length === 0
      return isText ? jsonTextSchema(group) : portableObject(group, { properties, ...rest })
    }
    if (type === 'array') return level > maxPortableLevels ? jsonTextSchema(group) : this.#array(group, level)
    return scalarSchema(type, group)
  }

  #array(group: readonly Alternative[], level: number): PortableSchema {
    const items = group.flatMap(({ schema }) => itemSchemas(schema))
    const { schema = { type: 'string' }, restoration } = this.#form({ anyOf: items }, refsOf(group), level + 1)
    return {
      schema: { type: 'array', ...describeAlternatives(group), items: schema },
      restoration: restoration && { items: restoration },
    }
  }

  #members(group: readonly Alternative[], level: number): ObjectMembers {
    const refs = refsOf(group)
    const schemas = memberSchemas(group)
    const further = furtherMembers(group)
    const properties: Record<string, SchemaObject> = {}
    const required: string[] = []
    const names = new Map<string, string>()
    const members = new Map<string, Restoration>()
    const nulls: string[] = []
    const taken = new Set([...schemas.keys()].filter((name) => portableMember(name) === name))
    // Too deep to be shown: only whether there are members matters.
    const deepest = level > maxPortableLevels
    for (const [name, all] of deepest ? [] : schemas) {
      const { schema, restoration, nullable } = this.#form(all.length === 1 ? all[0] : { anyOf: all }, refs, level + 1)
      const isRequired = group.every((one) => arrayOrEmpty(one.schema.required).includes(name))
      if (isRequired && nullable) nulls.push(name)
      if (!schema) continue
      const shown = freeMemberName(portableMember(name), name, taken)
      properties[shown] = schema
      if (shown !== name) names.set(shown, name)
      if (isRequired && !nullable) required.push(shown)
      if (restoration) members.set(shown, restoration)
    }
    const spread = further === undefined ? undefined : freeMemberName('additional_properties', undefined, taken)
    if (spread !== undefined && (level === 1 || schemas.size > 0))
      properties[spread] = { type: 'string', description: `Further members: one object as JSON text${further}` }
    const isSame = names.size + members.size + nulls.length === 0 && spread === undefined
    return {
      properties,
      required,
      restoration: isSame ? undefined : { names, members, nulls, ...(spread && { spread }) },
    }
  }
}

interface ObjectMembers {
  readonly properties: Readonly<Record<string, SchemaObject>>
  readonly required: readonly string[]
  readonly restoration: Restoration | undefined
}

const portableObject = (
  group: readonly Alternative[],
  { properties, required, restoration }: ObjectMembers,
): PortableSchema => ({
  schema: { type: 'object', ...describeAlternatives(group), properties, ...(required.length > 0 && { required }) },
  restoration,
})

function memberSchemas(group: readonly Alternative[]): ReadonlyMap<string, readonly unknown[]> {
  const found = new Map<string, unknown[]>()
  for (const { schema } of group) {
    for (const [name, one] of Object.entries(asRecord(schema.properties)))
      found.set(name, [...(found.get(name) ?? []), one])
  }
  // A required member without a schema of its own is like all further ones.
  for (const { schema } of group) {
    const { additionalProperties = true } = schema
    for (const name of arrayOrEmpty(schema.required)) {
      if (typeof name === 'string' && !found.has(name)) found.set(name, [additionalProperties])
    }
  }
  return found
}

/** What is known of an object's further members, as the end of a sentence; undefined if they need no mention. */
function furtherMembers(group: readonly Alternative[]): string | undefined {
  for (const { schema } of group) {
    const { additionalProperties: further, patternProperties } = schema
    const hasMembers = Object.keys(asRecord(schema.properties)).length > 0
    const isMap = isRecord(further) && Object.keys(further).length > 0
    if (isMap || isRecord(patternProperties) || (!hasMembers && (further === true || isRecord(further))))
      return asExample(
        isMap ? { additionalProperties: further } : isRecord(patternProperties) ? { patternProperties } : {},
      )
  }
  return undefined
}

/** The schemas of an array's items. Those of a tuple are alternatives, which a hint puts in order. */
function itemSchemas({ items = {}, prefixItems, additionalItems }: SchemaObject): readonly unknown[] {
  const first = Array.isArray(items) ? items : arrayOrEmpty(prefixItems)
  const rest = Array.isArray(items) ? (additionalItems ?? false) : items
  return first.length === 0 ? [rest] : isRecord(rest) && Object.keys(rest).length > 0 ? [...first, rest] : first
}

const refsOf = (group: readonly Alternative[]): ReadonlySet<string> => new Set(group.flatMap(({ refs }) => [...refs]))

/** A name of a member with the letters that all APIs accept. */
const portableMember = (name: string): string =>
  name
    .replaceAll(/[^A-Za-z0-9_]/g, '_')
    .replace(/^(?![A-Za-z_])/, '_')
    .slice(0, 64)

/** The name, or one that no other member has. An original name that is portable is kept. */
function freeMemberName(wanted: string, original: string | undefined, taken: Set<string>): string {
  if (wanted === original) return wanted
  let name = wanted
  for (let count = 2; taken.has(name); count++) name = `${wanted.slice(0, 60)}_${count}`
  taken.add(name)
  return name
}

function scalarSchema(type: SchemaType, group: readonly Alternative[]): PortableSchema {
  const values = group.every(({ schema }) => Array.isArray(schema.enum))
    ? [...new Set(group.flatMap(({ schema }) => arrayOrEmpty(schema.enum)))].filter((value) =>
        isValueOfType(value, type),
      )
    : []
  const texts = values.filter((value) => typeof value === 'string' && value !== '')
  const isShort = texts.length <= maxPortableValues && texts.join('').length <= maxValueCharacters
  const enumeration = texts.length > 0 && isShort ? { enum: texts } : undefined
  const hints = values.length > 0 && !enumeration ? [`one of: ${shortJson(values).slice(1, -1)}`] : []
  const isTime = group.every(({ schema }) => schema.format === 'date-time')
  return {
    schema: { type, ...describeAlternatives(group, hints), ...enumeration, ...(isTime && { format: 'date-time' }) },
  }
}

const isValueOfType = (value: unknown, type: SchemaType): boolean =>
  typeOfValue(value) === type || (type === 'number' && typeof value === 'number')

/** One schema for several types. APIs accept nothing beside `anyOf`, so the description is in its first part. */
function oneOfForms(forms: readonly PortableSchema[]): PortableSchema {
  const restorations = forms.flatMap(({ restoration: one }) => one ?? [])
  const restoration: Restoration | undefined = restorations.length > 0 ? Object.assign({}, ...restorations) : undefined
  const texts = forms.filter(({ schema }) => schema.type === 'string')
  const others = forms.filter(({ schema }) => schema.type !== 'string').map(({ schema }) => schema)
  // A text, and something else that is given as text.
  const text = { type: 'string', description: joinTexts(...texts.map(({ schema }) => schema.description)) }
  const schemas = texts.length > 1 ? [text, ...others] : forms.map(({ schema }) => schema)
  return { schema: schemas.length === 1 ? (schemas[0] as SchemaObject) : { anyOf: schemas }, restoration }
}

const textRestoration: Restoration = { parse: true }

function jsonTextSchema(group: readonly Alternative[]): PortableSchema {
  const schema: SchemaObject = group[0]?.schema ?? {}
  const { description, title, $defs: _, definitions: __, $schema: ___, ...shape } = schema
  const text = joinTexts(description ?? title, `Write this as JSON text${asExample(shape)}`)
  return { schema: { type: 'string', description: text }, restoration: textRestoration }
}

const asExample = (schema: SchemaObject): string => {
  const text = JSON.stringify(schema)
  return text.length > 300 || text === '{}' || text.includes('"$ref"') ? '.' : `, valid for ${text}.`
}

function anyValueSchema(alternatives: readonly Alternative[]): PortableSchema {
  const { description } = describeAlternatives(alternatives)
  const text = joinTexts(description, 'Write an object or array as JSON text.')
  const schema = { anyOf: [{ type: 'string', description: text }, { type: 'number' }, { type: 'boolean' }] }
  return { schema, restoration: textRestoration }
}

/** The description, with what the keywords that are left out say. */
function describeAlternatives(
  group: readonly Alternative[],
  more: readonly string[] = [],
): { readonly description?: string } {
  const [first] = group
  const hints = group.length === 1 && first ? schemaHints(first.schema) : alternativeHints(group)
  const all = [...more, ...hints]
  const text = joinTexts(
    first?.schema.description ?? first?.schema.title,
    all.length > 0 ? `(${all.join('; ')})` : undefined,
  )
  return text === undefined ? {} : { description: text }
}

/** Which members the alternatives of an object need together, with the values that tell them apart. */
function alternativeHints(group: readonly Alternative[]): readonly string[] {
  const needs = group.map(({ schema: { required, properties } }) =>
    arrayOrEmpty(required).map((name) => {
      const { const: only } = asRecord(asRecord(properties)[String(name)])
      return only === undefined ? String(name) : `${String(name)} ${JSON.stringify(only)}`
    }),
  )
  const sets = new Set(needs.filter(({ length }) => length > 0).map((names) => names.join(', ')))
  return sets.size > 1 ? [`needs ${[...sets].slice(0, 8).join('; or ')}`] : []
}
