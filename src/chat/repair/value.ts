import { readArray } from './array.ts'
import { callHead, prefixLength } from './call.ts'
import type { Role } from './closing.ts'
import { readNumber } from './number.ts'
import { readObject } from './object.ts'
import { atEnd, cutOff, type Reader } from './reader.ts'
import { isQuote, signAt } from './signs.ts'
import { readString } from './string.ts'
import { readWord } from './word.ts'

/** Reads whatever value stands here. `undefined` where the text is cut off before anything can be said about it. */
export function readValue(reader: Reader, role: Exclude<Role, 'key'>): unknown {
  const { text } = reader
  const sign = signAt(text, reader.at)
  if (sign === '{') return readObject(reader, readValue)
  if (sign === '[' || sign === '(') return readArray(reader, readValue)
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

function readCall(reader: Reader, head: number): unknown {
  reader.at += head - 1
  reader.repairs.add('took a call for its argument')
  const given = readArray(reader, readValue)
  return given.length === 1 ? given[0] : given
}
