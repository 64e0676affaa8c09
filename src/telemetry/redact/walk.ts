import { hash } from 'node:crypto'
import { Numeral } from '../../lib/exact-number.ts'

/** How each part of a value is treated, and how much of it there may be. */
export interface Visit {
  readonly depth: number
  readonly nodes: number
  readonly total: number
  key(name: string): string
  /** Whether the value under this name is not to be seen. */
  hides(name: string, value: unknown): boolean
  text(text: string, depth: number): string
  number(value: number): unknown
}

/** What a part becomes that cannot be shown: it is left out. */
export const dropped = Symbol('dropped')

const hidden = '[redacted]'
const tooDeep = '[too deep]'

/** A copy of a JSON value as `visit` wants it; the value itself, where nothing had to change. */
export function walk(value: unknown, visit: Visit, from = 0): unknown {
  let left = visit.nodes
  let characters = visit.total

  const text = (value: string, depth: number): string => {
    if (characters <= 0) return `[${value.length} characters, SHA-256 ${hash('sha256', value)}]`
    characters -= value.length
    return visit.text(value, depth)
  }

  const part = (value: unknown, depth: number): unknown => {
    try {
      if (typeof value === 'string') return text(value, depth)
      if (typeof value === 'number') return visit.number(value)
      if (typeof value === 'boolean' || value === null) return value
      if (typeof value !== 'object') return dropped
      // As text: what reads a record back would round the number.
      if (value instanceof Numeral) return text(value.source, depth)
      if (depth >= visit.depth) return tooDeep
      return Array.isArray(value) ? items(value, depth) : members(value, depth)
    } catch {
      return dropped
    }
  }

  const items = (list: readonly unknown[], depth: number): unknown => {
    const kept: unknown[] = []
    let changed = false
    for (const item of list) {
      if (left-- <= 0) return [...kept, more(list.length - kept.length)]
      const clean = part(item, depth + 1)
      changed ||= clean !== item
      if (clean !== dropped) kept.push(clean)
    }
    return changed ? kept : list
  }

  const members = (record: object, depth: number): unknown => {
    const kept: [string, unknown][] = []
    let changed = false
    for (const name of Object.keys(record)) {
      if (left-- <= 0) return Object.fromEntries([...kept, ['…', more(Object.keys(record).length - kept.length)]])
      const member = memberOf(record, name)
      const key = visit.key(name)
      const clean = visit.hides(name, member) ? hidden : part(member, depth + 1)
      changed ||= clean !== member || key !== name
      if (clean !== dropped) kept.push([key, clean])
    }
    return changed ? Object.fromEntries(kept) : record
  }

  return part(value, from)
}

/** A getter of somebody else's may throw: then only its own field is lost. */
function memberOf(record: object, name: string): unknown {
  try {
    return (record as Record<string, unknown>)[name]
  } catch {
    return dropped
  }
}

const more = (count: number): string => `[${count} more]`
