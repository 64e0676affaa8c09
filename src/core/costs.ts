import type { Exposure, Served, View } from './access.ts'
import { tokensOf } from './tokens.ts'

export const exposures: readonly Exposure[] = ['direct', 'meta', 'both', 'code']

const known = new WeakMap<readonly Served[], number>()

/** What a list of tools costs a model's context. Added up once: views give the same list until something changes. */
export function costOf(tools: readonly Served[]): number {
  const before = known.get(tools)
  if (before !== undefined) return before
  const sum = tools.reduce((total, { name, definition }) => total + tokensOf(name, definition), 0)
  known.set(tools, sum)
  return sum
}

/** What a caller's tools would cost in each exposure mode (B8). */
export const costsOf = (view: View): Readonly<Record<Exposure, number>> => ({
  direct: costOf(view.shown('direct')),
  meta: costOf(view.shown('meta')),
  both: costOf(view.shown('both')),
  code: costOf(view.shown('code')),
})
