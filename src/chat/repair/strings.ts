import type { Repair, TextReader } from './reader.ts'
import {
  closersOf,
  endsAnswer,
  isProseLine,
  isQuotedKey,
  isQuoteSign,
  isUnquotedKey,
  isValueEnd,
  pastGap,
  pastSpaces,
  shortEscapes,
  signAfterQuoted,
  signAt,
} from './scan.ts'

/** Reads the string that starts here, and the strings that are joined to it with a plus sign. */
export function readQuoted(reader: TextReader, role: StringRole): string {
  const first = readOne(reader, role)
  if (role === 'key') return first
  const parts = [first]
  for (;;) {
    const plus = pastSpaces(reader.text, reader.at)
    const next = pastGap(reader.text, plus + 1)
    if (reader.text[plus] !== '+' || !isQuoteSign(reader.text.charAt(next))) return parts.join('')
    reader.repairs.add('joined strings')
    // The plus sign may also be text between unescaped quotes.
    reader.uncertain = true
    reader.at = next
    parts.push(readOne(reader, role))
  }
}

function readOne(reader: TextReader, role: StringRole): string {
  const { text, at } = reader
  const quote = text.charAt(at)
  if (quote !== '"') reader.repairs.add('fixed quotes')
  const triple = readTriple(reader, quote)
  if (triple !== undefined) return triple
  const { end, past, open } = findEnd(reader, role, quote)
  reader.spend(end - at)
  const raw = text.slice(at + 1, end)
  if (open) reader.cutOff()
  else reader.at = past
  return decodeString(open ? withoutTorn(raw) : raw, quote, reader.repairs)
}

/** Reads a string between `"""` or `'''`, in which quotes and line breaks are literal. */
function readTriple(reader: TextReader, quote: string): string | undefined {
  const { text, at } = reader
  const three = quote.repeat(3)
  if ((quote !== '"' && quote !== "'") || !text.startsWith(three, at)) return undefined
  const end = text.indexOf(three, at + 3)
  reader.spend((end < 0 ? text.length : end) - at)
  if (end < 0) return undefined
  reader.guess('fixed quotes')
  if (text[at + 3] === quote || text[end + 3] === quote) reader.uncertain = true
  reader.at = end + 3
  return decodeString(text.slice(at + 3, end), quote, new Set())
}

interface StringEnd {
  readonly end: number
  readonly past: number
  /** Set if the text ended before the string did. */
  readonly open?: true
  /** Whether the string certainly ends here, because another member follows with its key and the start of its value. */
  readonly certain?: boolean
  /** Whether the string may well have more text, because the quote at its end is escaped. */
  readonly uncertain?: boolean
}

function findEnd(reader: TextReader, role: StringRole, quote: string): StringEnd {
  const { text, at } = reader
  const ends = closersOf(quote)
  /** The number of unescaped quotes inside the string. They come in pairs unless the string ends elsewhere. */
  let inner = 0
  /** Whether a curly quote was opened inside the string. Its closing quote is then part of the string. */
  let paired = false
  let rescue: StringEnd | undefined
  for (let index = at + 1; index < text.length; index++) {
    const sign = text.charAt(index)
    if (sign === '\\') {
      index++
      rescue ??= escapedEnd(reader, index, role, quote)
    } else if (sign === '“' && quote === '"') paired = true
    else if (ends.includes(sign)) {
      if (!(paired && sign === '”') && closes(reader, index, role)) {
        if (inner > 0) {
          reader.guess('escaped quotes')
          if (inner % 2 === 1) reader.uncertain = true
        }
        return { end: index, past: index + 1 }
      }
      rescue ??= forgotten(reader, at, index, role, inner === 0)
      // If no other quote came before, the string almost certainly ends here: `{"a": "x, "b": "y"}`.
      if (inner === 0 && rescue?.certain) {
        reader.guess('fixed quotes')
        return rescue
      }
      // A key after an odd number of quotes is a member that follows the string.
      if (inner % 2 === 1 && isQuotedKey(text, index)) reader.uncertain = true
      if (!isApostrophe(text, index)) inner++
      else reader.repairs.add('escaped quotes')
    }
  }
  return takeRescue(reader, rescue) ?? lostAtTheEnd(reader, role)
}

/**
 * The end of a string such as `"C:\"}`, whose closing quote is escaped. Something valid must follow that quote. In text
 * that is not a path, the quote is more likely part of the string, and the closing quote is missing: `"say \"hi\"}`.
 */
function escapedEnd(reader: TextReader, at: number, role: StringRole, quote: string): StringEnd | undefined {
  const { text, uncertain } = reader
  if (text[at] !== quote) return undefined
  const isEnd = closes(reader, at, role) && pastSpaces(text, at + 1) < text.length
  const isTorn = reader.uncertain
  // It only matters if no other end is found: `["say \"hi\"" "x"]`.
  reader.uncertain = uncertain
  if (!isEnd) return undefined
  const raw = text.slice(reader.at + 1, Math.min(at, reader.at + 1 + lookBack))
  return { end: at, past: at + 1, uncertain: isTorn || !windowsPathStart.test(raw) || raw.includes(`\\${quote}`) }
}

