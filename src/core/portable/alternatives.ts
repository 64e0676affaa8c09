import { resolveReference } from '../../json/json-pointer.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'

export type SchemaObject = Readonly<Record<string, unknown>>
export type SchemaType = 'array' | 'boolean' | 'integer' | 'null' | 'number' | 'object' | 'string'

/** One way to satisfy a schema: of one type, without references and combinations except in its members. */
export interface Alternative {
  readonly schema: SchemaObject
  /** Undefined if any value is valid. */
  readonly type: SchemaType | undefined
  /** The references that led here: one of them inside the schema is a recursion. */
  readonly refs: ReadonlySet<string>
}

type Part = Omit<Alternative, 'type'>

/** Limits for schemas that grow when their references and combinations are written out. */
const maxSchemas = 2_000
const maxAlternatives = 32

/** Writes out the references and combinations in the schemas of one document. Above the limits, any value is valid. */
export class SchemaExpansion {
  readonly #root: unknown
  #left = maxSchemas

  constructor(root: unknown) {
    this.#root = root
  }

  alternatives(schema: unknown, refs: ReadonlySet<string>): readonly Alternative[] {
    return this.#parts(schema, refs).flatMap((part) => alternativeTypes(part.schema).map((type) => ({ ...part, type })))
  }

  #parts(schema: unknown, refs: ReadonlySet<string>): readonly Part[] {
    if (schema === false || isNever(schema)) return []
    if (!isRecord(schema) || this.#left <= 0) return [{ schema: {}, refs }]
    this.#left--
    const { $ref, allOf, anyOf, oneOf, then: yes, else: no, dependentSchemas, const: only, ...own } = schema
    let parts: readonly Part[] = [{ schema: only === undefined ? own : { ...own, enum: [only] }, refs }]
    const combine = (others: readonly Part[]) => {
      parts = parts.flatMap((one) => others.flatMap((other) => mergeParts(one, other) ?? [])).slice(0, maxAlternatives)
    }
    if (typeof $ref === 'string') combine(this.#referenced($ref, refs))
    for (const part of arrayOrEmpty(allOf)) combine(this.#parts(part, refs))
    for (const choice of [anyOf, oneOf].filter(Array.isArray)) combine(choice.flatMap((one) => this.#parts(one, refs)))
    // What holds under a condition is offered, but never required.
    for (const part of [yes, no, ...Object.values(asRecord(dependentSchemas))].filter(isRecord)) {
      const [first] = this.#parts(part, refs)
      if (first) combine([{ schema: { properties: first.schema.properties }, refs: first.refs }])
    }
    return parts
  }

  #referenced(ref: string, refs: ReadonlySet<string>): readonly Part[] {
    const target = resolveReference(this.#root, ref)
    if (!refs.has(ref)) return this.#parts(target, new Set([...refs, ref]))
    const { type = isRecord(asRecord(target).properties) ? 'object' : undefined } = asRecord(target)
    return [{ schema: type === undefined ? {} : { type }, refs }]
  }
}

/** Some generators write this for what may be left out. */
const isNever = (schema: unknown): boolean => {
  const { not } = asRecord(schema)
  return not === true || (isRecord(not) && Object.keys(not).length === 0)
}

function mergeParts(one: Part, other: Part): Part | undefined {
  const a = one.schema
  const b = other.schema
  const type = intersectTypes(a.type, b.type)
  const values = intersectValues(a.enum, b.enum)
  if (type?.length === 0 || values?.length === 0) return undefined
  const required = [...new Set([...arrayOrEmpty(a.required), ...arrayOrEmpty(b.required)])]
  const schema = {
    ...b,
    ...a,
    ...(type && { type }),
    ...(values && { enum: values }),
    ...(required.length > 0 && { required }),
    ...(isRecord(a.properties) && isRecord(b.properties) && { properties: mergeMembers(a.properties, b.properties) }),
    ...(isRecord(a.items) && isRecord(b.items) && { items: { allOf: [a.items, b.items] } }),
    ...(a.description !== b.description && { description: joinTexts(a.description, b.description) }),
  }
  return { schema, refs: one.refs === other.refs ? one.refs : new Set([...one.refs, ...other.refs]) }
}

function intersectTypes(one: unknown, other: unknown): readonly unknown[] | undefined {
  if (one === undefined || other === undefined) return one === other ? undefined : [one ?? other].flat()
  const [a, b] = [[one].flat(), [other].flat()]
  const isIn = (type: unknown, all: unknown[]) => all.includes(type) || (type === 'integer' && all.includes('number'))
  return [...new Set([...a.filter((type) => isIn(type, b)), ...b.filter((type) => isIn(type, a))])]
}

function intersectValues(one: unknown, other: unknown): readonly unknown[] | undefined {
  if (!Array.isArray(one) || !Array.isArray(other)) return undefined
  const texts = new Set(other.map((value) => JSON.stringify(value)))
  return one.filter((value) => texts.has(JSON.stringify(value)))
}

const mergeMembers = (one: SchemaObject, other: SchemaObject): SchemaObject =>
  Object.fromEntries(
    [...new Set([...Object.keys(one), ...Object.keys(other)])].map((name) => {
      const both = [one, other].filter((members) => Object.hasOwn(members, name)).map((members) => members[name])
      return [name, both.length === 1 ? both[0] : { allOf: both }]
    }),
  )

/** The texts among the values, joined; undefined if there is none. */
export const joinTexts = (...texts: readonly unknown[]): string | undefined =>
  texts.filter((text) => typeof text === 'string' && text !== '').join(' ') || undefined

export const arrayOrEmpty = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const schemaTypeNames: ReadonlySet<unknown> = new Set('array boolean integer null number object string'.split(' '))

/** Keywords that concern values of one type only, for schemas that do not name their type. */
const typeKeywords: readonly (readonly [SchemaType, readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems']],
  ['string', ['pattern', 'minLength', 'maxLength', 'format']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
]

function alternativeTypes(schema: SchemaObject): readonly (SchemaType | undefined)[] {
  const stated = [schema.type].flat().filter((type) => schemaTypeNames.has(type)) as SchemaType[]
  const values = Array.isArray(schema.enum) ? [...new Set(schema.enum.map(typeOfValue))] : undefined
  if (stated.length > 0) {
    // A type that none of the values has allows nothing.
    const isIn = (type: SchemaType) => values?.some((one) => one === type || (one === 'integer' && type === 'number'))
    return values ? stated.filter(isIn) : stated
  }
  if (values) return values
  const implied = typeKeywords.find(([, keywords]) => keywords.some((keyword) => schema[keyword] !== undefined))
  return [implied?.[0]]
}

export function typeOfValue(value: unknown): SchemaType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value as 'boolean' | 'object' | 'string'
}
