import type { Definition } from '../../../core/entry.ts'
import { requiredNames, withNumericBounds } from '../../../core/schema-keywords.ts'
import { resolveReference } from '../../../json/json-pointer.ts'
import { ExactNumber } from '../../../json/parse-json.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { commentText, quoteLiteral, visibleLine } from '../text.ts'

/** Max nesting depth for a type. Deeper types are hard to read and could overflow the stack of a type parser. */
const maxTypeDepth = 8
const maxLiterals = 50

/** The TypeScript type that is closest to a JSON Schema. Returns a valid type for any input. */
function schemaType(schema: unknown, position: SchemaPosition): TypeText {
  if (schema === false || (isRecord(schema) && isAnything(schema.not))) return atom('never')
  if (!isRecord(schema) || position.depth > maxTypeDepth || position.budget.spent) return unknownTypeText
  position.budget.spend(2)
  const inner = { ...position, depth: position.depth + 1 }
  const parts = [
    ...('$ref' in schema ? [referredType(schema.$ref, inner)] : []),
    valueType(schema, inner),
    ...(['anyOf', 'oneOf'] as const).flatMap((keyword) => choiceType(schema[keyword], inner)),
    ...typesOfEach(schema.allOf, inner),
  ]
  const type = intersection(parts)
  return schema.nullable === true ? union([type, atom('null')]) : type
}

const isAnything = (schema: unknown) => schema === true || (isRecord(schema) && Object.keys(schema).length === 0)

const maxReference = 1000

function referredType(reference: unknown, position: SchemaPosition): TypeText {
  if (typeof reference !== 'string' || reference.length > maxReference) return unknownTypeText
  if (position.through.includes(reference)) return unknownTypeText
  return schemaType(resolveReference(position.root, reference), {
    ...position,
    through: [...position.through, reference],
  })
}

/** The type of a schema, ignoring `$ref`, `anyOf`, `oneOf` and `allOf`. */
function valueType(schema: ToolJsonSchema, position: SchemaPosition): TypeText {
  const { budget } = position
  if ('const' in schema) return constants([schema.const], budget) ?? typesByName(schema, position)
  const values = listOrEmpty(schema.enum)
  const known = values.length > 0 ? constants(values.slice(0, maxLiterals), budget) : undefined
  if (known === undefined || values.length <= maxLiterals) return known ?? typesByName(schema, position)
  return atom(`(${known.text} | ${kindsOf(values)} /* one of ${values.length} values */)`)
}

/** The types of values, of which only some are listed. */
function kindsOf(values: readonly unknown[]): string {
  const kinds = new Set(values.map((value) => (value === null ? 'null' : typeof value)))
  return kinds.has('object') ? 'unknown' : [...kinds].join(' | ')
}

function constants(values: readonly unknown[], budget: TextBudget): TypeText | undefined {
  const types = completeTexts(values.map((value) => literalType(value, budget)))
  return types && union(types.map(atom))
}

function typesByName(schema: ToolJsonSchema, position: SchemaPosition): TypeText {
  const named = typeof schema.type === 'string' ? [schema.type] : listOrEmpty(schema.type).slice(0, 7)
  return union((named.length > 0 ? named : impliedTypes(schema)).map((name) => namedType(name, schema, position)))
}

/** The types that other keywords imply, for the many schemas that omit `type`. */
function impliedTypes(schema: ToolJsonSchema): readonly string[] {
  // `required: true`, a flag of draft 3 that is still in use, says nothing about the value's type.
  if (Array.isArray(schema.required)) return ['object']
  if (['properties', 'additionalProperties', 'patternProperties'].some((keyword) => keyword in schema))
    return ['object']
  return 'items' in schema || 'prefixItems' in schema ? ['array'] : []
}

const simpleTypes = new Map<unknown, string>([
  ...['string', 'number', 'boolean', 'null'].map((name) => [name, name] as const),
  ['integer', 'number'],
])

