import { noValue, type TextReader } from './reader.ts'
import { endsAnswer, isQuoteSign, isSpaceSign, isUnquotedKey, isValueEnd, pastSpaces, signAt } from './scan.ts'
import { decodeString } from './strings.ts'

const plainNumber = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const loose = /[+-]?(?:0[xX][\da-fA-F]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d*)?)n?/y
const thousands = /,\d{3}(?!\d)/y

/** Reads a number; undefined if what follows makes it text: `12px`, `2026-11-03`. */
export function readNumber(reader: TextReader): number | string | null | undefined {
  const number = readPlainNumber(reader) ?? readLoose(reader)
  // At the end of the text, more digits may have been cut off.
  if (number !== undefined && reader.isAtEnd) reader.lacks ??= 'maybe-more'
  return number
}

function readPlainNumber(reader: TextReader): number | null | undefined {
  const { text, at } = reader
  plainNumber.lastIndex = at
  const [found] = plainNumber.exec(text) ?? []
  if (found === undefined || !endsNumber(text, at + found.length)) return undefined
  reader.at += found.length
  return readGroups(reader, found) ?? finite(reader, Number(found))
}

function readLoose(reader: TextReader): number | string | null | undefined {
  const { text, at } = reader
  loose.lastIndex = at
  const [found] = loose.exec(text) ?? []
  if (found === undefined || !endsNumber(text, at + found.length)) return undefined
  reader.at += found.length
  // Digits with a leading zero are a code rather than a number, so keep them as a string.
  if (/^0\d/.test(found)) {
    reader.repairs.add('quoted text')
    return found
  }
  const digits = found.replaceAll('_', '').replace(/n$/, '')
  const torn = /[eE][+-]?$/.test(digits) || (digits.endsWith('.') && reader.isAtEnd)
  if (torn) reader.cutOff()
  reader.repairs.add('translated numbers')
  return finite(reader, numberOf(digits.replace(/[eE][+-]?$/, '')))
}

const numberOf = (digits: string): number =>
  /^[+-]?0x/i.test(digits) ? (digits.startsWith('-') ? -1 : 1) * Number(digits.replace(/^[+-]/, '')) : Number(digits)

/** Reads `1,234,567` as the value of a member. In an object this is unambiguous, because a key needs a colon. */
function readGroups(reader: TextReader, found: string): number | undefined {
  if (reader.open.at(-1) !== '{' || !/^-?[1-9]\d{0,2}$/.test(found)) return undefined
  let digits = found
  for (;;) {
    thousands.lastIndex = reader.at
    const [group] = thousands.exec(reader.text) ?? []
    if (group === undefined || !endsNumber(reader.text, reader.at + group.length)) break
    digits += group.slice(1)
    reader.at += group.length
  }
  if (digits === found) return undefined
  reader.repairs.add('translated numbers')
  return Number(digits)
}

/** The number, or null if it overflows, because JSON has no infinity. */
function finite(reader: TextReader, value: number): number | null {
  if (Number.isFinite(value)) return value
  reader.repairs.add('translated numbers')
  return null
}

/** Whether a number may end here. It may not in `5 apples` or `1/2`, which are text. */
function endsNumber(text: string, at: number): boolean {
  const sign = signAt(text, at)
  if (isValueEnd(sign) || sign === '#' || isQuoteSign(sign) || endsAnswer(text, at)) return true
  if (sign === '/') return text[at + 1] === '/' || text[at + 1] === '*'
  if (!isSpaceSign(sign)) return false
  const next = pastSpaces(text, at)
  return !/[A-Za-z%€°]/.test(text.charAt(next)) || text.slice(at, next).includes('\n') || isUnquotedKey(text, next)
}

/** Words that become null, including NaN and infinity, which JSON does not have. */
const nullWords = /^(?:null|none|nil|undefined|void 0|-?nan|[-+]?inf(?:inity)?)$/

function meaningOf(word: string): boolean | null | undefined {
  if (word === 'true' || word === 'false') return word === 'true'
  return nullWords.test(word) ? null : undefined
}

const jsonWords = new Set(['true', 'false', 'null'])

/** Words that are recognized even if they are cut off. */
const cutWords = ['true', 'false', 'null', 'none'] as const

/** Unquoted text, which ends at the end of the line or where an item or member would end. */
const bareText = /[^,;\n\r\]}，］｝]*/y

/** Reads `true`, `false`, `null`, their equivalents in other languages, or unquoted text. */
export function readWord(reader: TextReader): unknown {
  const { text, at } = reader
  bareText.lastIndex = at
  const line = bareText.exec(text)?.[0] ?? ''
  reader.spend(1 + line.length)
  const found = line.replace(/\s*(?:\/\/|\/\*|\s#|```|<\||<\/)[\s\S]*$/, keepUrls)
  const word = found.trimEnd()
  if (word === '' || word.startsWith(':')) throw noValue
  reader.at += word.length
  const known = word.toLowerCase()
  const meaning = meaningOf(known)
  if (meaning !== undefined) {
    if (!jsonWords.has(word)) reader.repairs.add('translated words')
    return meaning
  }
  // `hello", "b": 1`: the opening quote is missing.
  const isClosed = isQuoteSign(word.at(-1) as string) && !isQuoteSign(word.charAt(0))
  if (!isClosed && (reader.isAtEnd || endsAnswer(text, reader.at))) {
    const whole = cutWords.find((candidate) => candidate.startsWith(known))
    reader.cutOff()
    if (whole) return meaningOf(whole)
  }
  reader.damage('quoted text')
  reader.unquoted += word.length
  const inner = isClosed ? word.slice(0, -1) : word
  // The next value, or text between unescaped quotes: `null"b": 2`. Text goes on after an escaped quote: `a \"b\", c"`.
  if (unescapedQuote.test(inner) || (isClosed && openEscape.test(inner))) reader.uncertain = true
  return isClosed ? decodeString(inner, word.at(-1) as string, reader.repairs) : word
}

const unescapedQuote = /(?<!\\)(?:\\\\)*"/
const openEscape = /(?<!\\)(?:\\\\)*\\$/

/** Keeps the part of a URL that looks like a comment because it starts with two slashes; removes real comments. */
function keepUrls(tail: string, offset: number, text: string): string {
  return tail.startsWith('//') && text[offset - 1] === ':' ? tail : ''
}
