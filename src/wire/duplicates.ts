import { CLOSE_ARRAY, CLOSE_OBJECT, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipSpace, skipString, wordsOf } from './skip.ts'

/**
 * Whether some object, at any depth, has a key twice: one parser would take the first and another the last, so what
 * was checked here might not be what a server runs. The bytes must be JSON that a reader of this folder has accepted.
 */
export function hasDuplicateKeys(bytes: Buffer): boolean {
  const words = wordsOf(bytes)
  /** The keys of each open object; nothing for an open array. */
  const open: (Set<string> | undefined)[] = []
  for (let at = skipSpace(bytes, 0); at < bytes.length; at = skipSpace(bytes, at)) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      const from = at
      at = skipString(bytes, words, at + 1)
      if (at < 0) return false
      const keys = open[open.length - 1]
      if (keys === undefined || bytes[skipSpace(bytes, at)] !== 0x3a) continue
      const key = JSON.parse(bytes.toString('utf8', from, at)) as string
      if (keys.has(key)) return true
      keys.add(key)
    } else {
      if (byte === OPEN_OBJECT) open.push(new Set())
      else if (byte === OPEN_ARRAY) open.push(undefined)
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) open.pop()
      at++
    }
  }
  return false
}
