import type { Fields } from '../../core/schema-keywords.ts'
import { ExactNumber } from '../../json/parse-json.ts'
import { pluralize, quote, shorten } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import type { Problem } from './check-run.ts'

/** Max problems listed in a refusal. The model can fix these first. */
const maxListedProblems = 5

/** A problem. If a keyword such as `anyOf` failed, `forms` holds the problems found in each alternative. */
interface Gathered {
  readonly error: Problem
  readonly forms: readonly Gathered[]
}

/** Describes the problems so that a model can act on them: which field, what was expected, and what was sent. */
export function describeProblems(errors: readonly Problem[]): string {
  const sentences = [...new Set(gatherProblems(errors).flatMap(describeProblem))]
  const omitted = sentences.length - maxListedProblems
  return [...sentences.slice(0, maxListedProblems), ...(omitted > 0 ? [`and ${omitted} more`] : [])].join('; ')
}

/** Keywords whose own error comes after the errors of their subschemas. */
const choiceKeywords = new Set(['anyOf', 'oneOf', 'contains', 'propertyNames', 'not'])

function gatherProblems(errors: readonly Problem[]): Gathered[] {
  const problems: Gathered[] = []
  for (const error of errors) {
    const forms: Gathered[] = []
    while (choiceKeywords.has(error.keyword) && isInsidePath(problems.at(-1)?.error.path, error.path)) {
      forms.unshift(problems.pop() as Gathered)
    }
    problems.push({ error, forms })
  }
  return problems
}

const isInsidePath = (path: readonly string[] | undefined, outer: readonly string[]) =>
  path !== undefined && outer.every((step, index) => path[index] === step)

function describeProblem({ error, forms }: Gathered): string[] {
  switch (error.keyword) {
    case 'required':
      return [describeMissing(error, error.params.missingProperty)]
    case 'dependentRequired':
      return [
        `${describeMissing(error, error.params.missingProperty)} (required with "${spellPath(error, error.params.property)}")`,
      ]
    case 'additionalProperties':
      return [describeUnknown(error, error.params.additionalProperty)]
    case 'unevaluatedProperties':
      return [describeUnknown(error, error.params.unevaluatedProperty)]
    case 'propertyNames':
      return [`${fieldName(error)} has the field ${quoteShort(error.params.propertyName)}, whose name is not allowed`]
    case 'anyOf':
    case 'oneOf':
      return [describeChoice(error, forms)]
    default:
      return [`${fieldName(error)} ${expectations[error.keyword]?.(error) ?? 'is invalid'}`]
  }
}

/** Describes a failed choice: the types if only those differ, else the problems with the closest alternatives. */
function describeChoice(error: Problem, forms: readonly Gathered[]): string {
  if (error.params.passingSchemas) return `${fieldName(error)} matches more than one of the alternatives in oneOf`
  const here = forms.filter((form) => form.error.path.length === error.path.length)
  const types = [...new Set(here.filter(isTypeProblem).flatMap((form) => kindsOfTypes(form.error.params.type)))]
  if (types.length > 0 && forms.every(isTypeProblem))
    return `${fieldName(error)} must be ${joinOr(types)}${insteadOf(error)}`
  const nearest = forms.filter((form) => !here.includes(form) || !isTypeProblem(form)).flatMap(describeProblem)
  const alternatives = [...new Set(nearest)].slice(0, 3)
  return `${fieldName(error)} matches none of the allowed alternatives${alternatives.length === 0 ? '' : ` (${alternatives.join(', or ')})`}`
}

const isTypeProblem = ({ error }: Gathered) => error.keyword === 'type'
const kindsOfTypes = (type: string | string[]) => [type].flat().map(kindOfType)
const insteadOf = ({ data }: Problem) => (data === undefined ? '' : `, not ${kindOfType(typeName(data))}`)

