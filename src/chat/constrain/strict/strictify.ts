import { isRecord } from '../../../lib/is-record.ts'
import { CannotExpress, createWorkBudget, pointerStep, type WorkBudget } from '../conversion.ts'
import { createFlatten, type Flatten, findCycles, mergeSchemas, resolve } from '../references.ts'
import {
  type AnySchema,
  declaredTypes,
  hasOnly,
  isOfType,
  isSchema,
  type JsonSchemaObject,
  jsonTypeOf,
  listedValues,
  schemaEntries,
  schemasIn,
  schemaTypes,
  strings,
  undefinedType,
} from '../schema.ts'

/**
 * Converts a schema to strict mode: objects are closed, all members are required, optional ones become nullable,
 * `oneOf` becomes `anyOf`, and unsupported keywords move into descriptions. Throws `CannotExpress` for maps, tuples and
 * untyped values, whose meaning would change.
 */
export function strictify(root: JsonSchemaObject, budget: WorkBudget = createWorkBudget()) {
  const converter = new StrictConverter(root, budget)
  const schema = converter.convert(root, '', 0)
  if (schema.type !== 'object') refuseStrict('', 'the schema', 'is not an object')
  const { definitions, dropped, optional } = converter
  const whole: JsonSchemaObject = definitions.size > 0 ? { ...schema, $defs: Object.fromEntries(definitions) } : schema
  optional.set(whole, optional.get(schema) ?? new Set())
  return { schema: whole, dropped, restore: restorer(whole, optional) }
}

function refuseStrict(at: string, keyword: string, why: string): never {
  throw new CannotExpress(at, keyword, why)
}

class StrictConverter {
  /** Keywords that were moved into descriptions or dropped. */
  readonly dropped: { readonly at: string; readonly keyword: string }[] = []
  readonly definitions = new Map<string, JsonSchemaObject>()
  /** The members of converted objects that were optional and are nullable now. */
  readonly optional = new WeakMap<object, ReadonlySet<string>>()
  readonly #root: JsonSchemaObject
  readonly #names = new Map<string, string>()
  readonly #flatten: Flatten
  readonly #cycles: ReadonlySet<string>
  readonly #used = { schemas: 0, properties: 0, values: 0, characters: 0 }

  constructor(root: JsonSchemaObject, budget: WorkBudget) {
    this.#root = root
    this.#flatten = createFlatten(root, budget)
    this.#cycles = findCycles(root, budget)
  }

  convert(subschema: AnySchema, at: string, depth: number): JsonSchemaObject {
    // Limit the path length as well, because nested choices add no levels.
    if (depth > maxLevels || at.length > maxPlace) refuseStrict('', 'the schema', 'nests too deeply')
    this.#count('schemas', 1)
    if (!isRecord(subschema)) return refuseStrict(at, 'the schema', 'has no constraints')
    if (typeof subschema.$ref === 'string' && (this.#cycles.has(subschema.$ref) || isBare(subschema)))
      return this.#referred(subschema, at)
    const flat = this.#flatten(subschema, at)
    if (!isRecord(flat)) return refuseStrict(at, 'the schema', 'is a boolean schema')
    const unknown = undefinedType(flat)
    if (unknown !== undefined)
      refuseStrict(at, 'type', `names ${JSON.stringify(unknown)}, which is not a JSON Schema type`)
    for (const keyword of ['anyOf', 'oneOf'] as const)
      if (flat[keyword] !== undefined) return this.#choice(keyword, flat, at, depth)
    const values = listedValues(flat)
    return values ? this.#values(values, flat) : this.#typed(flat, at, depth)
  }

  /** Throws when a limit is exceeded. */
  #count(what: keyof typeof strictLimits, amount: number): void {
    const { max, problem } = strictLimits[what]
    this.#used[what] += amount
    if (this.#used[what] > max) refuseStrict('', 'the schema', problem)
  }

  #referred(subschema: JsonSchemaObject, at: string): JsonSchemaObject {
    if (!isBare(subschema)) refuseStrict(at, '$ref', 'is recursive and combined with other keywords')
    const reference = subschema.$ref as string
    if (reference === '#') return { $ref: '#' }
    let name = this.#names.get(reference)
    if (name === undefined) {
      name = this.#freshName(reference)
      this.#names.set(reference, name)
      // The depth count restarts in a definition, because definitions move to the root.
      const target = resolve(this.#root, reference, at)
      this.definitions.set(name, this.convert(target, reference.slice(1), 1))
    }
    return { $ref: `#/$defs/${name}` }
  }

  #freshName(reference: string): string {
    const taken = new Set(this.#names.values())
    const plain = (reference.split('/').at(-1) as string).replace(/[^A-Za-z0-9_-]/g, '_') || 'definition'
    let name = plain
    for (let number = taken.size + 1; taken.has(name); number++) name = `${plain}_${number}`
    return name
  }

  #choice(keyword: 'anyOf' | 'oneOf', schema: JsonSchemaObject, at: string, depth: number): JsonSchemaObject {
    const { [keyword]: options, title: _title, description, $defs: _defs, definitions: _old, ...beside } = schema
    const isAlone = Object.keys(beside).length === 0
    const branches = schemasIn(options).filter((branch) => branch !== false)
    const anyOf = branches.map((branch, index) => {
      const place = pointerStep(at, keyword, index)
      const inner = isRecord(branch) ? this.#flatten(branch, place) : branch
      return this.convert(isAlone ? branch : mergeSchemas(beside, inner, place), place, depth)
    })
    if (keyword === 'oneOf') this.dropped.push({ at, keyword })
    return { anyOf, ...strictDescription({ description }, {}) }
  }

  #values(list: readonly unknown[], schema: JsonSchemaObject): JsonSchemaObject {
    this.#count('values', list.length)
    for (const value of list) this.#count('characters', JSON.stringify(value).length)
    const types = [...new Set(list.map(jsonTypeOf))]
    return { type: types.length === 1 ? types[0] : types, enum: list, ...strictDescription(schema, {}) }
  }

