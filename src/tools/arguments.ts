import type * as z from 'zod'
import { ToolwayError } from '../core/errors.ts'
import { nearMisses } from './near.ts'

type Issue = z.core.$ZodIssue

/** Parses a tool's arguments; what does not fit is refused in a sentence that a model can act on. */
export function readArguments<Schema extends z.ZodObject>(tool: string, schema: Schema, value: unknown): z.output<Schema> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const problems = read.error.issues.slice(0, 5).map((issue) => sentence(issue, schema, value))
  const more = read.error.issues.length - problems.length
  if (more > 0) problems.push(`and ${more} more`)
  throw new ToolwayError('INVALID_ARGUMENTS', `The arguments of ${tool} do not fit: ${problems.join('; ')}.`)
}

function sentence(issue: Issue, schema: z.ZodObject, value: unknown): string {
  const field = issue.path.length === 0 ? 'the arguments' : `"${spell(issue.path)}"`
  const given = valueAt(value, issue.path)
  if (issue.code === 'unrecognized_keys') return unknownFields(issue.path, issue.keys, schema)
  if (given === undefined) return `${field} is missing${expectation(issue, ' (expected ', ')')}`
  if (issue.code === 'invalid_value') {
    const near = typeof given === 'string' ? nearMisses(given, issue.values.map(String)) : []
    const hint = near.length === 0 ? '' : ` (did you mean "${near[0]}"?)`
    return `${field} must be ${expected(issue)}, not ${shown(given)}${hint}`
  }
  // A wrong value of the right type may be a secret: only its kind is told.
  return `${field} must be ${expected(issue) ?? issue.message}${misfit(issue, given)}`
}

const expectation = (issue: Issue, before: string, after: string) => {
  const text = expected(issue)
  return text === undefined ? '' : before + text + after
}

function expected(issue: Issue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return kindNames[issue.expected] ?? issue.expected
    case 'invalid_value':
      return `${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`
    case 'too_small':
      return `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unitOf(issue.origin)}`
    case 'too_big':
      return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${unitOf(issue.origin)}`
    case 'invalid_union':
      return [...new Set(issue.errors.flatMap((errors) => errors.slice(0, 1).map(expected)))].join(' or ') || undefined
    default:
      return undefined
  }
}

const misfit = (issue: Issue, given: unknown) =>
  issue.code === 'invalid_type' || issue.code === 'invalid_union' ? `, not ${kindOf(given, issue)}` : ''

const kindNames: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

function kindOf(given: unknown, issue: Issue): string {
  if (given === null) return 'null'
  if (typeof given === 'number' && issue.code === 'invalid_type' && issue.expected === 'int') return String(given)
  return kindNames[Array.isArray(given) ? 'array' : typeof given] ?? typeof given
}

const unitOf = (origin: string) => (origin === 'string' ? ' characters' : origin === 'array' ? ' items' : '')

const shown = (given: unknown) =>
  typeof given === 'string' ? `"${given.length > 40 ? `${given.slice(0, 40)}…` : given}"` : kindOfAny(given)

const kindOfAny = (given: unknown) =>
  given === null ? 'null' : (kindNames[Array.isArray(given) ? 'array' : typeof given] ?? typeof given)

function unknownFields(path: readonly PropertyKey[], keys: readonly string[], schema: z.ZodObject): string {
  const known = Object.keys(shapeAt(schema, path) ?? {})
  const takes = known.length === 0 ? 'it takes none' : `it takes ${known.join(', ')}`
  return keys
    .slice(0, 5)
    .map((key) => {
      const near = nearMisses(key, known)[0]
      return `there is no "${spell([...path, key])}" (${near === undefined ? takes : `did you mean "${near}"?`})`
    })
    .join('; ')
}
