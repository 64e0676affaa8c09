import { decimalForm, Numeral } from '../../lib/exact-number.ts'
import { charge, chargeForWhole } from './budget.ts'

/** Whether no item occurs twice, in linear time: comparing each with each takes minutes for long lists. */
export function allDifferent(items: readonly unknown[]): boolean {
  const seen = new Set<string>()
  for (const item of items) {
    const key = canonical(item)
    if (seen.has(key)) return false
    seen.add(key)
  }
  return true
}

/** Equal values give equal texts, in whatever order their members stand. */
export function canonical(value: unknown): string {
  charge(1)
  const text = spelled(value)
  chargeForWhole(text, 1)
  return text
}

function spelled(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (value instanceof Numeral) return decimalForm(value.source)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`
}
