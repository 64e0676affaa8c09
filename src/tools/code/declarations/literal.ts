import type { Allowance } from './allowance.ts'
import { quoted } from './plain-text.ts'

const maxString = 500
const deepest = 4

/** A constant as the type that only it has; undefined where it is too large to be written out. */
export function literalType(value: unknown, allowance: Allowance, depth = 0): string | undefined {
  if (allowance.spent || depth > deepest) return undefined
  const text = simpleLiteral(value)
  if (text !== undefined) {
    allowance.spend(text.length)
    return text
  }
  if (Array.isArray(value)) {
    const items = all(value, (item) => literalType(item, allowance, depth + 1))
    return items && `[${items.join(', ')}]`
  }
  if (typeof value !== 'object' || value === null) return undefined
  const members = all(allowance.keys(value), (key) => {
    const type = literalType((value as Record<string, unknown>)[key], allowance, depth + 1)
    return type && key.length <= maxString ? `${quoted(key)}: ${type}` : undefined
  })
  return members && (members.length === 0 ? '{}' : `{ ${members.join('; ')} }`)
}

function simpleLiteral(value: unknown): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value)
  // One beyond all bounds has been read as no number at all.
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'number'
  return typeof value === 'string' && value.length <= maxString ? quoted(value) : undefined
}

/** All of them, or nothing as soon as one cannot be had. */
function all<T>(values: readonly T[], write: (value: T) => string | undefined): string[] | undefined {
  const written: string[] = []
  for (const value of values) {
    const type = write(value)
    if (type === undefined) return undefined
    written.push(type)
  }
  return written
}