function namedType(name: unknown, schema: ToolJsonSchema, position: SchemaPosition): TypeText {
  if (name === 'object') return objectType(schema, position)
  if (name === 'array') return arrayType(schema, position)
  return atom(simpleTypes.get(name) ?? 'unknown')
}

const choiceType = (schemas: unknown, position: SchemaPosition): TypeText[] =>
  Array.isArray(schemas) && schemas.length > 0 ? [union(typesOfEach(schemas, position))] : []

function typesOfEach(schemas: unknown, position: SchemaPosition): TypeText[] {
  const types: TypeText[] = []
  for (const schema of listOrEmpty(schemas)) {
    if (position.budget.spent) return [...types, unknownTypeText]
    types.push(schemaType(schema, position))
  }
  return types
}

interface SchemaPosition {
  readonly root: unknown
  /** Whether the schema describes a result. Results contain their defaults, but arguments may omit them. */
  readonly isResult: boolean
  readonly budget: TextBudget
  readonly depth: number
  /** The references followed so far on the way to this schema, to detect cycles. */
  readonly through: readonly string[]
}

const maxTuple = 32

/** An array type, or a tuple if items have individual schemas (`prefixItems`, or a list in older drafts' `items`). */
function arrayType(schema: ToolJsonSchema, position: SchemaPosition): TypeText {
  const places = listOrEmpty(schema.prefixItems ?? schema.items).slice(0, maxTuple)
  if (places.length === 0) return atom(`${closedType(schemaType(itemsOf(schema), position))}[]`)
  const needed = typeof schema.minItems === 'number' ? schema.minItems : 0
  const types = places.map((item, at) => `${closedType(schemaType(item, position))}${at < needed ? '' : '?'}`)
  const rest = schema.prefixItems === undefined ? schema.additionalItems : schema.items
  return atom(
    `[${[...types, ...(rest === false ? [] : [`...${closedType(schemaType(rest, position))}[]`])].join(', ')}]`,
  )
}

/** The schema for all items. An empty list of item schemas does not restrict them. */
const itemsOf = ({ items }: ToolJsonSchema): unknown => (Array.isArray(items) ? true : items)

const maxPropertyKey = 200
const maxTypeLine = 100

function objectType(schema: ToolJsonSchema, position: SchemaPosition): TypeText {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = new Set((position.isResult ? listOrEmpty(schema.required) : requiredNames(schema)).slice(0, 1000))
  const members: string[] = []
  const undeclared = [...required].filter((name) => typeof name === 'string' && !Object.hasOwn(properties, name))
  const keys = [...position.budget.keys(properties), ...(undeclared as string[])]
  for (const key of keys) {
    if (position.budget.spent) break
    if (key.length <= maxPropertyKey) members.push(member(key, properties[key], required.has(key)))
  }
  const omitted = keys.length - members.length
  const rest = otherMembersType(schema, position)
  if (keys.length === 0) {
    if (rest) return atom(`Record<string, ${rest.text}>`)
    return atom(schema.additionalProperties === false ? '{}' : 'Record<string, unknown>')
  }
  // An index signature must accept the declared members too, so the type of the other members is a comment.
  if (omitted > 0) members.push(`/* and ${omitted} more */ [key: string]: unknown`)
  else if (rest) members.push(`${otherMembers(rest.text)}[key: string]: unknown`)
  return atom(typeBody(members))

  function member(key: string, value: unknown, needed: boolean): string {
    const comment = isRecord(value) ? schemaRemarks(value) : ''
    const name = `${propertyName(key)}${needed ? '' : '?'}`
    position.budget.spend(name.length + comment.length + 4)
    const { text } = schemaType(value, position)
    return comment === '' ? `${name}: ${text}` : `/** ${comment} */\n${name}: ${text}`
  }
}

const propertyName = (key: string): string => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : quoteLiteral(key))

function typeBody(members: readonly string[]): string {
  const line = `{ ${members.join('; ')} }`
  if (line.length <= maxTypeLine && !line.includes('\n')) return line
  return `{\n${members.map((text) => `  ${text.replaceAll('\n', '\n  ')};`).join('\n')}\n}`
}

