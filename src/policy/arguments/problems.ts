import { ExactNumber } from '../../json/parse-json.ts'
import { pluralize, quote, shorten } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import type { Problem } from './check-run.ts'

type Fields = Readonly<Record<string, unknown>>

/** Max problems listed in a refusal. The model can fix these first. */
const maxProblems = 5

/** A problem. If a keyword such as `anyOf` failed, `forms` holds the problems found in each alternative. */
interface Gathered {
  readonly error: Problem
  readonly forms: readonly Gathered[]
}

/** Describes the problems so that a model can act on them: which field, what was expected, and what was sent. */
export function sentenceOf(errors: readonly Problem[]): string {
  const sentences = [...new Set(gathered(errors).flatMap(describe))]
  const omitted = sentences.length - maxProblems
  return [...sentences.slice(0, maxProblems), ...(omitted > 0 ? [`and ${omitted} more`] : [])].join('; ')
}

/** Keywords whose own error comes after the errors of their subschemas. */
const choices = new Set(['anyOf', 'oneOf', 'contains', 'propertyNames', 'not'])

function gathered(errors: readonly Problem[]): Gathered[] {
  const problems: Gathered[] = []
  for (const error of errors) {
    const forms: Gathered[] = []
    while (choices.has(error.keyword) && within(problems.at(-1)?.error.path, error.path)) {
      forms.unshift(problems.pop() as Gathered)
    }
    problems.push({ error, forms })
  }
  return problems
}

const within = (path: readonly string[] | undefined, outer: readonly string[]) =>
  path !== undefined && outer.every((step, index) => path[index] === step)

function describe({ error, forms }: Gathered): string[] {
  switch (error.keyword) {
    case 'required':
      return [missing(error, error.params.missingProperty)]
    case 'dependentRequired':
      return [
        `${missing(error, error.params.missingProperty)} (required with "${spell(error, error.params.property)}")`,
      ]
    case 'additionalProperties':
      return [unknown(error, error.params.additionalProperty)]
    case 'unevaluatedProperties':
      return [unknown(error, error.params.unevaluatedProperty)]
    case 'propertyNames':
      return [`${field(error)} has the field ${quoted(error.params.propertyName)}, whose name is not allowed`]
    case 'anyOf':
    case 'oneOf':
      return [choice(error, forms)]
    default:
      return [`${field(error)} ${expectations[error.keyword]?.(error) ?? 'is invalid'}`]
  }
}

/** Describes a failed choice: the types if only those differ, else the problems with the closest alternatives. */
function choice(error: Problem, forms: readonly Gathered[]): string {
  if (error.params.passingSchemas) return `${field(error)} matches more than one of the alternatives in oneOf`
  const here = forms.filter((form) => form.error.path.length === error.path.length)
  const types = [...new Set(here.filter(isType).flatMap((form) => kinds(form.error.params.type)))]
  if (types.length > 0 && forms.every(isType)) return `${field(error)} must be ${list(types)}${instead(error)}`
  const nearest = forms.filter((form) => !here.includes(form) || !isType(form)).flatMap(describe)
  const alternatives = [...new Set(nearest)].slice(0, 3)
  return `${field(error)} matches none of the allowed alternatives${alternatives.length === 0 ? '' : ` (${alternatives.join(', or ')})`}`
}

const isType = ({ error }: Gathered) => error.keyword === 'type'
const kinds = (type: string | string[]) => [type].flat().map(kindOf)
const instead = ({ data }: Problem) => (data === undefined ? '' : `, not ${kindOf(typeName(data))}`)

function missing(error: Problem, name: string): string {
  const { properties } = (error.schema ?? {}) as { properties?: Record<string, Fields> }
  const wanted = properties?.[name]?.type as string | string[] | undefined
  const given = Object.keys((error.data ?? {}) as Fields).filter((key) => !Object.hasOwn(properties ?? {}, key))
  const near = nearMiss(name, given)
  const must = wanted === undefined ? '' : ` and must be ${list(kinds(wanted))}`
  return `"${spell(error, name)}" is missing${must}${near === undefined ? '' : ` (you sent ${quoted(near)})`}`
}

function unknown(error: Problem, name: string): string {
  const known = Object.keys((error.schema as { properties?: object } | undefined)?.properties ?? {})
  const near = nearMiss(name, known)
  const some = known.length > 20 ? `${known.slice(0, 20).join(', ')} and others` : known.join(', ')
  const takes = known.length === 0 ? '' : ` (known fields: ${some})`
  return `"${spell(error, shorten(name, 40))}" is unknown${near === undefined ? takes : ` (did you mean ${quoted(near)}?)`}`
}

const field = (error: Problem) => (error.path.length === 0 ? 'the whole input' : `"${spell(error)}"`)

/** Formats a path like `calls[0].server`. */
function spell({ path }: Problem, member?: string): string {
  const names = member === undefined ? path : [...path, member]
  return names.map((name, index) => (/^\d+$/.test(name) ? `[${name}]` : `${index > 0 ? '.' : ''}${name}`)).join('')
}

const kindNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'a boolean',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

const kindOf = (type: string) => kindNames[type] ?? type

const quoted = (text: string) => quote(text, 40)

/** Joins words into a list such as `a, b or c`. */
const list = (words: readonly string[]) =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const comparisons: Readonly<Record<string, string>> = {
  '>=': 'at least',
  '>': 'more than',
  '<=': 'at most',
  '<': 'less than',
}

type Expectation = (error: Problem) => string | undefined

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
  pattern: ({ params }) => `must match the pattern ${shown(params.pattern)}`,
  format: ({ params }) => `must be a valid ${params.format}`,
  uniqueItems: () => 'must not contain duplicate items',
  contains: () => 'must contain an item that matches the schema in `contains`',
  not: () => 'must not match the schema in `not`',
  'false schema': () => 'is not allowed here',
  unevaluatedItems: ({ schema }) => (schema?.unevaluatedItems === false ? 'is not allowed here' : undefined),
}

const typeName = (data: unknown, wanted?: unknown) => {
  if (data === null) return 'null'
  if (Array.isArray(data)) return 'array'
  if (data instanceof ExactNumber) return wanted === 'integer' ? 'a fraction' : 'number'
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
