import * as z from 'zod'
import { invalidArguments, type ToolwayError } from '../core/errors.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import { quote, shorten, thrownText } from '../lib/message-text.ts'
import { nearMiss } from '../lib/similar-text.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** The common interface of Zod, Valibot, ArkType and others (standardschema.dev). */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardOutcome<Output> | Promise<StandardOutcome<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type StandardOutcome<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export type ToolSchema = StandardSchema | JsonSchema

export type OutputOf<Schema> =
  Schema extends StandardSchema<unknown, infer Output> ? Output : Readonly<Record<string, unknown>>

export type InputOf<Schema> = Schema extends StandardSchema<infer Input, unknown> ? Input : object

export interface CompiledSchema {
  readonly json: JsonSchema
  /** Parses the value or explains why it does not fit. Absent for JSON Schema, which the pipeline checks. */
  read?(value: unknown): SchemaReading
}

type SchemaReading = SchemaOutcome | Promise<SchemaOutcome>
type SchemaOutcome = { readonly value: unknown } | { readonly refusal: ToolwayError }

/** Compiles a schema for an object; throws a TypeError for other schemas. `io` selects the type that clients see. */
export function compileSchema(schema: ToolSchema, tool: string, io: 'input' | 'output'): CompiledSchema {
  try {
    return compileAny(schema, tool, io)
  } catch (thrown) {
    if (thrown instanceof TypeError) throw thrown
    const reason = thrownText(thrown)
    throw new TypeError(`The ${io}Schema of the tool "${tool}" cannot be written as JSON Schema: ${reason}.`)
  }
}

function compileAny(schema: ToolSchema, tool: string, io: 'input' | 'output'): CompiledSchema {
  if (schema instanceof z.ZodObject) return byZod(schema, tool, io)
  // Some libraries make functions that are schemas.
  if (Object(schema) !== schema) throw new TypeError(`The ${io}Schema of the tool "${tool}" must be a schema.`)
  const standard = '~standard' in schema ? (schema as StandardSchema) : undefined
  const json = standard ? standardJson(standard, io) : (schema as JsonSchema)
  if (json.type !== 'object')
    throw new TypeError(`The ${io}Schema of the tool "${tool}" must describe an object: { type: 'object', … }.`)
  if (!standard) return { json }
  const refuse = (issues: readonly StandardIssue[]) => argumentsRefused(tool, standardProblems(issues))
  return { json, read: (value) => validateStandard(standard, value, refuse) }
}

/** Converted schemas. Most schemas are constants, and every reload compiles the tools again. */
const zodSchemas = {
  input: memoizeByObject((given: z.ZodObject) => {
    const schema = strictObject(given)
    return { schema, json: zodJson(schema, 'input') }
  }),
  output: memoizeByObject((schema: z.ZodObject) => ({ schema, json: zodJson(schema, 'output') })),
}

function byZod(given: z.ZodObject, tool: string, io: 'input' | 'output'): CompiledSchema {
  const { schema, json } = zodSchemas[io](given)
  const read = (value: unknown): SchemaReading =>
    validateStandard(schema as StandardSchema, value, (found) => {
      const issues = found as readonly SchemaIssue[]
      const rest = io === 'input' && withoutRefusedNulls(value, issues, json)
      return rest ? read(rest) : argumentsRefused(tool, zodProblems(issues, json, value))
    })
  return { json, read }
}

/**
 * Validates synchronously where possible, also with Zod: its exception for asynchronous schemas cannot be recognized
 * here, because the program may have another copy of Zod.
 */
function validateStandard(
  schema: StandardSchema,
  value: unknown,
  refuse: (issues: readonly StandardIssue[]) => SchemaReading,
): SchemaReading {
  const read = (outcome: StandardOutcome<unknown>) =>
    outcome.issues === undefined ? { value: outcome.value } : refuse(outcome.issues)
  const outcome = schema['~standard'].validate(value)
  return outcome instanceof Promise ? outcome.then(read) : read(outcome)
}

/** The arguments without optional ones that may not be null: many models send null for what they leave out. */
function withoutRefusedNulls(
  given: unknown,
  issues: readonly SchemaIssue[],
  { required }: JsonSchema,
): object | undefined {
  const refused = issues.flatMap(({ path }) => (path.length === 1 && valueAtPath(given, path) === null ? path : []))
  const names = refused.filter((name) => !(required as readonly PropertyKey[] | undefined)?.includes(name))
  if (names.length === 0) return undefined
  return Object.fromEntries(Object.entries(given as object).filter(([name]) => !names.includes(name)))
}

/** Rejects unknown fields, so that a misspelt field is not silently dropped, unless the schema has a catchall. */
const strictObject = (input: z.ZodObject): z.ZodObject => (input.def.catchall === undefined ? input.strict() : input)

/** Converts a Zod schema. Omits `$schema`: the protocol defaults to that draft, and some clients fail on the field. */
function zodJson(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12', override: withoutNoise })
  return rest
}