  #typed(schema: JsonSchemaObject, at: string, depth: number): JsonSchemaObject {
    const types = schemaTypes(schema) ?? refuseStrict(at, 'type', 'is missing')
    const [only] = types
    if (types.length > 1 && types.some((type) => type === 'object' || type === 'array')) {
      return { anyOf: types.map((type) => this.#typed({ ...schema, type }, at, depth)) }
    }
    const { kept, moved } = sortKeywords(schema, types)
    for (const keyword of Object.keys(moved)) this.dropped.push({ at, keyword })
    const words = strictDescription(schema, moved)
    if (only === 'object') return this.#object(schema, at, depth, words)
    if (only !== 'array') return { type: types.length === 1 ? only : types, ...kept, ...words }
    if (!isSchema(schema.items) || schema.prefixItems !== undefined)
      refuseStrict(at, 'items', 'must be a single schema')
    const items = this.convert(schema.items as AnySchema, pointerStep(at, 'items'), depth + 1)
    return { type: 'array', items, ...kept, ...words }
  }

  #object(schema: JsonSchemaObject, at: string, depth: number, words: object): JsonSchemaObject {
    const { additionalProperties: others, unevaluatedProperties, patternProperties, propertyNames } = schema
    const isOpen = schema.properties === undefined && others !== false && unevaluatedProperties !== false
    if (isOpen || others === true || isRecord(others))
      refuseStrict(at, 'additionalProperties', 'allows unnamed members')
    if (patternProperties !== undefined) refuseStrict(at, 'patternProperties', 'allows unnamed members')
    if (propertyNames !== undefined) this.dropped.push({ at, keyword: 'propertyNames' })
    const required = new Set(strings(schema.required))
    const members = schemaEntries(schema.properties).filter(([name, member]) => member !== false || required.has(name))
    const missing = [...required].find((name) => !members.some(([known]) => known === name))
    if (missing !== undefined)
      refuseStrict(at, 'required', `requires ${JSON.stringify(missing)}, which is not in properties`)
    const added = new Set<string>()
    const converted = members.map(([name, member]) => {
      this.#count('properties', 1)
      this.#count('characters', name.length)
      const inner = this.convert(member, pointerStep(at, 'properties', name), depth + 1)
      const made = required.has(name) ? inner : nullable(inner)
      if (made !== inner) added.add(name)
      return [name, made]
    })
    const properties: object = Object.fromEntries(converted)
    const made = {
      type: 'object',
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
      ...words,
    }
    this.optional.set(made, added)
    return made
  }
}

/** Whether a schema with a `$ref` has no other constraints. */
const isBare = (schema: JsonSchemaObject): boolean => hasOnly(schema, '$ref')

const ofNumbers = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']

/** Keywords that strict mode supports, by type. */
const strictKeywords: Readonly<Record<string, readonly string[]>> = {
  string: ['pattern', 'format'],
  number: ofNumbers,
  integer: ofNumbers,
  array: ['minItems', 'maxItems'],
}

