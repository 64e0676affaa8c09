import { ExactNumber } from '../format/exact-json.ts'
import { type Field, fieldOf } from './field.ts'
import { memberOf, type Path, pathText } from './path.ts'
import { isObject, type Schema } from './schema.ts'
import type { Variant } from './variants.ts'

export interface Problem {
  /** The path of the value, as text. */
  readonly place: string
  readonly message: string
}

/** The problems that the gateway found in arguments, by its message. It names up to five of them. */
export function gatewayProblems(message = ''): readonly Problem[] {
  const [, sentences = ''] = /^Invalid arguments for [^:]*: (.*)\.$/s.exec(message) ?? []
  return sentences.split('; ').flatMap((sentence) => {
    const [, place, text] = /^"([^"]+)" (.*)$/s.exec(sentence) ?? []
    return place !== undefined && text !== undefined ? [{ place, message: text }] : []
  })
}

/** Max depth of a value. Limited because a union can contain itself. */
const maxDepth = 64

/** The required values that are missing. All other rules are left to the gateway. */
export function missingValues(value: unknown, schema: unknown, root: Schema): readonly Problem[] {
  const missing = (place: Path): Problem[] => [{ place: pathText(place), message: 'is required' }]
  const search = (value: unknown, schema: unknown, path: Path, required: boolean, depth = 0): Problem[] => {
    if (value === undefined) return required ? missing(path) : []
    if (depth > maxDepth) return []
    const field = fieldOf(schema, root, required)
    if (field.kind === 'variants') {
      const variant = field.variants[bestVariant(value, field.variants, root)]
      return search(value, variant?.schema, path, required, depth + 1)
    }
    if (field.kind === 'object' && isObject(value)) {
      return field.properties.flatMap(({ name, schema, required }) =>
        search(memberOf(value, name), schema, [...path, name], required, depth + 1),
      )
    }
    if (field.kind !== 'list' || !Array.isArray(value)) return []
    return value.flatMap((item, index) => {
      const schema = field.prefixItems[index] ?? field.items ?? true
      // New items are null until they are filled in.
      const isMissing = item === null && !fits({ root, stepsLeft }, item, schema, true)
      return isMissing ? missing([...path, index]) : search(item, schema, [...path, index], true, depth + 1)
    })
  }
  return search(value, schema, [], true)
}

/** The index of the variant that a value belongs to, even if parts of the value are still missing. */
export function bestVariant(value: unknown, variants: readonly Variant[], root: Schema): number {
  const firstFit = (isWhole: boolean) => {
    const search = { root, stepsLeft }
    return variants.findIndex(({ schema }) => fits(search, value, schema, isWhole))
  }
  const whole = value === undefined ? 0 : firstFit(true)
  return Math.max(0, whole >= 0 ? whole : firstFit(false))
}

/** Max steps of one search. Limited because unions can be nested without end. */
const stepsLeft = 20_000

interface Search {
  readonly root: Schema
  stepsLeft: number
}

/** Whether a value has the types and constants of a schema and, if it is whole, what the schema requires. */
function fits(search: Search, value: unknown, schema: unknown, isWhole: boolean, depth = 0): boolean {
  if (search.stepsLeft-- <= 0 || depth > maxDepth) return true
  const field = fieldOf(schema, search.root)
  const isFit = (value: unknown, schema: unknown) => fits(search, value, schema, isWhole, depth + 1)
  const hasMember = (
    object: Schema,
    { name, schema, required }: (Field & { kind: 'object' })['properties'][number],
  ) => {
    const member = memberOf(object, name)
    return member === undefined ? !(isWhole && required) : isFit(member, schema)
  }
  switch (field.kind) {
    case 'any':
      return true
    case 'fixed':
      return equalJson(value, field.value)
    case 'choice':
      return field.values.some((one) => equalJson(value, one))
    case 'null':
      return value === null
    case 'boolean':
      return typeof value === 'boolean'
    case 'number':
      return typeof value === 'number' || value instanceof ExactNumber
    case 'text':
      return typeof value === 'string'
    case 'variants':
      return field.variants.some(({ schema }) => isFit(value, schema))
    case 'list':
      return (
        Array.isArray(value) &&
        value.every((item, index) => isFit(item, field.prefixItems[index] ?? field.items ?? true))
      )
    case 'object':
      return isObject(value) && field.properties.every((property) => hasMember(value, property))
  }
}

const equalJson = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b)