/** Removes the safe-integer bounds that Zod adds to every integer: in a schema, these bounds only cost tokens. */
function withoutNoise({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }) {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

/** Converts a schema with its library's own JSON Schema export. If there is none, clients only see `type: object`. */
function standardJson(schema: StandardSchema, io: 'input' | 'output'): JsonSchema {
  if ('_zod' in schema) return zodJson(schema as unknown as z.ZodType, io)
  const target = 'draft-2020-12'
  const { jsonSchema } = schema['~standard'] as { jsonSchema?: Record<typeof io, (options: object) => JsonSchema> }
  const { toJsonSchema } = schema as { toJsonSchema?: () => JsonSchema }
  const written = jsonSchema?.[io]({ target }) ?? (typeof toJsonSchema === 'function' ? toJsonSchema.call(schema) : {})
  const { $schema, ...rest } = written
  return { type: 'object', ...rest }
}

function standardProblems(issues: readonly StandardIssue[]): readonly string[] {
  return issues.slice(0, maxArgumentProblems).map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    return `${keys.length === 0 ? '' : `"${keys.join('.')}": `}${message.slice(0, 200)}`
  })
}

type SchemaIssue = z.core.$ZodIssue
type IssuePath = readonly PropertyKey[]

const maxArgumentProblems = 5

const argumentsRefused = (tool: string, problems: readonly string[]) => ({
  refusal: invalidArguments(`Invalid arguments for ${tool}: ${problems.join('; ')}.`),
})

/** What is wrong with arguments. For each field, it says what was expected and what was given. */
function zodProblems(issues: readonly SchemaIssue[], schema: JsonSchema, given: unknown): readonly string[] {
  const problems = issues
    .slice(0, maxArgumentProblems)
    .map((issue) => issueText(issue, schema, valueAtPath(given, issue.path)))
  const omitted = issues.length - problems.length
  return omitted > 0 ? [...problems, `and ${omitted} more`] : problems
}

function issueText(issue: SchemaIssue, schema: JsonSchema, given: unknown): string {
  const field = issue.path.length === 0 ? 'the whole input' : `"${spellPath(issue.path)}"`
  const wanted = expectedText(issue)
  if (issue.code === 'unrecognized_keys') return unknownFields(issue.path, issue.keys, schema)
  if (given === undefined) return `${field} is missing${wanted === undefined ? '' : ` and must be ${wanted}`}`
  if (wanted === undefined) return `${field}: ${issue.message}`
  return `${field} must be ${wanted}${contrast(issue, given)}`
}

function expectedText(issue: SchemaIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return valueKinds[issue.expected] ?? issue.expected
    case 'invalid_value':
      return issue.values.length > 1 ? `one of ${issue.values.map(String).join(', ')}` : JSON.stringify(issue.values[0])
    case 'too_small':
      return `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${sizeUnits[issue.origin] ?? ''}`
    case 'too_big':
      return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${sizeUnits[issue.origin] ?? ''}`
    case 'invalid_union': {
      const wanted = issue.errors.flatMap((errors) => errors.slice(0, 1).map(expectedText))
      return wanted.length === 0 || wanted.includes(undefined) ? undefined : [...new Set(wanted)].join(' or ')
    }
    default:
      return undefined
  }
}

/**
 * Describes how the given value differs, for an error message. Quotes the value only if it is a string that should be
 * one of an enumeration, or a number that should be whole: any other value may be a secret.
 */
function contrast(issue: SchemaIssue, given: unknown): string {
  if (issue.code === 'invalid_value' && typeof given === 'string') {
    const near = nearMiss(given, issue.values.map(String))
    return `, not ${quote(given, 40)}${near === undefined ? '' : ` (did you mean "${near}"?)`}`
  }
  if (issue.code === 'invalid_type' && issue.expected === 'int' && typeof given === 'number') return `, not ${given}`
  if (issue.code === 'too_small' || issue.code === 'too_big') return ''
  return `, not ${given === null ? 'null' : (valueKinds[Array.isArray(given) ? 'array' : typeof given] ?? typeof given)}`
}

const valueKinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'a boolean',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

const sizeUnits: Readonly<Record<string, string>> = { string: ' characters long', array: ' items long' }

function unknownFields(path: IssuePath, keys: readonly string[], schema: JsonSchema): string {
  const known = Object.keys((schemaAt(schema, path)?.properties as object | undefined) ?? {})
  const takes = known.length === 0 ? 'no fields are allowed' : `known fields: ${known.join(', ')}`
  return keys
    .slice(0, maxArgumentProblems)
    .map((key) => {
      const near = nearMiss(key, known)
      return `"${spellPath([...path, shorten(key, 40)])}" is unknown (${near === undefined ? takes : `did you mean "${near}"?`})`
    })
    .join('; ')
}

/** Formats a path like `calls[0].server`. */
const spellPath = (path: IssuePath) =>
  path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index > 0 ? '.' : ''}${String(step)}`))
    .join('')

const valueAtPath = (value: unknown, path: IssuePath): unknown =>
  path.reduce<unknown>((inner, step) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[step], value)

const schemaAt = (schema: JsonSchema, path: IssuePath) =>
  path.reduce<JsonSchema | undefined>((inner, step) => {
    if (typeof step === 'number') return inner?.items as JsonSchema | undefined
    return (inner?.properties as Record<PropertyKey, JsonSchema> | undefined)?.[step]
  }, schema)
