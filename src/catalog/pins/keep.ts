import { createHash } from 'node:crypto'
import type { Definition } from '../../core/entry.ts'
import { definitionText } from './canonical.ts'

/** A field longer than this is known by its hash alone; a pin must not grow with a server's wordiness. */
const maxField = 8_192
const maxInAll = 16_384
const maxFields = 64

/** A copy of a definition for people to compare with a later one: bounded, and still different where it was different. */
export function keptCopy(definition: Definition): Definition {
  const copy: Record<string, unknown> = {}
  let room = maxInAll
  for (const [index, [key, value]] of Object.entries(definition).entries()) {
    const text = definitionText(value)
    const keeps = text.length <= Math.min(maxField, room) && index < maxFields && key.length < 200
    if (keeps) room -= text.length
    if (index >= maxFields) continue
    Object.defineProperty(copy, key.slice(0, 200), {
      value: keeps ? value : stub(text),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return copy
}

const stub = (text: string): string => {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `(${text.length} characters, too long to keep; sha256 ${hash})`
}
