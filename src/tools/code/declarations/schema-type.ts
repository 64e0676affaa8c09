import { isRecord } from '../../../lib/is-record.ts'
import { quoted } from '../text.ts'
import {
  all,
  atom,
  closed,
  intersection,
  listOf,
  literalType,
  remarks,
  type TextBudget,
  type ToolJsonSchema,
  type TypeText,
  union,
  unknownType,
} from './type-text.ts'

/** Deeper types are unreadable, and type parsers recurse. */
const deepest = 8
const maxValues = 50

/** The closest TypeScript type to a JSON Schema. Returns a valid type for any input. */
export function schemaType(schema: unknown, place: SchemaPosition): TypeText {
  if (schema === false) return atom('never')
  if (!isRecord(schema) || place.depth > deepest || place.allowance.spent) return unknownType
  place.allowance.spend(2)
  const inner = { ...place, depth: place.depth + 1 }
  const parts = [
    ...('$ref' in schema ? [referredType(schema.$ref, inner)] : []),
    valueType(schema, inner),
    ...(['anyOf', 'oneOf'] as const).flatMap((keyword) => choice(schema[keyword], inner)),
    ...each(schema.allOf, inner),
  ]
  const type = intersection(parts)
  return schema.nullable === true ? union([type, atom('null')]) : type
}

function referredType(reference: unknown, place: SchemaPosition): TypeText {
  if (typeof reference !== 'string' || place.through.includes(reference)) return unknownType
  return schemaType(referred(place.root, reference), { ...place, through: [...place.through, reference] })
}

/** The type without `$ref`, `anyOf`, `oneOf` and `allOf`. */
function valueType(schema: ToolJsonSchema, place: SchemaPosition): TypeText {
  const { allowance } = place
  if ('const' in schema) return constants([schema.const], allowance) ?? namedTypes(schema, place)
  const values = listOf(schema.enum)
  if (values.length > 0 && values.length <= maxValues) return constants(values, allowance) ?? namedTypes(schema, place)
  return namedTypes(schema, place)
}

function constants(values: readonly unknown[], allowance: TextBudget): TypeText | undefined {
  const types = all(values, (value) => literalType(value, allowance))
  return types && union(types.map(atom))
}

function namedTypes(schema: ToolJsonSchema, place: SchemaPosition): TypeText {
  const named = typeof schema.type === 'string' ? [schema.type] : listOf(schema.type).slice(0, 7)
  return union((named.length > 0 ? named : implied(schema)).map((name) => namedType(name, schema, place)))
}

/** Many schemas omit `type` where other keywords imply it. */
function implied(schema: ToolJsonSchema): readonly string[] {
  if (['properties', 'additionalProperties', 'patternProperties'].some((keyword) => keyword in schema))
    return ['object']
  return 'items' in schema || 'prefixItems' in schema ? ['array'] : []
}

function namedType(name: unknown, schema: ToolJsonSchema, place: SchemaPosition): TypeText {
  switch (name) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return atom(name)
    case 'integer':
      return atom('number')
    case 'object':
      return objectType(schema, place)
    case 'array':
      return arrayType(schema, place)
    default:
      return unknownType
  }
}

const choice = (schemas: unknown, place: SchemaPosition): TypeText[] =>
  Array.isArray(schemas) && schemas.length > 0 ? [union(each(schemas, place))] : []

function each(schemas: unknown, place: SchemaPosition): TypeText[] {
  const types: TypeText[] = []
  for (const schema of listOf(schemas)) {
    if (place.allowance.spent) return [...types, unknownType]
    types.push(schemaType(schema, place))
  }
  return types
}

export interface SchemaPosition {
  readonly root: unknown
  readonly allowance: TextBudget
  readonly depth: number
  /** The references followed so far, to detect cycles. */
  readonly through: readonly string[]
}

const maxTuple = 32

/** `string[]`, or a tuple if items have individual schemas (`prefixItems`, or `items` as a list in older drafts). */
function arrayType(schema: ToolJsonSchema, place: SchemaPosition): TypeText {
  const places = listOf(schema.prefixItems ?? schema.items).slice(0, maxTuple)
  if (places.length === 0) return atom(`${closed(schemaType(itemsOf(schema), place))}[]`)
  const needed = typeof schema.minItems === 'number' ? schema.minItems : 0
  const types = places.map((item, at) => `${closed(schemaType(item, place))}${at < needed ? '' : '?'}`)
  const rest = schema.prefixItems === undefined ? schema.additionalItems : schema.items
  return atom(`[${[...types, ...(rest === false ? [] : [`...${closed(schemaType(rest, place))}[]`])].join(', ')}]`)
}

/** An empty list of item schemas does not restrict the items. */
const itemsOf = ({ items }: ToolJsonSchema): unknown => (Array.isArray(items) ? true : items)

const maxKey = 200
const maxLine = 100

function objectType(schema: ToolJsonSchema, place: SchemaPosition): TypeText {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = new Set(listOf(schema.required).slice(0, 1000))
  const members: string[] = []
  const keys = place.allowance.keys(properties)
  for (const key of keys) {
    if (place.allowance.spent) break
    if (key.length <= maxKey) members.push(member(key, properties[key], required.has(key)))
  }
  const untold = keys.length - members.length
  if (untold > 0) members.push(`/* and ${untold} more */ [key: string]: unknown`)
  const rest = others(schema, place)
  if (keys.length === 0) return rest ?? atom(schema.additionalProperties === false ? '{}' : 'Record<string, unknown>')
  return intersection([atom(body(members)), ...(rest ? [rest] : [])])

  function member(key: string, value: unknown, needed: boolean): string {
    const comment = isRecord(value) ? remarks(value) : ''
    const name = `${propertyName(key)}${needed ? '' : '?'}`
    place.allowance.spend(name.length + comment.length + 4)
    const { text } = schemaType(value, place)
    return comment === '' ? `${name}: ${text}` : `/** ${comment} */\n${name}: ${text}`
  }
}

export const propertyName = (key: string): string => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key))

export function body(members: readonly string[]): string {
  const line = `{ ${members.join('; ')} }`
  if (line.length <= maxLine && !line.includes('\n')) return line
  return `{\n${members.map((text) => `  ${text.replaceAll('\n', '\n  ')};`).join('\n')}\n}`
}

function others(schema: ToolJsonSchema, place: SchemaPosition): TypeText | undefined {
  const patterns = isRecord(schema.patternProperties) ? schema.patternProperties : {}
  const types: TypeText[] = []
  for (const key of place.allowance.keys(patterns)) {
    if (place.allowance.spent) break
    types.push(schemaType(patterns[key], place))
  }
  if (isRecord(schema.additionalProperties)) types.push(schemaType(schema.additionalProperties, place))
  if (types.length === 0) return undefined
  return atom(`Record<string, ${union(types).text}>`)
}

const maxPointer = 1000

/** Resolves a `$ref` within its own document only. Never fetches or reads anything: the server would choose what. */
function referred(root: unknown, reference: string): unknown {
  if (reference.length > maxPointer) return undefined
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return undefined
  let place: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const key = decoded(part)?.replaceAll('~1', '/').replaceAll('~0', '~')
    if (key === undefined || typeof place !== 'object' || place === null || !Object.hasOwn(place, key)) return undefined
    place = (place as Record<string, unknown>)[key]
  }
  return place
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
