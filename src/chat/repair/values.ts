import { atEnd, cutOff, enter, noValue, spend, type TextReader, unclosed } from './reader.ts'
import { readNumber, readWord } from './scalars.ts'
import { endsAnswer, isProseLine, isQuote, isQuotedKey, signAt, skipGap } from './scan.ts'
import { readString, type StringRole } from './strings.ts'

/** Reads the value at this position; `undefined` if the text was cut off before it. */
export function readValue(reader: TextReader, role: Exclude<StringRole, 'key'>): unknown {
  const { text } = reader
  const sign = signAt(text, reader.at)
  if (sign === '{') return readObject(reader)
  if (sign === '[' || sign === '(') return readArray(reader)
  if (isQuote(sign)) return readString(reader, role)
  const number = readNumber(reader)
  if (number !== undefined) return number
  const prefix = prefixLength(text, reader.at)
  if (prefix > 0) {
    reader.repairs.add('mended quotes')
    reader.at += prefix
    return readString(reader, role)
  }
  const head = callHead(text, reader.at)
  if (head > 0) return readCall(reader, head)
  if (/^[-+.]$/.test(text.slice(reader.at, reader.at + 2))) {
    reader.at++
    if (atEnd(reader)) cutOff(reader)
    return undefined
  }
  return readWord(reader)
}

function readCall(reader: TextReader, head: number): unknown {
  reader.at += head - 1
  reader.repairs.add('took a call for its argument')
  const given = readArray(reader)
  return given.length === 1 ? given[0] : given
}

function readArray(reader: TextReader): unknown[] {
  const items: unknown[] = []
  const { text, open } = reader
  if (signAt(text, reader.at) === '(') reader.repairs.add('mended brackets')
  enter(reader, '[')
  /** Whether a comma precedes this position. */
  let separated = true
  for (;;) {
    skipGap(reader)
    if (atEnd(reader) || endsAnswer(text, reader.at)) {
      if (items.length === 0) cutOff(reader)
      else unclosed(reader, separated ? 'maybe-more' : 'brackets')
      break
    }
    const sign = signAt(text, reader.at)
    if (sign === ',' || sign === ';') {
      if (separated || sign === ';') reader.repairs.add('mended commas')
      separated = true
      reader.at++
    } else if (sign === ']' || sign === ')' || sign === '}') {
      if (separated && items.length > 0) reader.repairs.add('mended commas')
      if (sign !== ']') reader.repairs.add('mended brackets')
      // A brace closes the surrounding object, if there is one; otherwise it is a typo for a bracket.
      if (sign !== '}' || !open.includes('{')) reader.at++
      break
    } else if (open.includes('{') && isQuotedKey(text, reader.at)) {
      reader.repairs.add('mended brackets')
      break
    } else {
      if (!separated) reader.repairs.add('mended commas')
      const item = readValue(reader, 'item')
      if (item !== undefined) items.push(item)
      separated = false
    }
  }
  open.pop()
  return items
}

/** `ObjectId(`, `new Date(`, `Decimal(`: only the argument counts. */
const call = /(?:new\s{1,4})?[A-Za-z_$][\w$.]{0,63}\(/y

/** The length of a call's name and opening parenthesis, if one starts here. */
function callHead(text: string, at: number): number {
  call.lastIndex = at
  return call.exec(text)?.[0].length ?? 0
}

/** `u'…'`, `b"…"`, `rb'…'` */
const prefix = /[uUbBrRfF]{1,2}(?=["'])/y

/** The length of a string prefix of other languages. */
function prefixLength(text: string, at: number): number {
  prefix.lastIndex = at
  return prefix.exec(text)?.[0].length ?? 0
}

type Members = Record<string, unknown>

function readObject(reader: TextReader): Members {
  enter(reader, '{')
  skipGap(reader)
  if (signAt(reader.text, reader.at) === '{') return readDoubled(reader)
  return readMembers(reader, {})
}

/** Reads members up to and including the closing brace. */
export function readMembers(reader: TextReader, members: Members): Members {
  const { text } = reader
  let separated = true
  for (;;) {
    skipGap(reader)
    if (atEnd(reader) || endsAnswer(text, reader.at)) {
      if (Object.keys(members).length === 0) cutOff(reader)
      else unclosed(reader, separated ? 'maybe-more' : 'brackets')
      break
    }
    const sign = signAt(text, reader.at)
    if (sign === ',' || sign === ';') {
      if (separated || sign === ';') reader.repairs.add('mended commas')
      separated = true
      reader.at++
    } else if (sign === '}' || sign === ']' || sign === ')') {
      if (separated && Object.keys(members).length > 0) reader.repairs.add('mended commas')
      if (sign !== '}') reader.repairs.add('mended brackets')
      if (sign !== ']' || !reader.open.includes('[')) reader.at++
      break
    } else if (sign === '{' && separated && reader.open.includes('[')) {
      // The next item of the surrounding list: this object lacks its closing brace.
      reader.repairs.add('mended brackets')
      break
    } else if (!separated && isProseLine(text, reader.at)) {
      unclosed(reader, 'brackets')
      break
    } else {
      if (!separated) reader.repairs.add('mended commas')
      if (!readMember(reader, members)) break
      separated = false
    }
  }
  reader.open.pop()
  return members
}

/** Returns false if the text ends before the member's value. */
function readMember(reader: TextReader, members: Members): boolean {
  const key = readKey(reader)
  skipGap(reader)
  if (!atEnd(reader)) skipColon(reader)
  if (atEnd(reader) || endsAnswer(reader.text, reader.at)) {
    cutOff(reader)
    return false
  }
  const sign = signAt(reader.text, reader.at)
  let value: unknown = null
  if (',;}])'.includes(sign)) reader.repairs.add('put null for a missing value')
  else value = readValue(reader, 'member')
  if (value !== undefined) put(members, key, value)
  return true
}

function skipColon(reader: TextReader): void {
  const from = reader.at
  while (':=>'.includes(signAt(reader.text, reader.at)) && !atEnd(reader) && reader.at - from < 2) reader.at++
  if (reader.at !== from + 1 || signAt(reader.text, from) !== ':') reader.repairs.add('mended colons')
  skipGap(reader)
}

const bareKey = /[^\s:,;{}[\]"'`=：，｝][^:,;{}[\]"'`=\n：，｝]{0,127}/y

function readKey(reader: TextReader): string {
  const { text } = reader
  if (isQuote(text.charAt(reader.at))) {
    const key = readString(reader, 'key')
    if (!reader.complete) reader.at = text.length
    return key
  }
  bareKey.lastIndex = reader.at
  const [found] = bareKey.exec(text) ?? []
  if (found === undefined) throw noValue
  reader.at += found.length
  spend(reader.budget, found.length)
  if (atEnd(reader)) cutOff(reader)
  // `a": 1`: the opening quote is missing.
  if (isQuote(text.charAt(reader.at))) reader.at++
  const key = found.trimEnd()
  reader.repairs.add('quoted keys')
  if (!/^[\w$.-]+$/.test(key)) reader.unquoted += key.length
  return key
}

/** `{{"a": 1}}`, as in templates. */
function readDoubled(reader: TextReader): Members {
  reader.repairs.add('mended brackets')
  const members = readObject(reader)
  reader.open.pop()
  skipGap(reader)
  if (signAt(reader.text, reader.at) === '}') reader.at++
  return members
}

/** Like JSON.parse: `__proto__` is an ordinary name. */
function put(members: Members, key: string, value: unknown): void {
  Object.defineProperty(members, key, { value, enumerable: true, configurable: true, writable: true })
}