/** What may be between the end of an unterminated string and the next key. */
const beforeKey = /(,)?[^\S\n]*(?:(?<=[,\s])(?:\/\/|#)[^\n]*)?(\n)?\s*$/
const keyBefore =
  /,(?:\s?[\p{L}_$][\p{L}\p{N}_$-]{0,63}: ?(?:true|false|null|none|-?[\d.]{1,16}),)*\s{0,8}[\p{L}_$][\p{L}\p{N}_$-]{0,63}\s?[:：]\s?[[{]{0,2}\s?$/iu
const keyOnNextLine = /,[^\S\n]*(?:\/\/[^\n]*)?\n\s*[\p{L}_$][\p{L}\p{N}_$-]{0,63}[:：]\s/u
const lookBack = 160

/** The end of an unclosed string before the next quoted key or value: `{"a": "x, "b": 1}`, `{a: "x, b: "y"}`. */
function forgotten(
  reader: TextReader,
  from: number,
  at: number,
  role: StringRole,
  isFirst: boolean,
): StringEnd | undefined {
  if (role !== 'member') return undefined
  const { text } = reader
  const isKey = isQuotedKey(text, at)
  if (!isKey && !isFirst) return undefined
  reader.spend(32)
  const begin = Math.max(from + 1, at - lookBack)
  const before = text.slice(begin, at)
  if (!isKey) {
    const plain = keyOnNextLine.exec(before) ?? keyBefore.exec(before)
    return plain ? { end: begin + plain.index, past: begin + plain.index, certain: true } : undefined
  }
  const [whole = '', comma, broken] = beforeKey.exec(before) ?? []
  const end = at - whole.length
  if (comma === undefined && broken === undefined) return undefined
  return { end, past: end, certain: (comma !== undefined && broken !== undefined) || beginsMember(text, at) }
}

const memberStart = /(["'“‘])[\w $.-]{1,64}["'”’]\s{0,8}[:：]\s{0,8}(?:["'“‘[{\d-]|true|false|null|none)/iy

function beginsMember(text: string, at: number): boolean {
  memberStart.lastIndex = at
  return memberStart.test(text)
}

function takeRescue(reader: TextReader, rescue: StringEnd | undefined): StringEnd | undefined {
  if (!rescue || reader.rescues === 0) return undefined
  reader.rescues--
  reader.spend(reader.text.length - reader.at)
  reader.guess('fixed quotes')
  if (rescue.uncertain) reader.uncertain = true
  return rescue
}

/** Ends an unclosed, possibly incomplete string at the end of the text, before any closing brackets: `{"a": ["x]}`. */
function lostAtTheEnd(reader: TextReader, role: StringRole): StringEnd {
  const { text } = reader
  const open = role === 'key' ? [] : reader.open
  reader.lacks = 'more'
  reader.spend(text.length - reader.at)
  let end = text.length
  if (open.length === 0) return { end, past: end, open: true }
  for (const opener of open) {
    while (end > reader.at && /\s/.test(text.charAt(end - 1))) end--
    if (text[end - 1] !== (opener === '{' ? '}' : ']')) return { end: text.length, past: text.length, open: true }
    end--
  }
  while (end > reader.at + 1 && /\s/.test(text.charAt(end - 1))) end--
  reader.repairs.add('fixed quotes')
  return { end, past: end }
}

const stringEscapes = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[\s\S])|$)/g
const controlCharacter = /[\x00-\x1f]/
const invalidEscape = /\\(?:u(?![0-9a-fA-F]{4})|x(?![0-9a-fA-F]{2})|[^"\\/bfnrtux'`$\r\n])/
const drive = /^[A-Za-z]:\\(?!\\)/
const windowsPathStart = /^(?:[A-Za-z]:\\|\\\\)/

/**
 * Decodes a string literal. Backslashes that escape nothing are kept. In a string with such backslashes, `\b` and `\f`
 * are also kept as written; in a Windows path, all escapes except quotes are.
 */
export function decodeString(raw: string, quote: string, repairs: Set<Repair>): string {
  if (controlCharacter.test(raw)) repairs.add('escaped control characters')
  if (!raw.includes('\\')) return raw
  const isSloppy = invalidEscape.test(raw.replaceAll('\\\\', ''))
  if (isSloppy) repairs.add('kept backslashes')
  if (isSloppy && drive.test(raw)) return raw.replaceAll(`\\${quote}`, quote)
  return raw.replace(stringEscapes, (whole, unicode?: string, byte?: string, sign?: string) => {
    if (unicode !== undefined) return String.fromCharCode(Number.parseInt(unicode, 16))
    if (byte !== undefined) {
      repairs.add('fixed quotes')
      return String.fromCharCode(Number.parseInt(byte, 16))
    }
    if (sign === undefined) return whole
    if (sign === '\n' || sign === '\r\n') return ''
    if (isSloppy && (sign === 'b' || sign === 'f')) return whole
    if (sign === quote || sign === "'" || sign === '`' || sign === '$') return sign
    return shortEscapes[sign] ?? whole
  })
}

/** Removes an escape or surrogate pair that was cut off. */
const withoutTorn = (raw: string): string =>
  raw
    .replace(/(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?$/, '$1')
    .replace(/\\u[dD][89abAB][0-9a-fA-F]{2}$/, '')
    .replace(/[\uD800-\uDBFF]$/, '')

/** The role of a string, which determines what may follow it. */
export type StringRole = 'key' | 'member' | 'item'

/**
 * Whether a quote ends its string; otherwise it is an unescaped quote within the string. The text after it decides: a
 * colon after a key, a comma and another key after a member, a comma or bracket after an item.
 */
function closes(reader: TextReader, at: number, role: StringRole): boolean {
  const { text } = reader
  const next = pastSpaces(text, at + 1)
  reader.spend(next - at)
  const sign = signAt(text, next)
  if (sign === '' || endsAnswer(text, next) || isCommentStart(text, at, next)) return true
  if (role === 'key') return endsKey(text, next, sign)
  if (sign === '+') return isQuoteSign(text.charAt(pastSpaces(text, next + 1)))
  if (sign === ')') return reader.open.includes('[') || pastSpaces(text, next + 1) === text.length
  if ((sign === '}' || sign === ']') && isInsideText(reader, at, next)) return false
  if (sign === '}') return role === 'member' || reader.open.includes('{')
  if (sign === ']') return role === 'item' || reader.open.includes('[') || isLast(text, next)
  return role === 'member' ? endsMember(reader, at, next, sign) : endsItem(reader, at, next, sign)
}

const literalWord = /(?:true|false|null|none)\b/iy

function endsKey(text: string, next: number, sign: string): boolean {
  if (':=,}])'.includes(sign) || '{[-'.includes(sign) || isQuoteSign(sign) || (sign >= '0' && sign <= '9')) return true
  literalWord.lastIndex = next
  return literalWord.test(text)
}

function endsMember(reader: TextReader, at: number, next: number, sign: string): boolean {
  const { text } = reader
  if (sign === ',' || sign === ';') {
    const after = pastGap(text, next + 1)
    reader.spend(after - next + 8)
    const follower = signAt(text, after)
    if (follower === '' || '},{['.includes(follower) || endsAnswer(text, after)) return true
    if (isQuoteSign(follower)) return mayBeKey(reader, after)
    return isUnquotedKey(text, after) || text.startsWith('...', after)
  }
  if (isQuoteSign(sign)) return next > at + 1 && isQuotedKey(text, next)
  return text.slice(at, next).includes('\n') && (isUnquotedKey(text, next) || isProseLine(text, next))
}

/** Whether the quoted string here may be a key: a colon, equals sign or brace follows, or its end is not found. */
function mayBeKey(reader: TextReader, at: number): boolean {
  reader.spend(16)
  const after = signAfterQuoted(reader.text, at)
  // A key and its value without a colon between them, or text between unescaped quotes.
  if (after !== undefined && isQuoteSign(after)) reader.uncertain = true
  return after === undefined || ':=}'.includes(after)
}

const plainItem =
  /(?:[-+.]{0,2}(?:\d|$)|(?:true|false|null)(?:[^\S\n]{0,64}\n|")|[\w$][\w$ .-]{0,63}\s{0,64}(?:[,\]}]|$))/y

function endsItem(reader: TextReader, at: number, next: number, sign: string): boolean {
  const { text } = reader
  // If two quotes are adjacent at the end of an item, the first one is part of the text.
  if (isQuoteSign(sign) && next === at + 1) {
    if (isValueEnd(signAt(text, pastSpaces(text, next + 1)))) return false
    reader.uncertain = true
  }
  if (isQuoteSign(sign)) return true
  if (sign !== ',' && sign !== ';') return (sign === '{' || sign === '[') && next > at + 1
  const after = pastGap(text, next + 1)
  reader.spend(after - next + 8)
  const follower = signAt(text, after)
  if (follower === '' || ',]}){[(…'.includes(follower) || isQuoteSign(follower) || endsAnswer(text, after)) return true
  plainItem.lastIndex = after
  return plainItem.test(text) || text.startsWith('...', after)
}

const isCommentStart = (text: string, at: number, next: number): boolean =>
  text.startsWith('//', next) || text.startsWith('/*', next) || (text[next] === '#' && next > at + 1)

/** Whether brackets are part of a string, because another quote, which does not open a key, follows them. */
function isInsideText(reader: TextReader, quote: number, at: number): boolean {
  const { text } = reader
  let next = at
  while (next < text.length && ' }])'.includes(text.charAt(next))) next++
  reader.spend(next - at)
  return text[next] === text[quote] && !isQuotedKey(text, next)
}

const apostrophe = /\p{L}['’]\p{L}/uy

function isApostrophe(text: string, at: number): boolean {
  apostrophe.lastIndex = at - 1
  return apostrophe.test(text)
}

/** Whether a value ends after this bracket. Only then can an unmatched bracket close something. */
function isLast(text: string, at: number): boolean {
  const sign = signAt(text, pastSpaces(text, at + 1))
  return sign === '' || sign === ',' || sign === '}'
}
