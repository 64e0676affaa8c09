import type { Json } from '../../core/json.ts'
import { decimalForm, Numeral } from '../../lib/exact-number.ts'

/** Longer ones are not worth comparing: writing them anew with each call would cost more than many a call. */
const maxLength = 65_536

interface Budget {
  left: number
  /** Whether the value is all that there is to know, and not what it becomes as JSON. */
  exact: boolean
}

/**
 * Arguments in a form that is the same for all that mean the same: the order of keys, escapes and the spelling of
 * numbers do not count. Numbers that a double cannot hold are those that were written, not those that they are rounded to.
 * Undefined where they are too long.
 */
export function canonical(given: Json): string | undefined {
  const budget: Budget = { left: maxLength, exact: true }
  const text = write(given.exact, budget)
  if (budget.left < 0) return undefined
  return budget.exact ? text : write(JSON.parse(given.bytes.toString('utf8')), { left: maxLength, exact: true })
}

/** The same for a value that is sent on as it is. */
export function canonicalValue(value: unknown): string | undefined {
  const budget: Budget = { left: maxLength, exact: true }
  const text = write(value, budget)
  if (budget.left < 0) return undefined
  return budget.exact ? text : JSON.stringify(value)
}

/** Strings are written as they are, behind their length: nothing in them can be taken for something else. */
export const quoted = (text: string): string => `${text.length}:${text}`

function write(value: unknown, budget: Budget): string {
  switch (typeof value) {
    case 'string':
      budget.left -= value.length
      return budget.left < 0 ? '' : quoted(value)
    case 'number':
      budget.left -= 8
      // Infinity and NaN are null in JSON.
      if (!Number.isFinite(value)) budget.exact = false
      return value === 0 && 1 / value < 0 ? '-0' : `${value}`
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      budget.left -= 2
      if (value === null || budget.left < 0) return 'null'
      return Array.isArray(value) ? writeArray(value, budget) : writeObject(value, budget)
    default:
      // What has no form in JSON is told by the bytes that stand for it.
      budget.exact = false
      return ''
  }
}

function writeArray(value: readonly unknown[], budget: Budget): string {
  let text = '['
  for (const inner of value) {
    text += `${write(inner, budget)},`
    if (budget.left < 0) break
  }
  return `${text}]`
}

function writeObject(value: object, budget: Budget): string {
  if (value instanceof Numeral) {
    budget.left -= value.source.length
    return decimalForm(value.source)
  }
  const { toJSON } = value as { readonly toJSON?: unknown }
  if (typeof toJSON === 'function') budget.exact = false
  const keys = Object.keys(value)
  if (keys.length > 1) keys.sort()
  let text = '{'
  for (const key of keys) {
    const inner = (value as Readonly<Record<string, unknown>>)[key]
    // As when it is sent.
    if (inner === undefined) continue
    budget.left -= key.length
    text += `${quoted(key)}${write(inner, budget)},`
    if (budget.left < 0) break
  }
  return `${text}}`
}
