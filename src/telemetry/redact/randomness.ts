/** Whether a stretch has a digit early on, or changes case like no word does. Words with hyphens do neither. */
export function hasDigit(text: string, from: number, to: number): boolean {
  const end = Math.min(to, from + 48)
  let changes = 0
  let before = -1
  for (let at = from; at < end; at++) {
    const kind = kindOf(text.charCodeAt(at))
    if (kind === digit) return true
    if (kind === other) continue
    if (before !== -1 && kind !== before) changes++
    before = kind
  }
  return changes >= 6
}

/**
 * Whether nobody made a stretch up in words: it goes from lower case to upper case to digits and back all the time,
 * and has digits in several places. Identifiers (`createHmacSha256Digest`), paths, hashes and UUIDs do not.
 */
export function looksRandom(text: string, from: number, to: number): boolean {
  let changes = 0
  let digits = 0
  let letters = 0
  let seen = 0
  let before = -1
  for (let at = from; at < to; at++) {
    const kind = kindOf(text.charCodeAt(at))
    if (kind === other) continue
    letters++
    seen |= 1 << kind
    if (kind !== before) {
      if (before !== -1) changes++
      if (kind === digit) digits++
    }
    before = kind
  }
  return seen === all && digits >= 2 && changes * 3 >= letters && letters * 5 >= (to - from) * 4
}

/** A hash of at least 128 bits or a UUID. */
export const isHex = (text: string, from: number, to: number): boolean =>
  /^(?:[0-9a-f]{32,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i.test(text.slice(from, to))

const digit = 0
const upper = 1
const lower = 2
const other = 3
const all = 7

function kindOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return digit
  if (code >= 0x41 && code <= 0x5a) return upper
  return code >= 0x61 && code <= 0x7a ? lower : other
}
