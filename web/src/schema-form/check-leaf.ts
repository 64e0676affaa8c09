import { counted } from '../format/number.ts'
import type { Schema } from './schema.ts'

/** The first problem only. */
export function numberProblem(value: unknown, schema: Schema): string | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number'
  if (schema.type === 'integer' && !Number.isInteger(value)) return 'must be a whole number'
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  if (typeof minimum === 'number' && value < minimum) return `must be ${minimum} or more`
  if (typeof maximum === 'number' && value > maximum) return `must be ${maximum} or less`
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) return `must be more than ${exclusiveMinimum}`
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) return `must be less than ${exclusiveMaximum}`
  if (typeof multipleOf === 'number' && multipleOf > 0 && !isMultiple(value, multipleOf)) {
    return `must be a multiple of ${multipleOf}`
  }
  return undefined
}

/** Tolerates rounding: 0.3 is a multiple of 0.1. */
function isMultiple(value: number, of: number): boolean {
  const times = value / of
  return Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, Math.abs(times))
}

/** Patterns are left to the gateway: a malicious one would hang the browser. */
export function textProblem(value: unknown, { minLength, maxLength }: Schema): string | undefined {
  if (typeof value !== 'string') return 'must be text'
  // JSON Schema counts code points, not UTF-16 units.
  const length = [...value].length
  if (typeof minLength === 'number' && length < minLength)
    return `must have at least ${counted(minLength, 'character')}`
  if (typeof maxLength === 'number' && length > maxLength) return `must have at most ${counted(maxLength, 'character')}`
  return undefined
}
