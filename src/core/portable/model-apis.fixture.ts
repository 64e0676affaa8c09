import { isRecord } from '../../lib/is-record.ts'
import type { Definition } from '../entry.ts'

/**
 * What the model APIs refuse in the definition of a tool, from their documentation and from the error messages in
 * public issues. One refused definition fails the whole request. Where versions of an API differ, the strictest counts.
 */
export type ModelApi = 'openai' | 'openai-strict' | 'gemini' | 'vertex' | 'anthropic'

interface ApiRules {
  readonly toolName: RegExp
  readonly memberName: RegExp
  /** Members of a schema. Undefined if unknown ones are ignored. */
  readonly keywords?: ReadonlySet<string>
  readonly refused: ReadonlySet<string>
  readonly refusedAtRoot: ReadonlySet<string>
  /** Formats by type. Undefined if all are accepted. */
  readonly formats?: Readonly<Record<string, readonly string[]>>
  readonly maxDescription?: number
  readonly maxLevels?: number
  readonly maxEnumValues?: number
  /** Enums only of texts, one type for each schema, members for each object: a protocol buffer with fixed fields. */
  readonly isProtocolBuffer?: true
  /** Nothing beside `anyOf`. */
  readonly onlyAnyOf?: true
  readonly needsItems?: true
  readonly needsProperties?: true
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' ').filter(Boolean))

// `Schema` of generativelanguage v1beta: "Unknown name …: Cannot find field." Some versions lack the rest of its fields.
const geminiFields = words(
  'type format description nullable enum items minItems maxItems properties required anyOf minimum maximum',
)
// "only 'enum' and 'date-time' are supported for STRING type" (gemini-cli 2141, 3178).
const geminiFormats = {
  string: ['enum', 'date-time'],
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
}
// "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth." (gemini-cli 5923)
const gemini: ApiRules = {
  // "Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores, dots and dashes …"
  toolName: /^[A-Za-z_][\w.-]{0,63}$/,
  memberName: /^[A-Za-z_]\w{0,63}$/,
  keywords: geminiFields,
  refused: words(''),
  refusedAtRoot: words(''),
  formats: geminiFormats,
  maxLevels: 5,
  isProtocolBuffer: true,
  // "parameters.properties: should be non-empty for OBJECT type", "items: missing field"
  needsItems: true,
  needsProperties: true,
}

export const modelApis: Readonly<Record<ModelApi, ApiRules>> = {
  openai: {
    toolName: /^[\w-]{1,64}$/,
    memberName: /^/,
    refused: words(''),
    // "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"
    refusedAtRoot: words('oneOf anyOf allOf enum not'),
    // "string too long. Expected a string with maximum length 1024"
    maxDescription: 1_024,
    // "array schema missing items", "object schema missing properties"
    needsItems: true,
    needsProperties: true,
  },
  // The keywords of structured outputs. Fine-tuned models refuse the bounds of texts, numbers and arrays as well.
  'openai-strict': {
    toolName: /^[\w-]{1,64}$/,
    memberName: /^/,
    keywords: words('type description properties required items enum anyOf format title $ref $defs const nullable'),
    refused: words('allOf oneOf not if then else dependentRequired dependentSchemas patternProperties default'),
    refusedAtRoot: words('oneOf anyOf allOf enum not'),
    formats: { string: 'date-time time date duration email hostname ipv4 ipv6 uuid'.split(' ') },
    maxDescription: 1_024,
    maxLevels: 5,
    maxEnumValues: 500,
    needsItems: true,
    needsProperties: true,
  },
  gemini,
  // "When using any_of, it must be the only field set."
  vertex: { ...gemini, onlyAnyOf: true },
  anthropic: {
    toolName: /^[\w-]{1,64}$/,
    // "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
    memberName: /^[\w.-]{1,64}$/,
    refused: words('$ref'),
    // "input_schema does not support oneOf, allOf, or anyOf at the top level"
    refusedAtRoot: words('oneOf allOf anyOf'),
  },
}

