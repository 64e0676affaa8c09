import { text } from 'node:stream/consumers'
import { ToolwayError } from '../core/errors.ts'
import { composedSchemas, requiredNames, schemasAt } from '../core/schema-keywords.ts'
import { Json } from '../json/json.ts'
import { parseExactly } from '../json/parse-json.ts'
import { isRecord } from '../lib/is-record.ts'
import { readNamedFile, type Shell, UsageError } from './kit.ts'

const invalid = (message: string) => new ToolwayError('INVALID_ARGUMENTS', message)

function fromJson(key: string, text: string): unknown {
  try {
    return parseExactly(text)
  } catch (error) {
    throw invalid(`The value of "${key}" is not valid JSON: ${(error as Error).message}. Quote it for your shell.`)
  }
}

const numeral = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

/** Converts text to the first accepted type that it matches, unless strings are accepted or the types are unknown. */
function typed(key: string, text: string, accepted: ReadonlySet<string>): unknown {
  if (accepted.size === 0 || accepted.has('string')) return text
  if (accepted.has('null') && text === 'null') return null
  if (accepted.has('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  const number = numeral.test(text) ? Number(text) : Number.NaN
  if (accepted.has('number') && Number.isFinite(number)) return exactly(text, number)
  if (accepted.has('integer') && Number.isInteger(number)) return exactly(text, number)
  if (accepted.has('object') && text.trimStart().startsWith('{')) return fromJson(key, text)
  const wanted = [...accepted].map((type) =>
    type === 'boolean' ? 'true or false' : type === 'object' ? 'a JSON object' : type,
  )
  throw invalid(`"${key}" must be ${wanted.join(' or ')}, not "${text}".`)
}

/** The number with all the digits that the user wrote, if a double would round it. */
const exactly = (text: string, number: number): unknown => {
  try {
    return parseExactly(text)
  } catch {
    return number
  }
}

type Arguments = Json<Record<string, unknown>>

/** Splits `key=value` or `key:=json` at the first `=`. */
function split(argument: string) {
  const at = argument.indexOf('=')
  const json = argument[at - 1] === ':'
  const key = argument.slice(0, json ? at - 1 : at)
  if (at < 0 || key === '') {
    throw invalid(`"${argument}" is not of the form key=value (or key:=json). A whole JSON object goes into --args.`)
  }
  return { key, text: argument.slice(at + 1), json }
}

/**
 * Builds a tool's arguments from `key=value` words, converted to the types in its input schema: `key:=json` forces
 * JSON, and an array may be passed as JSON or by repeating the key. Words take precedence over `base`.
 */
export function readArguments(
  words: readonly string[],
  schema: InputSchema | undefined,
  base: Arguments = Json.of({}),
): Arguments {
  if (words.length === 0) return base
  const values = [...Map.groupBy(words.map(split), ({ key }) => key)].map(([key, pairs]): [string, unknown] => {
    const property = acceptedBy(schema, key)
    const first = pairs[0]!
    if (pairs.length === 1 && first.json) return [key, fromJson(key, first.text)]
    if (property.types.has('array') && !property.types.has('string')) {
      if (pairs.length === 1 && first.text.trimStart().startsWith('[')) return [key, fromJson(key, first.text)]
      return [key, pairs.map(({ text, json }) => (json ? fromJson(key, text) : typed(key, text, property.items)))]
    }
    if (pairs.length > 1) throw invalid(`"${key}" occurs ${pairs.length} times, but it is not a list.`)
    return [key, typed(key, first.text, property.types)]
  })
  const whole = Object.fromEntries([...Object.entries(base.exact), ...values])
  // Parse the combined text again, so that numbers keep all their digits.
  return Json.raw(Buffer.from(JSON.stringify(whole)))
}

/** Reads `--args`: a JSON object, `@file`, or `-` for stdin. Numbers keep all their digits. */
export async function argumentsOption(option: string | undefined, shell: Shell): Promise<Arguments> {
  if (option === undefined) return Json.of({})
  const json = parse(await source(option, shell))
  if (isRecord(json.value)) return json as Arguments
  throw new UsageError('--args must be a JSON object, such as {"path": "notes.txt"}.')
}

async function source(option: string, shell: Shell): Promise<string> {
  if (option === '-') return text(shell.stdin)
  return option.startsWith('@') ? readNamedFile(option.slice(1), shell) : option
}

function parse(json: string): Json {
  try {
    return Json.parse(json)
  } catch (error) {
    throw new UsageError(
      `--args is not valid JSON: ${(error as Error).message}.`,
      'Quote it for your shell, or use --args @file.',
    )
  }
}

type InputSchema = Readonly<Record<string, unknown>>

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

const typesOf = (schemas: readonly InputSchema[]): ReadonlySet<string> =>
  new Set(
    // In the order in which the schema lists them.
    schemas.toReversed().flatMap(({ type, enum: options, const: only }) => {
      if (typeof type === 'string') return [type]
      if (Array.isArray(type)) return type.map(String)
      return [...(Array.isArray(options) ? options : []), ...(only === undefined ? [] : [only])].map(typeOf)
    }),
  )

/** The JSON types that an argument and its elements may have; empty if the schema does not say. */
function acceptedBy(
  root: InputSchema | undefined,
  key: string,
): { types: ReadonlySet<string>; items: ReadonlySet<string> } {
  if (root === undefined) return { types: new Set(), items: new Set() }
  const property = composedSchemas(schemasAt([root], key, root), root)
  return { types: typesOf(property), items: typesOf(composedSchemas(schemasAt(property, undefined, root), root)) }
}

/** A tool's arguments, for display. */
export function properties(root: InputSchema | undefined) {
  if (root === undefined || !isRecord(root.properties)) return []
  const required = requiredNames(root)
  return Object.entries(root.properties).map(([name, property]) => {
    const { types, items } = acceptedBy(root, name)
    const options = isRecord(property) && Array.isArray(property.enum) ? property.enum.map(String) : undefined
    const description = isRecord(property) && typeof property.description === 'string' ? property.description : ''
    const type = [...types].map((type) => (type === 'array' && items.size > 0 ? `${[...items].join('|')}[]` : type))
    return { name, type: (options ?? type).join('|'), required: required.includes(name), description }
  })
}