/** Keywords that move into the description where strict mode does not support them. */
const movable = new Set([
  ...Object.values(strictKeywords).flat(),
  ...['minLength', 'maxLength', 'minProperties', 'maxProperties'],
  ...['uniqueItems', 'contains', 'minContains', 'maxContains'],
  ...['not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'dependencies'],
])

const strictFormats = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'])

/** Separates the supported keywords from those that move into the description. */
function sortKeywords(schema: JsonSchemaObject, types: readonly string[]) {
  const sorted: Record<'kept' | 'moved', Record<string, unknown>> = { kept: {}, moved: {} }
  const stays = new Set(types.flatMap((type) => strictKeywords[type] ?? []))
  for (const [keyword, value] of Object.entries(schema)) {
    // Do not keep boolean flags from older drafts, or formats that strict mode does not support.
    const fits = typeof value !== 'boolean' && (keyword !== 'format' || strictFormats.has(value as string))
    if (stays.has(keyword) && fits) sorted.kept[keyword] = value
    else if (movable.has(keyword)) sorted.moved[keyword] = value
  }
  return sorted
}

/** The description, followed by the moved keywords. */
function strictDescription({ description }: JsonSchemaObject, moved: JsonSchemaObject): { description?: string } {
  const words = typeof description === 'string' && description !== '' ? [description] : []
  if (Object.keys(moved).length > 0) words.push(`It must also satisfy ${JSON.stringify(moved)}.`)
  return words.length === 0 ? {} : { description: words.join(' ') }
}

/** OpenAI's documented limits, and one for the work. */
const strictLimits = {
  schemas: { max: 20_000, problem: 'is too large' },
  properties: { max: 5_000, problem: 'has too many properties' },
  values: { max: 1_000, problem: 'lists too many values' },
  characters: { max: 120_000, problem: 'has names and values that are too long in total' },
}
const maxLevels = 10
const maxPlace = 4_096

function takesNull(schema: JsonSchemaObject): boolean {
  if (Array.isArray(schema.enum)) return schema.enum.includes(null)
  if ([schema.type].flat().includes('null')) return true
  return schemasIn(schema.anyOf).some((branch) => isRecord(branch) && takesNull(branch))
}

/** Extends a strict schema to allow null. */
function nullable(schema: JsonSchemaObject): JsonSchemaObject {
  if (takesNull(schema)) return schema
  const nothing = { type: 'null' }
  if (Array.isArray(schema.anyOf)) return { ...schema, anyOf: [...schema.anyOf, nothing] }
  const isScalar = schema.type !== undefined && schema.properties === undefined && schema.items === undefined
  if (!isScalar) return { anyOf: [schema, nothing] }
  const types = [schema.type].flat()
  return { ...schema, type: [...types, 'null'], ...(Array.isArray(schema.enum) && { enum: [...schema.enum, null] }) }
}

/** Removes the nulls that only the strict schema allows. `added` maps object schemas to the members with such nulls. */
function restorer(root: JsonSchemaObject, added: WeakMap<object, ReadonlySet<string>>) {
  const target = (schema: JsonSchemaObject): JsonSchemaObject =>
    typeof schema.$ref === 'string' ? (resolve(root, schema.$ref, '') as JsonSchemaObject) : schema

  /** Whether a value matches a branch in its types, listed values and member names. Branches differ only in these. */
  const fits = (schemaOrReference: JsonSchemaObject, value: unknown): boolean => {
    const schema = target(schemaOrReference)
    if (Array.isArray(schema.anyOf))
      return schemasIn(schema.anyOf).some((branch) => isRecord(branch) && fits(branch, value))
    if (Array.isArray(schema.enum)) return schema.enum.some((one) => JSON.stringify(one) === JSON.stringify(value))
    const types = declaredTypes(schema)
    if (types && !isOfType(value, types)) return false
    if (Array.isArray(value))
      return !isRecord(schema.items) || value.every((item) => fits(schema.items as JsonSchemaObject, item))
    if (!isRecord(value)) return true
    const members = new Map(schemaEntries(schema.properties))
    const entries = Object.entries(value)
    const fitsMember = ([name, inner]: readonly [string, unknown]) => {
      const member = members.get(name)
      return isRecord(member) && fits(member, inner)
    }
    return entries.length === members.size && entries.every(fitsMember)
  }

  /** The branch that matches the value; otherwise the only branch with the value's type, if there is exactly one. */
  const branchOf = (branches: readonly JsonSchemaObject[], value: unknown): JsonSchemaObject | undefined => {
    const fitting = branches.find((branch) => fits(branch, value))
    if (fitting) return fitting
    const [only, ...others] = branches.filter((branch) => isOfType(value, declaredTypes(target(branch)) ?? []))
    return others.length === 0 ? only : undefined
  }

  const restore = (schemaOrReference: JsonSchemaObject, value: unknown): unknown => {
    const schema = target(schemaOrReference)
    if (Array.isArray(schema.anyOf)) {
      const branch = branchOf(schemasIn(schema.anyOf).filter(isRecord), value)
      return branch ? restore(branch, value) : value
    }
    if (Array.isArray(value))
      return isRecord(schema.items) ? value.map((item) => restore(schema.items as JsonSchemaObject, item)) : value
    if (!isRecord(value) || !isRecord(schema.properties)) return value
    const members = new Map(schemaEntries(schema.properties))
    const kept = Object.entries(value).filter(([name, inner]) => inner !== null || !added.get(schema)?.has(name))
    const restoreMember = ([name, inner]: readonly [string, unknown]) => {
      const member = members.get(name)
      return [name, isRecord(member) ? restore(member, inner) : inner]
    }
    return Object.fromEntries(kept.map(restoreMember))
  }

  return (value: unknown): unknown => restore(root, value)
}
