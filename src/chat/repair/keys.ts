import { pastGap } from './gap.ts'
import { closersOf, isQuote, pastSpaces, signAt } from './signs.ts'

/** Keys are shorter than this; looking further for their end would cost too much. */
const maxKey = 256

/** Where a quoted string that begins here ends, its quotes taken at their word; -1 where it does not end soon. */
function pastQuoted(text: string, at: number): number {
  const ends = closersOf(text.charAt(at))
  const until = Math.min(text.length, at + maxKey)
  for (let index = at + 1; index < until; index++) {
    const sign = text.charAt(index)
    if (sign === '\\') index++
    else if (sign === '\n') return -1
    else if (ends.includes(sign)) return index + 1
  }
  return -1
}

/** What a quoted string that begins here is followed by; `undefined` where its end is not in sight. */
export function signAfterQuoted(text: string, at: number): string | undefined {
  const past = pastQuoted(text, at)
  return past < 0 ? undefined : signAt(text, pastSpaces(text, past))
}

/** Whether a quoted key and its colon begin here. */
export function isQuotedKey(text: string, at: number): boolean {
  const past = isQuote(text.charAt(at)) ? pastQuoted(text, at) : -1
  if (past < 0) return false
  const next = pastSpaces(text, past)
  return signAt(text, next) === ':' || text.startsWith('=>', next) || text.startsWith('= ', next)
}

/** With an equals sign only where there is space around it: without, it may as well be code inside a string. */
const plainKey = /[\p{L}\p{N}_$][\p{L}\p{N}_$.-]{0,127}["']?\s{0,8}(?:[:：]|=>|(?<=\s)=\s)/uy

/** Whether an unquoted key and its colon begin here. */
export function isPlainKey(text: string, at: number): boolean {
  plainKey.lastIndex = at
  return plainKey.test(text)
}

/** Whether a comma here is followed by another member, quoted and with its colon. */
export function isNextMember(text: string, at: number): boolean {
  return signAt(text, at) === ',' && isQuotedKey(text, pastGap(text, at + 1))
}

const keyOnLine = /[^:={}[\]"'`\n：]{0,160}[:={}[\]"'`：]/y

/** Whether a sentence follows on a line of its own, with nothing in it that a key or a value has. */
export function isProseLine(text: string, at: number): boolean {
  if (!/\p{Lu}/u.test(text.charAt(at)) || !/\n\s*$/.test(text.slice(Math.max(0, at - 16), at))) return false
  keyOnLine.lastIndex = at
  return !keyOnLine.test(text)
}
