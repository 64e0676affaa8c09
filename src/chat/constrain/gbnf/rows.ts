import { all, any, type Expression, nothing, optional, text, times } from './expression.ts'
import type { Rules } from './rules.ts'

/** Things in a fixed order, with commas between them, some of which may be left out. */
export interface Row {
  readonly parts: readonly { readonly expression: Expression; readonly required: boolean }[]
  /** What may follow them any number of times. */
  readonly extra?: { readonly expression: Expression; readonly most: number } | undefined
  /** How many of all there have to be, at least and at most. */
  readonly min: number
  readonly max: number
}

const comma = all(text(','), optional(text(' ')))

/** `undefined` where no number of parts is right. */
export function rowOf(rules: Rules, hint: string, row: Row): Expression | undefined {
  const { parts, extra, min, max } = row
  const required = parts.filter((part) => part.required).length
  const most = parts.length + (extra?.most ?? 0)
  /** Unless the number matters, it is enough to know whether there has been one, which asks for a comma. */
  const counts = min > required || max < most
  const known = new Map<string, Expression | undefined>()

  const from = (index: number, count: number): Expression | undefined => {
    const key = `${index}/${count}`
    if (!known.has(key)) {
      const found = index < parts.length ? part(index, count) : rest(count)
      const isLong = found?.kind === 'all' || found?.kind === 'any'
      known.set(key, found && isLong && index > 0 ? rules.define(hint, found) : found)
    }
    return known.get(key)
  }

  const part = (index: number, count: number): Expression | undefined => {
    const { expression, required } = parts[index] as Row['parts'][number]
    const one = count > 0 ? all(comma, expression) : expression
    if (!required && !counts && count > 0) {
      const others = from(index + 1, count)
      return others && all(optional(one), others)
    }
    const others = count < max ? from(index + 1, counts ? count + 1 : 1) : undefined
    const taken = others && all(one, others)
    return required ? taken : any(taken, from(index + 1, count))
  }

  const rest = (count: number): Expression | undefined => {
    const low = counts ? Math.max(0, min - count) : 0
    const high = Math.min(extra?.most ?? 0, counts ? max - count : Number.POSITIVE_INFINITY)
    if (high < low) return undefined
    if (!extra || high === 0) return nothing
    const next = all(comma, extra.expression)
    if (count > 0) return times(next, low, high)
    const some = all(extra.expression, times(next, Math.max(0, low - 1), high - 1))
    return low === 0 ? optional(some) : some
  }

  return min > max ? undefined : from(0, 0)
}
