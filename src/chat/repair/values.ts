import { noValue, type Opener, type TextReader } from './reader.ts'
import { readNumber, readWord } from './scalars.ts'
import { endsAnswer, isProseLine, isQuotedKey, isQuoteSign, isValueEnd, pastSpaces, signAt } from './scan.ts'
import { readQuoted, type StringRole } from './strings.ts'

/** Reads the value at this position; `undefined` if the text was cut off before it. */
export function readValue(reader: TextReader, role: Exclude<StringRole, 'key'>): unknown {
  const { text } = reader
  const sign = reader.sign
  if (sign === '{') return readObject(reader)
  if (sign === '[' || sign === '(') return readArray(reader)
  if (isQuoteSign(sign)) return readQuoted(reader, role)
  const number = readNumber(reader)
  if (number !== undefined) return number
  const before = matchAt(stringPrefix, text, reader.at)
  if (before !== '') {
    reader.repairs.add('fixed quotes')
    reader.at += before.length
    return readQuoted(reader, role)
  }
  const head = matchAt(callHead, text, reader.at)
  if (head !== '') return readCall(reader, head)
  if (/^[-+.]$/.test(text.slice(reader.at, reader.at + 2))) {
    reader.at++
    if (reader.isAtEnd) reader.cutOff()
    return undefined
  }
  return readWord(reader)
}

function readCall(reader: TextReader, head: string): unknown {
  reader.at += head.length - 1
  reader.damage('replaced a call with its argument')
  const args = readArray(reader)
  // Text that begins like a call, whose opening quote is missing: `print(x) twice"`.
  if (!isValueEnd(signAt(reader.text, pastSpaces(reader.text, reader.at)))) reader.uncertain = true
  return args.length === 1 ? args[0] : args
}

function readArray(reader: TextReader): unknown[] {
  const items: unknown[] = []
  const { text, open, repairs } = reader
  if (reader.sign === '(') repairs.add('fixed brackets')
  reader.enter('[')
  readElements(reader, '[', {
    isEmpty: () => items.length === 0,
    isOver() {
      // If the next member of the surrounding object starts here, this list lacks its closing bracket.
      if (!open.includes('{') || !isQuotedKey(text, reader.at)) return false
      reader.damage('fixed brackets')
      return true
    },
    readNext() {
      const item = readValue(reader, 'item')
      if (item !== undefined) items.push(item)
      return true
    },
  })
  return items
}

interface ContainerReader {
  isEmpty(): boolean
  /** Whether the container ends before this character, although its closing bracket is missing. */
  isOver(sign: string, separated: boolean): boolean
  /** Reads the next element. Returns false if the text ends before its value. */
  readNext(): boolean
}

/** Reads elements up to and including the closing bracket. */
function readElements(reader: TextReader, opener: Opener, { isEmpty, isOver, readNext }: ContainerReader): void {
  const { text, open, repairs } = reader
  const [closer, otherCloser, otherOpener] = opener === '[' ? ([']', '}', '{'] as const) : (['}', ']', '['] as const)
  /** Whether a comma precedes this position. */
  let separated = true
  for (;;) {
    reader.skipGap()
    if (reader.isAtEnd || endsAnswer(text, reader.at)) {
      if (isEmpty()) reader.cutOff()
      else reader.noteUnclosed(separated ? 'maybe-more' : 'brackets')
      break
    }
    const sign = reader.sign
    if (sign === ',' || sign === ';') {
      if (separated || sign === ';') repairs.add('fixed commas')
      separated = true
      reader.at++
    } else if (sign === ']' || sign === ')' || sign === '}') {
      if (separated && !isEmpty()) repairs.add('fixed commas')
      if (sign !== closer) {
        reader.damage('fixed brackets')
      }
      // The other kind of bracket closes a surrounding container of that kind; if there is none, the bracket is a typo.
      if (sign !== otherCloser || !open.includes(otherOpener)) reader.at++
      break
    } else if (isOver(sign, separated)) break
    else {
      if (!separated) {
        reader.damage('fixed commas')
      }
      if (!readNext()) break
      separated = false
    }
  }
  open.pop()
}

