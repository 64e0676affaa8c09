import type { Json } from '../../core/json.ts'

/** Longer ones are not worth comparing: writing them anew with each call would cost more than many a call. */
const maxLength = 65_536

interface Budget {
  left: number
  /** Whether what was read is all that there is to know: a number beyond 2^53 may have been another one on its way in. */
  exact: boolean
}

/**
 * Arguments in a form that is the same for all that mean the same: the order of keys, escapes and the spelling of
 * numbers do not count. Numbers beyond 2^53 are those that were written, not those that they are rounded to.
 * Undefined where they are too long.
 */
export function canonical(given: Json): string | undefined {
  const budget: Budget = { left: maxLength, exact: true }
  const text = write(given.value, budget)
  if (budget.left < 0) return undefined
  return budget.exact ? text : write(asWritten(given.bytes), { left: Number.POSITIVE_INFINITY, exact: true })
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
      if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) budget.exact = false
      return `${value}`
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
  if (value instanceof Written) return value.source
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

/** A number in the digits it was written in. */
class Written {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

function asWritten(bytes: Buffer): unknown {
  const revive = (_key: string, value: unknown, { source }: { readonly source?: string }) =>
    typeof value === 'number' && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER) ? new Written(source ?? '') : value
  return JSON.parse(bytes.toString('utf8'), revive as (key: string, value: unknown) => unknown)
}