const schemaTypes = words('array boolean integer number object string')

/** Why an API would refuse the definition of a tool; empty if it accepts it. */
export function refusals(api: ModelApi, { name, description = '', inputSchema }: Definition): readonly string[] {
  const rules = modelApis[api]
  const found: string[] = []
  if (!rules.toolName.test(String(name))) found.push(`name: ${String(name)}`)
  if (rules.maxDescription !== undefined && description.length > rules.maxDescription)
    found.push('description too long')
  if (!isRecord(inputSchema) || inputSchema.type !== 'object') found.push('the root is not an object')
  for (const keyword of Object.keys(inputSchema ?? {}))
    if (rules.refusedAtRoot.has(keyword)) found.push(`${keyword} at the root`)
  if (isRecord(inputSchema)) visit(inputSchema, rules, 1, found)
  return [...new Set(found)]
}

function visit(schema: unknown, rules: ApiRules, level: number, found: string[]): void {
  if (!isRecord(schema)) {
    if (rules.isProtocolBuffer || rules.keywords) found.push('a schema that is not an object')
    return
  }
  const refuse = (reason: string) => found.push(reason)
  for (const keyword of Object.keys(schema))
    if (rules.refused.has(keyword) || rules.keywords?.has(keyword) === false) refuse(keyword)
  const { type, format, enum: values, properties, required, items, anyOf, ...others } = schema
  if (rules.maxLevels !== undefined && level > rules.maxLevels) refuse('nested too deeply')
  if (rules.onlyAnyOf && anyOf !== undefined && Object.keys(schema).length > 1) refuse('fields beside anyOf')
  checkValues(schema, rules, refuse)
  if (rules.formats && format !== undefined && !rules.formats[String(type)]?.includes(String(format)))
    refuse(`format ${String(format)}`)
  if (rules.needsItems && type === 'array' && items === undefined) refuse('array without items')
  const members = isRecord(properties) ? properties : {}
  if (rules.needsProperties && type === 'object' && properties === undefined) refuse('object without properties')
  if (rules.isProtocolBuffer && type === 'object' && Object.keys(members).length === 0) refuse('empty properties')
  if (rules.isProtocolBuffer && Array.isArray(required))
    for (const name of required) if (!Object.hasOwn(members, String(name))) refuse('required without property')
  for (const [name, member] of Object.entries(members)) {
    if (!rules.memberName.test(name)) refuse(`property name: ${name}`)
    visit(member, rules, level + (isContainer(member) ? 1 : 0), found)
  }
  for (const inner of [items, anyOf].flat()) {
    if (inner !== undefined) visit(inner, rules, level + (isContainer(inner) ? 1 : 0), found)
  }
  for (const keyword of ['allOf', 'oneOf', 'prefixItems']) {
    const parts = others[keyword]
    if (Array.isArray(parts)) for (const part of parts) visit(part, rules, level, found)
  }
}

const isContainer = (schema: unknown): boolean =>
  isRecord(schema) && (schema.type === 'object' || schema.type === 'array')

function checkValues(
  { type, enum: values, anyOf }: Record<string, unknown>,
  rules: ApiRules,
  refuse: (reason: string) => void,
) {
  if (rules.isProtocolBuffer) {
    // "Proto field is not repeating, cannot start list", and types that are missing or unknown.
    if (anyOf === undefined && !schemaTypes.has(String(type))) refuse(`type ${JSON.stringify(type)}`)
    if (Array.isArray(type)) refuse('list of types')
    // "enum: only allowed for STRING type", "enum[0]: cannot be empty", "(TYPE_STRING), 2"
    if (values !== undefined && type !== 'string') refuse('enum of a type other than string')
    if (Array.isArray(values) && values.some((value) => typeof value !== 'string'))
      refuse('enum with other values than texts')
    if (Array.isArray(values) && values.includes('')) refuse('empty text in enum')
  }
  if (Array.isArray(values) && values.length > (rules.maxEnumValues ?? Number.POSITIVE_INFINITY))
    refuse('enum too long')
}
