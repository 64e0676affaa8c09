import { ExactNumber } from '../format/exact-json.ts'
import { formatProblem } from './check-format.ts'
import { type Field, fieldOf } from './field.ts'
import { memberOf, type Path } from './path.ts'
import { isObject, requiredOf, type Schema } from './schema.ts'
import type { Variant } from './variants.ts'

export interface Problem {
  readonly path: Path
  readonly message: string
  /** Set if the value is missing. Such a problem is not shown before the first attempt to send. */
  readonly missing?: true
}

/**
 * The state of one check. The numbers of steps and nested variants are limited, because a recursive schema can be
 * infinite.
 */
interface Check {
  readonly root: Schema
  stepsLeft: number
  unionsLeft: number
}

const newCheck = (root: Schema): Check => ({ root, stepsLeft: 20_000, unionsLeft: 32 })

/**
 * The problems with a value, as messages for the user. The gateway validates again, with more keywords; this check only
 * saves a round trip.
 */
export const problemsOf = (value: unknown, schema: unknown, root: Schema): readonly Problem[] =>
  check(newCheck(root), value, schema, [], true)

/** The index of the variant that matches a value best. */
export const bestVariant = (value: unknown, variants: readonly Variant[], root: Schema): number =>
  value === undefined ? 0 : bestMatch(newCheck(root), value, variants, []).index

function check(run: Check, value: unknown, schema: unknown, path: Path, required: boolean): readonly Problem[] {
  const here = (message: string | undefined): Problem[] => (message === undefined ? [] : [{ path, message }])
  if (value === undefined) return required ? [missingProblem(path)] : []
  if (run.stepsLeft-- <= 0 || run.unionsLeft <= 0 || path.length > 64) return []
  const field = fieldOf(schema, run.root, required)
  // If the default is null, null means the same as leaving the value out.
  if (value === null && !required && field.schema.default === null) return []
  switch (field.kind) {
    case 'any':
      return []
    case 'fixed':
      return here(equalJson(value, field.value) ? undefined : `must be ${JSON.stringify(field.value)}`)
    case 'choice':
      return here(field.values.some((one) => equalJson(one, value)) ? undefined : 'must be one of the listed values')
    case 'null':
      return here(value === null ? undefined : 'must be null')
    case 'boolean':
      return here(typeof value === 'boolean' ? undefined : 'must be true or false')
    case 'number':
      return here(numberProblem(value, field.schema))
    case 'text':
      return here(textProblem(value, field.schema) ?? formatProblem(value, field.schema.format))
    case 'variants':
      return bestMatch(run, value, field.variants, path).problems
    case 'object':
      return isObject(value) ? checkMembers(run, value, field, path) : here('must be an object')
    case 'list':
      return Array.isArray(value) ? checkItems(run, value, field, path) : here('must be a list')
  }
}

function checkMembers(run: Check, value: Schema, field: Field & { kind: 'object' }, path: Path): readonly Problem[] {
  const { properties, additional, schema } = field
  const known = new Set(properties.map(({ name }) => name))
  const missing = requiredOf(schema).filter((name) => !known.has(name) && memberOf(value, name) === undefined)
  const extra = Object.keys(value).filter((name) => !known.has(name))
  return [
    ...properties.flatMap(({ name, schema, required }) =>
      check(run, memberOf(value, name), schema, [...path, name], required),
    ),
    ...missing.map((name) => missingProblem([...path, name])),
    ...extra.flatMap((name) =>
      schema.additionalProperties === false
        ? [{ path: [...path, name], message: 'is not a known property' }]
        : checkFilled(run, value[name], additional ?? true, [...path, name]),
    ),
  ]
}

function checkItems(run: Check, value: unknown[], field: Field & { kind: 'list' }, path: Path): readonly Problem[] {
  const { minItems, maxItems, uniqueItems } = field.schema
  const tooFew = typeof minItems === 'number' && value.length < minItems
  const tooMany = typeof maxItems === 'number' && value.length > maxItems
  const duplicates = uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length
  const schemaAt = (index: number) => field.prefixItems[index] ?? field.items ?? true
  return [
    ...(tooFew ? [{ path, message: `must have at least ${units(minItems, 'item')}` }] : []),
    ...(tooMany ? [{ path, message: `must have at most ${units(maxItems, 'item')}` }] : []),
    ...(duplicates ? [{ path, message: 'must not contain duplicates' }] : []),
    ...value.flatMap((item, index) => checkFilled(run, item, schemaAt(index), [...path, index])),
  ]
}

/**
 * Checks an item or property that must have a value. New items and properties are null until they are filled in, so
 * where null is invalid, null is reported as missing.
 */
function checkFilled(run: Check, value: unknown, schema: unknown, path: Path): readonly Problem[] {
  const problems = check(run, value, schema, path, true)
  return value === null && problems.length > 0 ? [missingProblem(path)] : problems
}

/** The variant with the fewest problems. Problems with the value itself count more than problems with nested values. */
function bestMatch(run: Check, value: unknown, variants: readonly Variant[], path: Path) {
  run.unionsLeft--
  const results = variants.map(({ schema }, index) => {
    const problems = check(run, value, schema, path, true)
    return { index, problems, weight: problems.reduce((sum, one) => sum + 8 ** (path.length - one.path.length), 0) }
  })
  run.unionsLeft++
  return results.reduce((best, one) => (one.weight < best.weight ? one : best))
}

const missingProblem = (path: Path): Problem => ({ path, message: 'is required', missing: true })

const equalJson = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b)

/** Formats a number with a unit. Uses all digits, not a compact form like `123K`. */
const units = (number: number, unit: string): string => `${number} ${unit}${number === 1 ? '' : 's'}`

/** The first problem with a number. */
function numberProblem(value: unknown, schema: Schema): string | undefined {
  const isExact = value instanceof ExactNumber
  if (!isExact && (typeof value !== 'number' || !Number.isFinite(value))) return 'must be a number'
  const isInteger = isExact ? value.isInteger : Number.isInteger(value)
  if (schema.type === 'integer' && !isInteger) return 'must be a whole number'
  return rangeProblem(isExact ? Number(value.source) : (value as number), schema)
}

function rangeProblem(value: number, schema: Schema): string | undefined {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  if (typeof minimum === 'number' && value < minimum) return `must be ${minimum} or more`
  if (typeof maximum === 'number' && value > maximum) return `must be ${maximum} or less`
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) return `must be more than ${exclusiveMinimum}`
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) return `must be less than ${exclusiveMaximum}`
  if (typeof multipleOf === 'number' && multipleOf > 0 && Number.isFinite(value) && !isMultiple(value, multipleOf)) {
    return `must be a multiple of ${multipleOf}`
  }
  return undefined
}

/** Whether a number is a multiple of another. Tolerates rounding: 0.3 is a multiple of 0.1. */
function isMultiple(value: number, divisor: number): boolean {
  const quotient = value / divisor
  return Math.abs(quotient - Math.round(quotient)) < 1e-9 * Math.max(1, Math.abs(quotient))
}

/** The problem with a string. Patterns are left to the gateway, because a malicious pattern would hang the browser. */
function textProblem(value: unknown, { minLength, maxLength }: Schema): string | undefined {
  if (typeof value !== 'string') return 'must be text'
  // JSON Schema counts code points, not UTF-16 units.
  const length = [...value].length
  if (typeof minLength === 'number' && length < minLength) return `must have at least ${units(minLength, 'character')}`
  if (typeof maxLength === 'number' && length > maxLength) return `must have at most ${units(maxLength, 'character')}`
  return undefined
}