function otherMembersType(schema: ToolJsonSchema, position: SchemaPosition): TypeText | undefined {
  const patterns = isRecord(schema.patternProperties) ? schema.patternProperties : {}
  const types: TypeText[] = []
  for (const key of position.budget.keys(patterns)) {
    if (position.budget.spent) break
    types.push(schemaType(patterns[key], position))
  }
  if (isRecord(schema.additionalProperties)) types.push(schemaType(schema.additionalProperties, position))
  return types.length === 0 ? undefined : union(types)
}

const otherMembers = (type: string) =>
  /\/\*|\*\//.test(type) || type.length > maxTypeLine ? '' : `/* others: ${type} */ `

const maxToolComment = 1000
/**
 * Maximum size of the result type, as a share of the budget. Argument types may use the full budget, because programs
 * must pass correct arguments.
 */
const resultShare = 0.4

interface Declared {
  /** The tool's name in programs. */
  readonly identifier: string
  readonly name: string
  readonly definition: Definition
}

export function toolDeclaration({ identifier, name, definition }: Declared, characters: number): string {
  const { description, inputSchema, outputSchema } = definition
  const args = declaredType(inputSchema, characters, false)
  const result = isRecord(outputSchema)
    ? declaredType(outputSchema, characters * resultShare, true)
    : 'any /* no outputSchema */'
  const exact = identifier === name ? [] : [`Exact name: ${quoteLiteral(name)}.`]
  const comment = commentText([...exact, description ?? ''].join(' '), maxToolComment)
  const signature = `${propertyName(identifier)}(args${needsSome([inputSchema], inputSchema) ? '' : '?'}: ${args}): Promise<${result}>`
  return comment === '' ? signature : `/** ${comment} */\n${signature}`
}

const declaredType = (schema: unknown, characters: number, isResult: boolean): string =>
  schemaType(schema, { root: schema, isResult, budget: createTextBudget(characters), depth: 0, through: [] }).text

/** Max schemas to look at. References may go in circles or double with each step. */
const maxRequiredSearch = 200

/** Whether one of the schemas requires a member, in itself or in the schemas that it refers to or combines. */
function needsSome(schemas: readonly unknown[], root: unknown, seen = { count: 0 }): boolean {
  return schemas.some((schema) => {
    if (!isRecord(schema) || ++seen.count > maxRequiredSearch) return false
    if (requiredNames(schema).length > 0) return true
    if (needsSome([resolveReference(root, schema.$ref), ...listOrEmpty(schema.allOf)], root, seen)) return true
    return [listOrEmpty(schema.anyOf), listOrEmpty(schema.oneOf)].some(
      (choice) => choice.length > 0 && choice.every((one) => needsSome([one], root, seen)),
    )
  })
}

export function declareServers(servers: ReadonlyMap<string, readonly string[]>): string {
  if (servers.size === 0) return ''
  const members = [...servers].map(([server, methods]) => `${propertyName(server)}: ${typeBody(methods)}`)
  return `declare const tools: ${typeBody(members)}`
}

/** The text of a type. `joined` means that it needs parentheses when combined with another type. */
interface TypeText {
  readonly text: string
  readonly joined: boolean
}

const atom = (text: string): TypeText => ({ text, joined: false })
const unknownTypeText = atom('unknown')

const closedType = ({ text, joined }: TypeText): string => (joined ? `(${text})` : text)

function union(types: readonly TypeText[]): TypeText {
  const different = distinct(types)
  if (different.length === 0 || different.some(({ text }) => text === 'unknown')) return unknownTypeText
  if (different.length === 1) return different[0] as TypeText
  return { text: different.map(closedType).join(' | '), joined: true }
}

function intersection(types: readonly TypeText[]): TypeText {
  const different = distinct(types).filter(({ text }) => text !== 'unknown')
  if (different.length <= 1) return different[0] ?? unknownTypeText
  return { text: different.map(closedType).join(' & '), joined: true }
}