/** The start of a call such as `ObjectId(`, `new Date(` or `Decimal(`. Only its argument is kept. */
const callHead = /(?:new\s{1,4})?[A-Za-z_$][\w$.]{0,63}\(/y

/** A string prefix from other languages: `u'…'`, `b"…"`, `rb'…'`. */
const stringPrefix = /[uUbBrRfF]{1,2}(?=["'])/y

/** The text that a sticky pattern matches here; empty if the pattern does not match. */
function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0] ?? ''
}

type Members = Record<string, unknown>

function readObject(reader: TextReader): Members {
  reader.enter('{')
  reader.skipGap()
  if (reader.sign === '{') return readDoubled(reader)
  return readMembers(reader, {})
}

/** Reads members up to and including the closing brace. */
export function readMembers(reader: TextReader, members: Members): Members {
  const { text, open } = reader
  readElements(reader, '{', {
    isEmpty: () => Object.keys(members).length === 0,
    isOver(sign, separated) {
      // If the next item of the surrounding list starts here, this object lacks its closing brace.
      const isNextItem = sign === '{' && separated && open.includes('[')
      if (isNextItem) {
        reader.damage('fixed brackets')
      }
      if (isNextItem || separated || !isProseLine(text, reader.at)) return isNextItem
      reader.noteUnclosed('brackets')
      return true
    },
    readNext: () => readMember(reader, members),
  })
  return members
}

/** Reads one member. Returns false if the text ends before its value. */
function readMember(reader: TextReader, members: Members): boolean {
  const key = readKey(reader)
  reader.skipGap()
  if (!reader.isAtEnd) skipKeyColon(reader)
  if (reader.isAtEnd || endsAnswer(reader.text, reader.at)) {
    reader.cutOff()
    return false
  }
  const sign = reader.sign
  let value: unknown = null
  if (',;}])'.includes(sign)) {
    reader.damage('used null for a missing value')
  } else value = readValue(reader, 'member')
  // As in JSON.parse, `__proto__` is an ordinary name.
  if (value !== undefined)
    Object.defineProperty(members, key, { value, enumerable: true, configurable: true, writable: true })
  return true
}

function skipKeyColon(reader: TextReader): void {
  const from = reader.at
  while (':=>'.includes(reader.sign) && !reader.isAtEnd && reader.at - from < 2) reader.at++
  if (reader.at !== from + 1 || signAt(reader.text, from) !== ':') reader.repairs.add('fixed colons')
  // What seems to be a key without a colon may also be text between unescaped quotes.
  if (reader.at === from) reader.uncertain = true
  reader.skipGap()
}

const bareKey = /[^\s:,;{}[\]"'`=：，｝][^:,;{}[\]"'`=\n：，｝]{0,127}/y

function readKey(reader: TextReader): string {
  const { text } = reader
  if (isQuoteSign(text.charAt(reader.at))) {
    const key = readQuoted(reader, 'key')
    if (reader.lacks) reader.at = text.length
    return key
  }
  const found = matchAt(bareKey, text, reader.at)
  if (found === '') throw noValue
  reader.at += found.length
  reader.spend(found.length)
  if (reader.isAtEnd) reader.cutOff()
  // `a": 1`: the opening quote is missing.
  if (isQuoteSign(text.charAt(reader.at))) reader.at++
  const key = found.trimEnd()
  reader.repairs.add('quoted keys')
  if (!/^[\w$.-]+$/.test(key)) reader.unquoted += key.length
  return key
}

/** Reads an object with doubled braces, as in templates: `{{"a": 1}}`. */
function readDoubled(reader: TextReader): Members {
  reader.repairs.add('fixed brackets')
  const members = readObject(reader)
  reader.open.pop()
  reader.skipGap()
  if (reader.sign === '}') reader.at++
  return members
}
