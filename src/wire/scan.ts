import { Cursor } from './cursor.ts'

/** The top-level members of a JSON object: each key, decoded, with the bytes of its value, which are slices. */
export type Members = ReadonlyMap<string, Buffer>

/**
 * Finds the members of one JSON object without building their values. `undefined` for anything that `JSON.parse`
 * would refuse, that is not an object, that nests deeper than `maxDepth`, or that has a top-level key twice:
 * two parsers that disagree about which one counts are how checks are got round.
 */
export function members(bytes: Buffer): Members | undefined {
  const found = new Map<string, Buffer>()
  const whole = walk(bytes, (key, start, end) => {
    if (found.has(key)) return false
    found.set(key, bytes.subarray(start, end))
    return true
  })
  return whole ? found : undefined
}

/** Whether the bytes are exactly one JSON value that nests no deeper than `maxDepth`. */
export function isJson(bytes: Buffer): boolean {
  const cursor = new Cursor(bytes)
  if (!cursor.value()) return false
  cursor.space()
  return cursor.atEnd
}

/** The value of a top-level boolean member, as `JSON.parse` would give it; false when absent. The key is plain letters. */
export function peekBoolean(bytes: Buffer, key: string): boolean {
  // Most results do not name the key at all, and a native search says so without reading them once more.
  // Letters can otherwise only be spelt as \u escapes.
  if (!bytes.includes(`"${key}"`) && !bytes.includes('\\u')) return false
  let value = false
  walk(bytes, (name, start, end) => {
    if (name === key) value = end - start === 4 && bytes[start] === 0x74
    return true
  })
  return value
}

/** Whether brackets nest deeper than this. Works on any bytes, also where they are not JSON. */
export function depthExceeds(bytes: Buffer, limit: number): boolean {
  const cursor = new Cursor(bytes)
  let depth = 0
  while (!cursor.atEnd) {
    const byte = bytes[cursor.at++] as number
    if (byte === 0x22) {
      if (!cursor.string()) return false
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > limit) return true
    } else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return false
}

/** Visits each member until the visitor says false; true if the bytes are one object and all of it was visited. */
function walk(bytes: Buffer, visit: (key: string, start: number, end: number) => boolean): boolean {
  const cursor = new Cursor(bytes)
  if (!cursor.enter()) return false
  if (!cursor.leave()) {
    do {
      cursor.space()
      const from = cursor.at
      if (!cursor.take(0x22) || !cursor.string()) return false
      const key = cursor.escaped
        ? (JSON.parse(bytes.toString('utf8', from, cursor.at)) as string)
        : bytes.toString('utf8', from + 1, cursor.at - 1)
      cursor.space()
      if (!cursor.take(0x3a)) return false
      cursor.space()
      const start = cursor.at
      if (!cursor.value(1) || !visit(key, start, cursor.at)) return false
    } while (cursor.next())
    if (!cursor.leave()) return false
  }
  cursor.space()
  return cursor.atEnd
}