const distinct = (types: readonly TypeText[]): readonly TypeText[] => [
  ...new Map(types.map((type) => [type.text, type])).values(),
]

type TextBudget = ReturnType<typeof createTextBudget>

/** Limits the work by the size of the output, because references can make a small schema expand without end. */
function createTextBudget(characters: number) {
  let left = characters
  return {
    get spent() {
      return left <= 0
    },
    spend(count: number): void {
      left -= count
    },
    /** The keys of an object. Reading the keys uses up budget even if they do not appear in the output. */
    keys(object: object): readonly string[] {
      const keys = Object.keys(object)
      left -= Math.min(keys.length / 10, 500)
      return keys
    },
  }
}

/** A JSON Schema from a server, not validated. */
type ToolJsonSchema = Readonly<Record<string, unknown>>

const listOrEmpty = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const maxString = 500
const maxLiteralDepth = 4

function literalType(value: unknown, budget: TextBudget, depth = 0): string | undefined {
  if (budget.spent || depth > maxLiteralDepth) return undefined
  const text = simpleLiteral(value)
  if (text !== undefined) {
    budget.spend(text.length)
    return text
  }
  if (Array.isArray(value)) {
    const items = completeTexts(value.map((item) => literalType(item, budget, depth + 1)))
    return items && `[${items.join(', ')}]`
  }
  if (typeof value !== 'object' || value === null) return undefined
  const texts = budget.keys(value).map((key) => {
    const type = literalType((value as Record<string, unknown>)[key], budget, depth + 1)
    return type && key.length <= maxString ? `${quoteLiteral(key)}: ${type}` : undefined
  })
  const members = completeTexts(texts)
  return members && (members.length === 0 ? '{}' : `{ ${members.join('; ')} }`)
}

function simpleLiteral(value: unknown): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value)
  // JSON.parse turns a number that is too large into Infinity, which is not a valid type.
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'number'
  if (value instanceof ExactNumber) return value.source.length <= maxFact ? value.source : 'number'
  return typeof value === 'string' && value.length <= maxString ? quoteLiteral(value) : undefined
}

/** The texts, if there is one for each value. */
const completeTexts = (texts: readonly (string | undefined)[]): readonly string[] | undefined =>
  texts.every((text) => text !== undefined) ? texts : undefined

const maxRemark = 300
const maxFact = 60

/** The parts of a schema that a type cannot express (description, format, bounds, default), for a comment. */
function schemaRemarks(given: ToolJsonSchema): string {
  const schema = withNumericBounds(given)
  const description = visibleLine(schema.description ?? schema.title, maxRemark)
  const facts = factWords.flatMap(([keyword, word]) => factOf(schema[keyword], word))
  if ('default' in schema) facts.push(`default ${defaultOf(schema.default)}`)
  return commentText([description, facts.join(', ')].filter((part) => part !== '').join(' — '), 2 * maxRemark)
}

const factWords = [
  ['format', 'format'],
  ['pattern', 'pattern'],
  ['minimum', 'at least'],
  ['maximum', 'at most'],
  ['exclusiveMinimum', 'more than'],
  ['exclusiveMaximum', 'less than'],
  ['multipleOf', 'multiple of'],
  ['minLength', 'min length'],
  ['maxLength', 'max length'],
  ['minItems', 'min items'],
  ['maxItems', 'max items'],
] as const

function factOf(value: unknown, word: string): string[] {
  const text = value instanceof ExactNumber ? value.source : value
  return typeof text === 'string' || typeof text === 'number' ? [`${word} ${visibleLine(String(text), maxFact)}`] : []
}

function defaultOf(value: unknown): string {
  if (typeof value === 'string') return visibleLine(quoteLiteral(value.slice(0, maxFact)), maxFact)
  if (value instanceof ExactNumber) return visibleLine(value.source, maxFact)
  if (Array.isArray(value)) return value.length === 0 ? '[]' : '[…]'
  return typeof value === 'object' && value !== null ? '{…}' : String(value)
}
