import { atEnd, cutOff, noValue, type Reader, spend } from './reader.ts'
import { endsAnswer, isQuote } from './signs.ts'

const words: Readonly<Record<string, boolean | null>> = {
  true: true,
  false: false,
  null: null,
  none: null,
  nil: null,
  undefined: null,
  'void 0': null,
  nan: null,
  '-nan': null,
  inf: null,
  '-inf': null,
  '+inf': null,
  infinity: null,
  '-infinity': null,
  '+infinity': null,
}

const json = new Set(['true', 'false', 'null'])

/** The words that a text may be cut off in the middle of; nothing else begins like them. */
const cutWords = ['true', 'false', 'null', 'none'] as const

/** An unquoted text ends with its line, or where a list or a member would. */
const bare = /[^,;\n\r\]}，］｝]*/y

/** Reads `true`, a word that another language has for it, or text without quotes. */
export function readWord(reader: Reader): unknown {
  const { text, at } = reader
  bare.lastIndex = at
  const line = bare.exec(text)?.[0] ?? ''
  spend(reader.purse, 1 + line.length)
  const found = line.replace(/\s*(?:\/\/|\/\*|\s#|```|<\||<\/)[\s\S]*$/, keepUrls)
  const word = found.trimEnd()
  if (word === '' || word.startsWith(':')) throw noValue
  reader.at += word.length
  const known = word.toLowerCase()
  if (Object.hasOwn(words, known)) {
    if (!json.has(word)) reader.repairs.add('translated words')
    return words[known]
  }
  // `hello", "b": 1`: the opening quote is missing.
  const isClosed = isQuote(word.at(-1) as string) && !isQuote(word.charAt(0))
  if (!isClosed && (atEnd(reader) || endsAnswer(text, reader.at))) {
    const whole = cutWords.find((candidate) => candidate.startsWith(known))
    cutOff(reader)
    if (whole) return words[whole]
  }
  reader.repairs.add('quoted text')
  reader.unquoted += word.length
  return isClosed ? word.slice(0, -1) : word
}

/** Two slashes end a text unless they belong to an address. */
function keepUrls(tail: string, offset: number, text: string): string {
  return tail.startsWith('//') && text[offset - 1] === ':' ? tail : ''
}
