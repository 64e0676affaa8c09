import type { ErrorObject } from 'ajv'
import { nearMisses } from '../../lib/near.ts'
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

export const quoted = (text: string) => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** `a, b or c` */
export const list = (words: readonly string[]) =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const comparisons: Readonly<Record<string, string>> = {
  '>=': 'at least',
  '>': 'more than',
  '<=': 'at most',
  '<': 'less than',
}

/** Continues the name of a field. Mentions only the type of the actual value, which may be a secret. */
export function expectation({ keyword, params, data, schema }: ErrorObject): string | undefined {
  switch (keyword) {
    case 'type': {
      const wanted = list([params.type].flat().map(kindOf))
      return `must be ${wanted}${data === undefined ? '' : `, not ${kindOf(typeName(data, params.type))}`}`
    }
    case 'enum':
      return oneOf(params.allowedValues, data)
    case 'const':
      return `must be ${shown(params.allowedValue)}`
    case 'minLength':
      return `must be at least ${count(params.limit, 'character')} long`
    case 'maxLength':
      return `must be at most ${count(params.limit, 'character')} long`
    case 'minItems':
      return `must have at least ${count(params.limit, 'item')}`
    case 'maxItems':
      return `must have at most ${count(params.limit, 'item')}`
    case 'minProperties':
      return `must have at least ${count(params.limit, 'member')}`
    case 'maxProperties':
      return `must have at most ${count(params.limit, 'member')}`
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return `must be ${comparisons[params.comparison as string]} ${shown(params.limit)}`
    case 'multipleOf':
      return `must be a multiple of ${shown(params.multipleOf)}`
    case wholeKeyword:
      return `must be ${kindOf('integer')}`
    case 'pattern':
      return `must match the pattern ${shown(params.pattern)}`
    case 'format':
      return `must be a valid ${params.format}`
    case 'uniqueItems':
      return 'must not have the same item twice'
    case 'contains':
      return 'lacks an item of the required form'
    case 'not':
      return 'has a form that is not allowed'
    case 'false schema':
    case 'unevaluatedItems':
      return schema === false || keyword === 'false schema' ? 'is not allowed here' : undefined
    default:
      return undefined
  }
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`

const typeName = (data: unknown, wanted: unknown) => {
  if (data === null) return 'null'
  if (Array.isArray(data)) return 'array'
  // A non-integer is still a number, so name the difference.
  return typeof data === 'number' && wanted === 'integer' ? 'a fraction' : typeof data
}

function oneOf(allowed: readonly unknown[], data: unknown): string {
  const some = allowed.slice(0, 20).map((value) => (typeof value === 'string' ? value : shown(value)))
  const near =
    typeof data === 'string'
      ? nearMisses(
          data,
          allowed.filter((value) => typeof value === 'string'),
        )[0]
      : undefined
  const more = allowed.length > some.length ? ' and others' : ''
  return `must be one of ${some.join(', ')}${more}${near === undefined ? '' : ` (did you mean ${quoted(near)}?)`}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
