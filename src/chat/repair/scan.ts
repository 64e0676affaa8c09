/** The position after any whitespace and comments. */
export function pastGap(text: string, from: number): number {
  let at = pastSpaces(text, from)
  for (let past = pastComment(text, at); past > at; past = pastComment(text, at)) at = pastSpaces(text, past)
  return at
}

/** Whether a comment after other text on its line contains quotes or brackets, which may belong to the value. */
export const mayHideMembers = (text: string, from: number, past: number): boolean =>
  /["}\]]/.test(text.slice(from, past)) && !/(?:^|\n)\s*$/.test(text.slice(Math.max(0, from - 80), from))

export function pastComment(text: string, at: number): number {
  const sign = text[at]
  // The line break is not part of the comment.
  if (sign === '#' || (sign === '/' && text[at + 1] === '/')) return past(text, at, '\n', 0)
  if (sign === '/' && text[at + 1] === '*') return past(text, at + 2, '*/')
  return sign === '<' && text.startsWith('<!--', at) ? past(text, at + 4, '-->') : at
}

export function pastEllipsis(text: string, at: number): number {
  if (text[at] === '…') return at + 1
  return text.startsWith('...', at) ? at + 3 : at
}

function past(text: string, from: number, end: string, length = end.length): number {
  const found = text.indexOf(end, from)
  return found < 0 ? text.length : found + length
}

/** How far to search for the end of a key. Keys are usually shorter, and a longer search would cost too much. */
const maxKeySearch = 256

/** The position after the quoted string here, which ends at the first closing quote; -1 if there is none nearby. */
function pastQuoted(text: string, at: number): number {
  const ends = closersOf(text.charAt(at))
  const until = Math.min(text.length, at + maxKeySearch)
  for (let index = at + 1; index < until; index++) {
    const sign = text.charAt(index)
    if (sign === '\\') index++
    else if (sign === '\n') return -1
    else if (ends.includes(sign)) return index + 1
  }
  return -1
}

/** The character after the quoted string that starts here; `undefined` if its end is not found. */
export function signAfterQuoted(text: string, at: number): string | undefined {
  const past = pastQuoted(text, at)
  return past < 0 ? undefined : signAt(text, pastSpaces(text, past))
}

/** Whether a quoted key and its colon start here. */
export function isQuotedKey(text: string, at: number): boolean {
  const past = isQuoteSign(text.charAt(at)) ? pastQuoted(text, at) : -1
  if (past < 0) return false
  const next = pastSpaces(text, past)
  return signAt(text, next) === ':' || text.startsWith('=>', next) || text.startsWith('= ', next)
}

/** An unquoted key with its colon or equals sign. An equals sign needs spaces, or it may be code inside a string. */
const plainKey = /[\p{L}\p{N}_$][\p{L}\p{N}_$.-]{0,127}["']?\s{0,8}(?:[:：]|=>|(?<=\s)=\s)/uy

/** Whether an unquoted key and its colon start here. */
export function isUnquotedKey(text: string, at: number): boolean {
  plainKey.lastIndex = at
  return plainKey.test(text)
}

/** Whether a comma here is followed by a quoted key and a colon. */
export function isNextMember(text: string, at: number): boolean {
  return signAt(text, at) === ',' && isQuotedKey(text, pastGap(text, at + 1))
}

const keyOnLine = /[^:={}[\]"'`\n：]{0,160}[:={}[\]"'`：]/y

/** Whether a line of prose starts here, that is, a line with nothing that looks like a key or value. */
export function isProseLine(text: string, at: number): boolean {
  if (!/\p{Lu}/u.test(text.charAt(at)) || !/\n\s*$/.test(text.slice(Math.max(0, at - 16), at))) return false
  keyOnLine.lastIndex = at
  return !keyOnLine.test(text)
}

const asciiPunctuation = [...':,,;{}[]()=']
const widePunctuation = new Map(
  [...'：，、；｛｝［］（）＝'].map((sign, index) => [sign, asciiPunctuation[index] as string]),
)

/** The character at a position, with full-width punctuation mapped to ASCII; empty at the end of the text. */
export function signAt(text: string, at: number): string {
  const sign = text.charAt(at)
  return widePunctuation.get(sign) ?? sign
}

/** Opening quotes, each with the quotes that may close it, because models mix different quotes. */
const closingQuotes: Readonly<Record<string, string>> = {
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

export const isQuoteSign = (sign: string): boolean => sign !== '' && sign in closingQuotes

export const closersOf = (quote: string): string => closingQuotes[quote] ?? quote

export const isValueEnd = (sign: string): boolean => sign === '' || ',;]})'.includes(sign)

const wideSpaces = /[\s\u200B-\u200D\u2060\uFEFF\u180E]/

export const isSpaceSign = (sign: string): boolean =>
  sign === ' ' || sign === '\n' || sign === '\r' || sign === '\t' || (sign > '\x7f' && wideSpaces.test(sign))

/** The position after any whitespace. */
export function pastSpaces(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpaceSign(text.charAt(at))) at++
  return at
}

/** Whether the answer ends here, with a closing fence or a special token. */
export const endsAnswer = (text: string, at: number): boolean =>
  text.startsWith('```', at) || text.startsWith('~~~', at) || text.startsWith('<|', at) || text.startsWith('</', at)

/** JSON's short escapes, by the character after the backslash. */
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
