import { pastGap } from './gap.ts'
import { isPlainKey, isProseLine, isQuotedKey, signAfterQuoted } from './keys.ts'
import { type Reader, spend } from './reader.ts'
import { endsAnswer, endsValue, isQuote, pastSpaces, signAt } from './signs.ts'

/** What a string is for, which decides what may follow it. */
export type Role = 'key' | 'member' | 'item'

/**
 * Whether a quote ends the string that it stands in, or was meant to be part of it and lacks its backslash. Only what
 * follows can tell: a colon after a key, a comma and another key after a member, a comma or a bracket after an item.
 */
export function closes(reader: Reader, at: number, role: Role): boolean {
  const { text } = reader
  const next = pastSpaces(text, at + 1)
  spend(reader.purse, next - at)
  const sign = signAt(text, next)
  if (sign === '' || endsAnswer(text, next) || isComment(text, at, next)) return true
  if (role === 'key') return endsKey(text, next, sign)
  if (sign === '+') return isQuote(text.charAt(pastSpaces(text, next + 1)))
  if (sign === ')' || sign === ';') return true
  if (sign === '}') return role === 'member' || reader.open.includes('{')
  if (sign === ']') return role === 'item' || reader.open.includes('[') || isLast(text, next)
  return role === 'member' ? endsMember(reader, at, next, sign) : endsItem(reader, at, next, sign)
}

const word = /(?:true|false|null|none)\b/iy

function endsKey(text: string, next: number, sign: string): boolean {
  if (':=,}])'.includes(sign) || '{[-'.includes(sign) || isQuote(sign) || (sign >= '0' && sign <= '9')) return true
  word.lastIndex = next
  return word.test(text)
}

function endsMember(reader: Reader, at: number, next: number, sign: string): boolean {
  const { text } = reader
  if (sign === ',') {
    const after = pastGap(text, next + 1)
    spend(reader.purse, after - next + 8)
    const follower = signAt(text, after)
    if (follower === '' || '},{['.includes(follower) || endsAnswer(text, after)) return true
    if (isQuote(follower)) return mayBeKey(reader, after)
    return isPlainKey(text, after) || text.startsWith('...', after)
  }
  if (isQuote(sign)) return next > at + 1 && isQuotedKey(text, next)
  return text.slice(at, next).includes('\n') && (isPlainKey(text, next) || isProseLine(text, next))
}

/** A key whose end is out of sight may be one, too; one without a colon only where nothing else can follow. */
function mayBeKey(reader: Reader, at: number): boolean {
  spend(reader.purse, 16)
  const after = signAfterQuoted(reader.text, at)
  return after === undefined || ':=}'.includes(after)
}

const plainItem = /(?:[-+.]{0,2}(?:\d|$)|[\w$][\w$ .-]{0,63}\s{0,64}(?:[,\]}]|$))/y

function endsItem({ text, purse }: Reader, at: number, next: number, sign: string): boolean {
  // Two quotes side by side before the end of an item: the first of them belongs to the text.
  if (isQuote(sign)) return next > at + 1 || !endsValue(signAt(text, pastSpaces(text, next + 1)))
  if (sign !== ',') return (sign === '{' || sign === '[') && next > at + 1
  const after = pastGap(text, next + 1)
  spend(purse, after - next + 8)
  const follower = signAt(text, after)
  if (follower === '' || ',]}){[(…'.includes(follower) || isQuote(follower) || endsAnswer(text, after)) return true
  plainItem.lastIndex = after
  return plainItem.test(text) || text.startsWith('...', after)
}

const isComment = (text: string, at: number, next: number): boolean =>
  text.startsWith('//', next) || text.startsWith('/*', next) || (text[next] === '#' && next > at + 1)

/** A bracket that nobody opened closes something only where nothing but an end follows it. */
function isLast(text: string, at: number): boolean {
  const sign = signAt(text, pastSpaces(text, at + 1))
  return sign === '' || sign === ',' || sign === '}'
}
