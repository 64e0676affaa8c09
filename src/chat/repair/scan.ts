import { spend, type TextReader } from './reader.ts'

/** Where the next character stands that is neither space nor comment. */
export function pastGap(text: string, from: number): number {
  let at = pastSpaces(text, from)
  for (let past = pastComment(text, at); past > at; past = pastComment(text, at)) at = pastSpaces(text, past)
  return at
}

/** Moves over spaces and comments, and over the dots that stand for what a model left out. */
export function skipGap(reader: TextReader): void {
  const { text } = reader
  const from = reader.at
  for (;;) {
    const spaced = pastSpaces(text, reader.at)
    const past = pastComment(text, spaced)
    if (past > spaced) reader.repairs.add('took away comments')
    const dots = pastEllipsis(text, past)
    if (dots > past) reader.repairs.add('took away ellipses')
    if (dots === reader.at) break
    reader.at = dots
  }
  spend(reader.budget, 1 + reader.at - from)
}

function pastComment(text: string, at: number): number {
  const sign = text[at]
  if (sign === '#' || (sign === '/' && text[at + 1] === '/')) return endOr(text, text.indexOf('\n', at))
  if (sign === '/' && text[at + 1] === '*') return past(text, at + 2, '*/')
  return sign === '<' && text.startsWith('<!--', at) ? past(text, at + 4, '-->') : at
}

function pastEllipsis(text: string, at: number): number {
  if (text[at] === '…') return at + 1
  return text.startsWith('...', at) ? at + 3 : at
}

function past(text: string, from: number, end: string): number {
  const found = text.indexOf(end, from)
  return found < 0 ? text.length : found + end.length
}

const endOr = (text: string, found: number): number => (found < 0 ? text.length : found)

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

const wide: Readonly<Record<string, string>> = {
  '：': ':',
  '，': ',',
  '、': ',',
  '；': ';',
  '｛': '{',
  '｝': '}',
  '［': '[',
  '］': ']',
  '（': '(',
  '）': ')',
  '＝': '=',
}

/** The sign that stands at a place, full-width ones as their plain relatives; empty at the end of the text. */
export function signAt(text: string, at: number): string {
  const sign = text.charAt(at)
  return wide[sign] ?? sign
}

/** Each opening quote and what may close it: models mix them. */
const closers: Readonly<Record<string, string>> = {
  '"': '"”',
  "'": "'",
  '`': '`',
  '“': '”“"',
  '”': '”"',
  '„': '“”"',
  '‘': "’‘'",
  '’': "’'",
  '«': '»',
  '＂': '＂"',
}

export const isQuote = (sign: string): boolean => sign !== '' && sign in closers

/** What may close a string that this quote opens. */
export const closersOf = (quote: string): string => closers[quote] ?? quote

/** Whether a value, a container or the whole text may end here. */
export const endsValue = (sign: string): boolean => sign === '' || ',;]})'.includes(sign)

const spaces = /[\s\u200B-\u200D\u2060\uFEFF\u180E]/

export const isSpace = (sign: string): boolean =>
  sign === ' ' || sign === '\n' || sign === '\r' || sign === '\t' || (sign > '\x7f' && spaces.test(sign))

/** Where the next character stands that is no space. */
export function pastSpaces(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text.charAt(at))) at++
  return at
}

/** Text that follows a value which was cut off: the end of a fence, or a token that ends an answer. */
export const endsAnswer = (text: string, at: number): boolean =>
  text.startsWith('```', at) || text.startsWith('~~~', at) || text.startsWith('<|', at) || text.startsWith('</', at)

/** What the short escapes of JSON strings stand for, by the character after the backslash. */
export const shortEscapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}
