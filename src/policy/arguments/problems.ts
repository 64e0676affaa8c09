import type { ErrorObject } from 'ajv'
import { unescapeStep } from '../../lib/json-pointer.ts'
import { shorten } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import { expectation, kindOf, list, quoted, typeName } from './expectation.ts'

type Fields = Readonly<Record<string, unknown>>

/** Max problems listed in a refusal. The model can fix these first. */
const maxProblems = 5

/** A problem. If a keyword such as `anyOf` failed, `forms` holds the problems found in each alternative. */
interface Problem {
  readonly error: ErrorObject
  readonly forms: readonly Problem[]
}

/** Describes the problems so that a model can act on them: which field, what was expected, and what was sent. */
export function sentenceOf(errors: readonly ErrorObject[]): string {
  const sentences = [...new Set(gathered(errors).flatMap(describe))]
  const omitted = sentences.length - maxProblems
  return [...sentences.slice(0, maxProblems), ...(omitted > 0 ? [`and ${omitted} more`] : [])].join('; ')
}

/** Keywords whose own error comes after the errors of their subschemas. */
const choices = new Set(['anyOf', 'oneOf', 'contains', 'propertyNames', 'not'])

function gathered(errors: readonly ErrorObject[]): Problem[] {
  const problems: Problem[] = []
  for (const error of errors) {
    // Skip the error for `if`: the errors for `then` and `else` describe what failed.
    if (error.keyword === 'if') continue
    const forms: Problem[] = []
    while (choices.has(error.keyword) && within(problems.at(-1)?.error.instancePath, error.instancePath)) {
      forms.unshift(problems.pop() as Problem)
    }
    problems.push({ error, forms })
  }
  return problems
}

const within = (path: string | undefined, outer: string) => path === outer || path?.startsWith(`${outer}/`) === true

function describe({ error, forms }: Problem): string[] {
  switch (error.keyword) {
    case 'required':
      return [missing(error, error.params.missingProperty)]
    case 'dependentRequired':
    case 'dependencies':
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
      return [`${field(error)} ${expectation(error) ?? 'is invalid'}`]
  }
}

/** Describes a failed choice: the types if only those differ, else the problems with the closest alternatives. */
function choice(error: ErrorObject, forms: readonly Problem[]): string {
  if (error.params.passingSchemas) return `${field(error)} matches more than one of the alternatives in oneOf`
  const here = forms.filter((form) => form.error.instancePath === error.instancePath)
  const types = [...new Set(here.filter(isType).flatMap((form) => kinds(form.error.params.type)))]
  if (types.length > 0 && forms.every(isType)) return `${field(error)} must be ${list(types)}${instead(error)}`
  const nearest = forms.filter((form) => !here.includes(form) || !isType(form)).flatMap(describe)
  const alternatives = [...new Set(nearest)].slice(0, 3)
  return `${field(error)} matches none of the allowed alternatives${alternatives.length === 0 ? '' : ` (${alternatives.join(', or ')})`}`
}

const isType = ({ error }: Problem) => error.keyword === 'type'
const kinds = (type: string | string[]) => [type].flat().map(kindOf)
const instead = ({ data }: ErrorObject) => (data === undefined ? '' : `, not ${kindOf(typeName(data))}`)

function missing(error: ErrorObject, name: string): string {
  const { properties } = (error.parentSchema ?? {}) as { properties?: Record<string, Fields> }
  const wanted = properties?.[name]?.type as string | string[] | undefined
  const given = Object.keys((error.data ?? {}) as Fields).filter((key) => !Object.hasOwn(properties ?? {}, key))
  const near = nearMiss(name, given)
  const must = wanted === undefined ? '' : ` and must be ${list(kinds(wanted))}`
  return `"${spell(error, name)}" is missing${must}${near === undefined ? '' : ` (you sent ${quoted(near)})`}`
}

function unknown(error: ErrorObject, name: string): string {
  const known = Object.keys((error.parentSchema as { properties?: object } | undefined)?.properties ?? {})
  const near = nearMiss(name, known)
  const some = known.length > 20 ? `${known.slice(0, 20).join(', ')} and others` : known.join(', ')
  const takes = known.length === 0 ? '' : ` (known fields: ${some})`
  return `"${spell(error, shorten(name, 40))}" is unknown${near === undefined ? takes : ` (did you mean ${quoted(near)}?)`}`
}

const field = (error: ErrorObject) => (error.instancePath === '' ? 'the whole input' : `"${spell(error)}"`)

/** Formats a path like `calls[0].server`. */
function spell({ instancePath }: ErrorObject, member?: string): string {
  const steps = instancePath.split('/').slice(1).map(unescapeStep)
  const names = member === undefined ? steps : [...steps, member]
  return names.map((name, index) => (/^\d+$/.test(name) ? `[${name}]` : `${index > 0 ? '.' : ''}${name}`)).join('')
}
