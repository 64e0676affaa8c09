import { type Reader, spend } from './reader.ts'
import { pastSpaces } from './signs.ts'

/** Where the next character stands that is neither space nor comment. */
export function pastGap(text: string, from: number): number {
  let at = pastSpaces(text, from)
  for (let past = pastComment(text, at); past > at; past = pastComment(text, at)) at = pastSpaces(text, past)
  return at
}

/** Moves over spaces and comments, and over the dots that stand for what a model left out. */
export function skipGap(reader: Reader): void {
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
  spend(reader.purse, 1 + reader.at - from)
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
