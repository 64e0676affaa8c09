import type { ErrorObject } from 'ajv'
import { pluralize, quote, shorten } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import { wholeKeyword } from './prepare.ts'

const kindNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'a boolean',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

export const kindOf = (type: string) => kindNames[type] ?? type

export const quoted = (text: string) => quote(text, 40)

/** Joins words into a list such as `a, b or c`. */
export const list = (words: readonly string[]) =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const comparisons: Readonly<Record<string, string>> = {
  '>=': 'at least',
  '>': 'more than',
  '<=': 'at most',
  '<': 'less than',
}

type Expectation = (error: ErrorObject) => string | undefined

const bound: Expectation = ({ params }) => `must be ${comparisons[params.comparison as string]} ${shown(params.limit)}`

const expectations: Readonly<Record<string, Expectation>> = {
  type({ params, data }) {
    const wanted = list([params.type].flat().map(kindOf))
    return `must be ${wanted}${data === undefined ? '' : `, not ${kindOf(typeName(data, params.type))}`}`
  },
  enum: ({ params, data }) => oneOf(params.allowedValues, data),
  const: ({ params }) => `must be ${shown(params.allowedValue)}`,
  minLength: ({ params }) => `must be at least ${pluralize(params.limit, 'character')} long`,
  maxLength: ({ params }) => `must be at most ${pluralize(params.limit, 'character')} long`,
  minItems: ({ params }) => `must have at least ${pluralize(params.limit, 'item')}`,
  maxItems: ({ params }) => `must have at most ${pluralize(params.limit, 'item')}`,
  minProperties: ({ params }) => `must have at least ${pluralize(params.limit, 'field')}`,
  maxProperties: ({ params }) => `must have at most ${pluralize(params.limit, 'field')}`,
  ...{ minimum: bound, maximum: bound, exclusiveMinimum: bound, exclusiveMaximum: bound },
  multipleOf: ({ params }) => `must be a multiple of ${shown(params.multipleOf)}`,
  [wholeKeyword]: () => `must be ${kindOf('integer')}`,
  pattern: ({ params }) => `must match the pattern ${shown(params.pattern)}`,
  format: ({ params }) => `must be a valid ${params.format}`,
  uniqueItems: () => 'must not contain duplicate items',
  contains: () => 'must contain an item that matches the schema in `contains`',
  not: () => 'must not match the schema in `not`',
  'false schema': () => 'is not allowed here',
  unevaluatedItems: ({ schema }) => (schema === false ? 'is not allowed here' : undefined),
}

/** Describes what was expected of a field. Mentions only the type of the actual value, which may be a secret. */
export const expectation: Expectation = (error) => expectations[error.keyword]?.(error)

export const typeName = (data: unknown, wanted?: unknown) => {
  if (data === null) return 'null'
  if (Array.isArray(data)) return 'array'
  // A value that is not an integer is still a number, so call it a fraction.
  return typeof data === 'number' && wanted === 'integer' ? 'a fraction' : typeof data
}

function oneOf(allowed: readonly unknown[], data: unknown): string {
  const some = allowed.slice(0, 20).map((value) => (typeof value === 'string' ? value : shown(value)))
  const words = allowed.filter((value) => typeof value === 'string')
  const near = typeof data === 'string' ? nearMiss(data, words) : undefined
  const more = allowed.length > some.length ? ' and others' : ''
  return `must be one of ${some.join(', ')}${more}${near === undefined ? '' : ` (did you mean ${quoted(near)}?)`}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return shorten(text, 80)
}
