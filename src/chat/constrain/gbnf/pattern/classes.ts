import type { Range } from '../expression.ts'
import { complement } from '../strings.ts'
import type { Cursor } from './cursor.ts'

const digit: readonly Range[] = [[0x30, 0x39]]
const word: readonly Range[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]
const space: readonly Range[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]
const newline: readonly Range[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]

/** The sets of characters that have names in regular expressions. */
export const classes = { digit, word, space, newline }

const named: Readonly<Record<string, readonly Range[]>> = {
  d: digit,
  w: word,
  s: space,
  D: complement(digit),
  W: complement(word),
  S: complement(space),
}

const controls: Readonly<Record<string, number>> = { n: 0x0a, r: 0x0d, t: 0x09, f: 0x0c, v: 0x0b }

/** What stands after a backslash. */
export function escapedSign(cursor: Cursor, inSet = false): readonly Range[] {
  const sign = cursor.signs[cursor.at++] ?? cursor.refuse('ends with a backslash')
  if (Object.hasOwn(named, sign)) return named[sign] as readonly Range[]
  if (Object.hasOwn(controls, sign)) return only(controls[sign] as number)
  if (sign === 'b' && inSet) return only(0x08)
  if (sign === 'x' || sign === 'u') return only(hexadecimal(cursor, sign))
  if (/[A-Za-z1-9]/.test(sign)) cursor.refuse(`uses \\${sign}`)
  return only(sign === '0' ? 0 : (sign.codePointAt(0) as number))
}

const only = (point: number): readonly Range[] => [[point, point]]

function hexadecimal(cursor: Cursor, sign: 'x' | 'u'): number {
  const rest = cursor.signs.slice(cursor.at, cursor.at + 10).join('')
  const form = sign === 'x' ? /^([0-9a-fA-F]{2})/ : /^(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})/
  const found = form.exec(rest) ?? cursor.refuse(`uses \\${sign} without its number`)
  cursor.at += found[0].length
  const point = Number.parseInt(found[1] ?? found[2] ?? '', 16)
  return point <= 0x10ffff ? point : cursor.refuse('names a character that does not exist')
}
