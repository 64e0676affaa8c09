import { asRecord, isRecord } from '../lib/is-record.ts'
import { memoizeByObject } from '../lib/memoize.ts'

/** An argument that must be repeated in a header, because the tool's schema requires it. */
export interface ParamHeader {
  /** The full header name in lower case. */
  readonly header: string
  readonly path: readonly string[]
  readonly type: string
}

type Schema = Readonly<Record<string, unknown>>

const annotation = 'x-mcp-header'
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const allowedTypes = new Set<unknown>(['string', 'integer', 'boolean'])

/** Keywords whose subschemas have no fixed path, so that header annotations are not allowed in them. */
const single = [
  ...['items', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems', 'propertyNames'],
  ...['not', 'if', 'then', 'else'],
]
const several = ['prefixItems', 'items', 'oneOf', 'anyOf', 'allOf']
const named = ['patternProperties', 'dependentSchemas', '$defs', 'definitions']

/** The headers for these arguments. Null and missing arguments have no header. */
export function paramHeaders(inputSchema: unknown, args: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { header, path } of declaredParamHeaders(inputSchema)) {
    const text = headerText(valueAt(args, path))
    if (text !== undefined) headers[header] = encodeHeaderValue(text)
  }
  return headers
}

/** What is wrong with a schema's header annotations, if anything. Invalid ones rule out calls over HTTP. */
export const invalidParamHeaders = (inputSchema: unknown): string | undefined => survey(inputSchema).fault

/** A schema's header annotations; empty if they are invalid. */
export const declaredParamHeaders = (inputSchema: unknown): readonly ParamHeader[] => survey(inputSchema).declared

/** An argument as header text; undefined if a header cannot express it. */
export function headerText(value: unknown): string | undefined {
  if (typeof value === 'string' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'number' || (Number.isInteger(value) && !Number.isSafeInteger(value))) return undefined
  return String(value)
}

/** The argument at a path of property names, if there is one. */
export function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const key of path) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

interface Survey {
  readonly declared: readonly ParamHeader[]
  readonly fault?: string
}

const survey = (inputSchema: unknown): Survey => (isRecord(inputSchema) ? surveySchema(inputSchema) : { declared: [] })

/** The annotations found in a schema, cached because each call needs them. */
const surveySchema = memoizeByObject((inputSchema: object): Survey => {
  const declared = new Map<string, ParamHeader>()
  const fault = visit(inputSchema, [], true, declared)
  return fault === undefined ? { declared: [...declared.values()] } : { declared: [], fault }
})

/** Collects a schema's header annotations; returns the first error. */
function visit(
  schema: unknown,
  path: readonly string[],
  reachable: boolean,
  declared: Map<string, ParamHeader>,
): string | undefined {
  if (!isRecord(schema)) return undefined
  let fault = Object.hasOwn(schema, annotation) ? declare(schema, path, reachable, declared) : undefined
  for (const [key, inner] of Object.entries(asRecord(schema.properties)))
    fault ??= visit(inner, [...path, key], reachable, declared)
  for (const [key, inner] of unreachable(schema)) fault ??= visit(inner, [...path, `<${key}>`], false, declared)
  return fault
}

function declare(schema: Schema, path: readonly string[], reachable: boolean, declared: Map<string, ParamHeader>) {
  const name = schema[annotation]
  const place = path.length === 0 ? 'the root' : path.join('.')
  if (!reachable || path.length === 0) return `${place}: ${annotation} is only allowed on a property with a fixed path`
  if (typeof name !== 'string' || !token.test(name)) return `${place}: ${annotation} must be a header name`
  if (!allowedTypes.has(schema.type)) return `${place}: ${annotation} needs the type string, integer or boolean`
  const header = `mcp-param-${name.toLowerCase()}`
  if (declared.has(header)) return `${place}: ${annotation} "${name}" is used twice`
  declared.set(header, { header, path, type: schema.type as string })
  return undefined
}

function* unreachable(schema: Schema): Generator<readonly [key: string, inner: unknown]> {
  for (const key of single) yield [key, schema[key]]
  for (const key of several) {
    const inner = schema[key]
    if (Array.isArray(inner)) for (const each of inner) yield [key, each]
  }
  for (const key of named) for (const inner of Object.values(asRecord(schema[key]))) yield [key, inner]
}

const prefix = '=?base64?'
const suffix = '?='

/** Matches text that needs no encoding: printable ASCII and tabs, not empty, without surrounding white space. */
const plain = /^(?![\t ])[\t\x20-\x7e]+(?<![\t ])$/
const canonical = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Encodes text for a header: unchanged if that is safe, otherwise in the base64 form that the protocol defines. */
export const encodeHeaderValue = (text: string): string =>
  plain.test(text) && !isWrapped(text) ? text : `${prefix}${Buffer.from(text).toString('base64')}${suffix}`

/** Decodes a header value; undefined if it is malformed. */
export function decodeHeaderValue(value: string): string | undefined {
  const given = value.replace(/^[\t ]+/, '').trimEnd()
  if (!isWrapped(given)) return /^[\t\x20-\x7e]*$/.test(given) ? given : undefined
  const base64 = given.slice(prefix.length, -suffix.length)
  if (!canonical.test(base64)) return undefined
  const bytes = Buffer.from(base64, 'base64')
  const text = bytes.toString('utf8')
  // Reject nonzero padding bits and invalid UTF-8, which would allow two encodings of the same text.
  return bytes.toString('base64') === base64 && Buffer.from(text).equals(bytes) ? text : undefined
}

const isWrapped = (text: string): boolean =>
  text.length >= prefix.length + suffix.length && text.startsWith(prefix) && text.endsWith(suffix)