function describeMissing(error: Problem, name: string): string {
  const { properties } = (error.schema ?? {}) as { properties?: Record<string, Fields> }
  const wanted = properties?.[name]?.type as string | string[] | undefined
  const given = Object.keys((error.data ?? {}) as Fields).filter((key) => !Object.hasOwn(properties ?? {}, key))
  const near = nearMiss(name, given)
  const must = wanted === undefined ? '' : ` and must be ${joinOr(kindsOfTypes(wanted))}`
  return `"${spellPath(error, name)}" is missing${must}${near === undefined ? '' : ` (you sent ${quoteShort(near)})`}`
}

function describeUnknown(error: Problem, name: string): string {
  const known = Object.keys((error.schema as { properties?: object } | undefined)?.properties ?? {})
  const near = nearMiss(name, known)
  const some = known.length > 20 ? `${known.slice(0, 20).join(', ')} and others` : known.join(', ')
  const takes = known.length === 0 ? '' : ` (known fields: ${some})`
  return `"${spellPath(error, shorten(name, 40))}" is unknown${near === undefined ? takes : ` (did you mean ${quoteShort(near)}?)`}`
}

const fieldName = (error: Problem) => (error.path.length === 0 ? 'the whole input' : `"${spellPath(error)}"`)

/** Formats a path like `calls[0].server`. */
function spellPath({ path }: Problem, member?: string): string {
  const names = member === undefined ? path : [...path, member]
  return names.map((name, index) => (/^\d+$/.test(name) ? `[${name}]` : `${index > 0 ? '.' : ''}${name}`)).join('')
}

const typeKinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'a boolean',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

const kindOfType = (type: string) => typeKinds[type] ?? type

const quoteShort = (text: string) => quote(text, 40)

/** Joins words into a list such as `a, b or c`. */
const joinOr = (words: readonly string[]) =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const comparisons: Readonly<Record<string, string>> = {
  '>=': 'at least',
  '>': 'more than',
  '<=': 'at most',
  '<': 'less than',
}

type Expectation = (error: Problem) => string | undefined

const describeBound: Expectation = ({ params }) =>
  `must be ${comparisons[params.comparison as string]} ${showValue(params.limit)}`

const expectations: Readonly<Record<string, Expectation>> = {
  type({ params, data }) {
    const wanted = joinOr([params.type].flat().map(kindOfType))
    return `must be ${wanted}${data === undefined ? '' : `, not ${kindOfType(typeName(data, params.type))}`}`
  },
  enum: ({ params, data }) => describeEnum(params.allowedValues, data),
  const: ({ params }) => `must be ${showValue(params.allowedValue)}`,
  minLength: ({ params }) => `must be at least ${pluralize(params.limit, 'character')} long`,
  maxLength: ({ params }) => `must be at most ${pluralize(params.limit, 'character')} long`,
  minItems: ({ params }) => `must have at least ${pluralize(params.limit, 'item')}`,
  maxItems: ({ params }) => `must have at most ${pluralize(params.limit, 'item')}`,
  minProperties: ({ params }) => `must have at least ${pluralize(params.limit, 'field')}`,
  maxProperties: ({ params }) => `must have at most ${pluralize(params.limit, 'field')}`,
  minimum: describeBound,
  maximum: describeBound,
  exclusiveMinimum: describeBound,
  exclusiveMaximum: describeBound,
  multipleOf: ({ params }) => `must be a multiple of ${showValue(params.multipleOf)}`,
  pattern: ({ params }) => `must match the pattern ${showValue(params.pattern)}`,
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

function describeEnum(allowed: readonly unknown[], data: unknown): string {
  const some = allowed.slice(0, 20).map((value) => (typeof value === 'string' ? value : showValue(value)))
  const words = allowed.filter((value) => typeof value === 'string')
  const near = typeof data === 'string' ? nearMiss(data, words) : undefined
  const more = allowed.length > some.length ? ' and others' : ''
  return `must be one of ${some.join(', ')}${more}${near === undefined ? '' : ` (did you mean ${quoteShort(near)}?)`}`
}

function showValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return shorten(text, 80)
}
