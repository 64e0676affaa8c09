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
