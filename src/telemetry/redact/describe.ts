import { Numeral } from '../../lib/exact-number.ts'
import type { Redactor } from './redactor.ts'

export type ArgumentsMode = 'none' | 'shape' | 'redacted' | 'full'

/** What is written down of the arguments of a call; `undefined` for nothing. */
export type Describe = (given: Readonly<Record<string, unknown>>) => unknown

/** Full means everything but the secrets of our own configuration: those are nobody's arguments. */
export function describeArguments(mode: ArgumentsMode, redactor: Redactor): Describe {
  if (mode === 'none') return () => undefined
  if (mode === 'shape') return (given) => shapeOf(given, redactor)
  return mode === 'redacted' ? (given) => redactor.value(given) : (given) => redactor.known(given)
}

const maxMembers = 64
const deepest = 8

/** Types and sizes: `{ path: 'string(12)', lines: ['array(3)', 'number'] }`. Names are kept, without secrets. */
function shapeOf(value: unknown, redactor: Redactor, depth = 0): unknown {
  if (typeof value === 'string') return `string(${value.length})`
  if (typeof value !== 'object') return typeof value
  if (value === null) return 'null'
  if (value instanceof Numeral) return 'number'
  if (Array.isArray(value)) {
    const size = `array(${value.length})`
    return value.length === 0 || depth >= deepest ? size : [size, shapeOf(value[0], redactor, depth + 1)]
  }
  const entries = Object.entries(value)
  if (depth >= deepest || entries.length > maxMembers) return `object(${entries.length})`
  return Object.fromEntries(
    entries.map(([name, member]) => [redactor.text(name), shapeOf(member, redactor, depth + 1)]),
  )
}
