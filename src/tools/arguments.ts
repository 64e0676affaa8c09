import type * as z from 'zod'
import { ToolwayError } from '../core/errors.ts'
import { nearMisses } from '../lib/near.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]
type JsonSchema = Readonly<Record<string, unknown>>

/** How many problems one refusal tells; a model mends these first. */
const maxProblems = 5

/** What is wrong with a tool's arguments, in a sentence that a model can act on: which field, what was expected, what came. */
export function argumentsRefused(tool: string, error: z.ZodError, schema: JsonSchema, given: unknown): ToolwayError {
  const problems = error.issues.slice(0, maxProblems).map((issue) => problem(issue, schema, at(given, issue.path)))
  const untold = error.issues.length - problems.length
  if (untold > 0) problems.push(`and ${untold} more`)
  return new ToolwayError('INVALID_ARGUMENTS', `The arguments of ${tool} do not fit: ${problems.join('; ')}.`)
}

function problem(issue: Issue, schema: JsonSchema, given: unknown): string {
  const field = issue.path.length === 0 ? 'all of them together' : `"${spell(issue.path)}"`
  const wanted = expectation(issue)
  if (issue.code === 'unrecognized_keys') return unknownFields(issue.path, issue.keys, schema)
  if (given === undefined) return `${field} is missing${wanted === undefined ? '' : `, it must be ${wanted}`}`
  if (wanted === undefined) return `${field}: ${issue.message}`
  return `${field} must be ${wanted}${contrast(issue, given)}`
}

function expectation(issue: Issue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return kindNames[issue.expected] ?? issue.expected
    case 'invalid_value':
      return issue.values.length > 1 ? `one of ${issue.values.map(String).join(', ')}` : JSON.stringify(issue.values[0])
    case 'too_small':
      return `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${units[issue.origin] ?? ''}`
    case 'too_big':
      return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${units[issue.origin] ?? ''}`
    case 'invalid_union': {
      const wanted = issue.errors.flatMap((errors) => errors.slice(0, 1).map(expectation))
      return wanted.length === 0 || wanted.includes(undefined) ? undefined : [...new Set(wanted)].join(' or ')
    }
    default:
      return undefined
  }
}

/** What came instead. Only a word that should have been one of a few is repeated: any other value may be a secret. */
function contrast(issue: Issue, given: unknown): string {
  if (issue.code === 'invalid_value' && typeof given === 'string') {
    const near = nearMisses(given, issue.values.map(String))[0]
    const repeated = given.length > 40 ? `${given.slice(0, 40)}…` : given
    return `, not "${repeated}"${near === undefined ? '' : ` (did you mean "${near}"?)`}`
  }
  if (issue.code === 'invalid_type' && issue.expected === 'int' && typeof given === 'number') return `, not ${given}`
  if (issue.code === 'too_small' || issue.code === 'too_big') return ''
  return `, not ${given === null ? 'null' : (kindNames[Array.isArray(given) ? 'array' : typeof given] ?? typeof given)}`
}

const kindNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'a boolean',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

const units: Readonly<Record<string, string>> = { string: ' characters long', array: ' items long' }

function unknownFields(path: Path, keys: readonly string[], schema: JsonSchema): string {
  const known = Object.keys((schemaAt(schema, path)?.properties as object | undefined) ?? {})
  const takes = known.length === 0 ? 'there are none to give' : `known are ${known.join(', ')}`
  return keys
    .slice(0, maxProblems)
    .map((key) => {
      const near = nearMisses(key, known)[0]
      const repeated = key.length > 40 ? `${key.slice(0, 40)}…` : key
      return `"${spell([...path, repeated])}" is unknown (${near === undefined ? takes : `did you mean "${near}"?`})`
    })
    .join('; ')
}

/** `calls[0].server`, as people write it. */
const spell = (path: Path) =>
  path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index > 0 ? '.' : ''}${String(step)}`))
    .join('')

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, step) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[step], value)

const schemaAt = (schema: JsonSchema, path: Path) =>
  path.reduce<JsonSchema | undefined>((inner, step) => {
    if (typeof step === 'number') return inner?.items as JsonSchema | undefined
    return (inner?.properties as Record<PropertyKey, JsonSchema> | undefined)?.[step]
  }, schema)
