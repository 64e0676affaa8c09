import { CannotExpress } from '../conversion.ts'
import { complement } from './characters.ts'
import type { CodePointRange } from './expression.ts'

const deepest = 32
const longest = 2_000

/** Parses a regular expression. Refuses lookarounds, back-references, word boundaries and Unicode properties. */
export function parsePattern(pattern: string, at: string): PatternNode {
  const refuse = (why: string): never => {
    throw new CannotExpress(at, 'pattern', why)
  }
  if (pattern.length > longest) refuse('is too long')
  const cursor: PatternCursor = { signs: [...pattern], at: 0, refuse }
  const node = parseChoice(cursor, 0)
  if (cursor.at < cursor.signs.length) refuse('has an unmatched parenthesis')
  return node
}

function parseChoice(cursor: PatternCursor, depth: number): PatternNode {
  if (depth > deepest) cursor.refuse('nests too deeply')
  const options: PatternNode[] = [parseRow(cursor, depth)]
  while (cursor.signs[cursor.at] === '|') {
    cursor.at++
    options.push(parseRow(cursor, depth))
  }
  return options.length === 1 ? (options[0] as PatternNode) : { kind: 'choice', options }
}

function parseRow(cursor: PatternCursor, depth: number): PatternNode {
  const parts: PatternNode[] = []
  for (
    let sign = cursor.signs[cursor.at];
    sign !== undefined && sign !== '|' && sign !== ')';
    sign = cursor.signs[cursor.at]
  ) {
    parts.push(parseRepeat(cursor, parseOne(cursor, sign, depth)))
  }
  return parts.length === 1 ? (parts[0] as PatternNode) : { kind: 'row', parts }
}

function parseOne(cursor: PatternCursor, sign: string, depth: number): PatternNode {
  cursor.at++
  if (sign === '^') return { kind: 'start' }
  if (sign === '$') return { kind: 'end' }
  if (sign === '(') return parseGroup(cursor, depth)
  if (sign === '[') return one(parseSet(cursor))
  if (sign === '.') return one(complement(classes.newline))
  if (sign === '\\') return one(escapedSign(cursor))
  if ('*+?'.includes(sign) || (sign === '{' && /^\d/.test(cursor.signs[cursor.at] ?? ''))) {
    cursor.refuse('repeats nothing')
  }
  const point = sign.codePointAt(0) as number
  return one([[point, point]])
}

const one = (ranges: readonly CodePointRange[]): PatternNode => ({ kind: 'sign', ranges })

function parseGroup(cursor: PatternCursor, depth: number): PatternNode {
  const rest = cursor.signs.slice(cursor.at, cursor.at + 40).join('')
  const head = /^\?(?::|<[A-Za-z_]\w*>)/.exec(rest)?.[0] ?? ''
  if (rest.startsWith('?') && head === '') cursor.refuse('uses a lookaround')
  cursor.at += head.length
  const inner = parseChoice(cursor, depth + 1)
  if (cursor.signs[cursor.at] !== ')') cursor.refuse('has an unclosed parenthesis')
  cursor.at++
  return inner
}

function parseRepeat(cursor: PatternCursor, inner: PatternNode): PatternNode {
  const counts = /^(?:([*+?])|\{(\d{1,5})(,?)(\d{0,5})\})\??/.exec(
    cursor.signs.slice(cursor.at, cursor.at + 16).join(''),
  )
  if (!counts) return inner
  if (inner.kind === 'start' || inner.kind === 'end') cursor.refuse('repeats nothing')
  cursor.at += counts[0].length
  const [, sign, from, comma, to] = counts
  if (sign)
    return { kind: 'repeat', inner, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Number.POSITIVE_INFINITY }
  const min = Number(from)
  const max = !comma ? min : to === '' ? Number.POSITIVE_INFINITY : Number(to)
  if (max < min) cursor.refuse('has a repetition with minimum above maximum')
  return { kind: 'repeat', inner, min, max }
}

/** The parser's position in a pattern. */
export interface PatternCursor {
  readonly signs: readonly string[]
  at: number
  refuse(why: string): never
}

const digit: readonly CodePointRange[] = [[0x30, 0x39]]
const word: readonly CodePointRange[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]
const space: readonly CodePointRange[] = [
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
const newline: readonly CodePointRange[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]

const classes = { digit, word, space, newline }

const named: Readonly<Record<string, readonly CodePointRange[]>> = {
  d: digit,
  w: word,
  s: space,
  D: complement(digit),
  W: complement(word),
  S: complement(space),
}

const controls: Readonly<Record<string, number>> = { n: 0x0a, r: 0x0d, t: 0x09, f: 0x0c, v: 0x0b }

/** Parses what follows a backslash. */
function escapedSign(cursor: PatternCursor, inSet = false): readonly CodePointRange[] {
  const sign = cursor.signs[cursor.at++] ?? cursor.refuse('ends with a backslash')
  if (Object.hasOwn(named, sign)) return named[sign] as readonly CodePointRange[]
  if (Object.hasOwn(controls, sign)) return only(controls[sign] as number)
  if (sign === 'b' && inSet) return only(0x08)
  if (sign === 'x' || sign === 'u') return only(hexadecimal(cursor, sign))
  if (/[A-Za-z1-9]/.test(sign)) cursor.refuse(`uses \\${sign}`)
  return only(sign === '0' ? 0 : (sign.codePointAt(0) as number))
}

const only = (point: number): readonly CodePointRange[] => [[point, point]]

function hexadecimal(cursor: PatternCursor, sign: 'x' | 'u'): number {
  const rest = cursor.signs.slice(cursor.at, cursor.at + 10).join('')
  const form = sign === 'x' ? /^([0-9a-fA-F]{2})/ : /^(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})/
  const found = form.exec(rest) ?? cursor.refuse(`uses \\${sign}, without a code point`)
  cursor.at += found[0].length
  const point = Number.parseInt(found[1] ?? found[2] ?? '', 16)
  return point <= 0x10ffff ? point : cursor.refuse('contains an invalid code point')
}

/** Parses a character class after its opening bracket. */
function parseSet(cursor: PatternCursor): readonly CodePointRange[] {
  const negated = cursor.signs[cursor.at] === '^'
  if (negated) cursor.at++
  const ranges: CodePointRange[] = []
  for (;;) {
    const sign = cursor.signs[cursor.at] ?? cursor.refuse('has an unclosed character class')
    if (sign === ']') break
    const from = parseMember(cursor)
    const single = from.length === 1 && from[0]?.[0] === from[0]?.[1]
    const next = cursor.signs[cursor.at + 1]
    if (!single || cursor.signs[cursor.at] !== '-' || next === ']' || next === undefined) {
      ranges.push(...from)
      continue
    }
    cursor.at++
    const to = parseMember(cursor)
    const [low, high] = [from[0]?.[0] as number, to[0]?.[1] as number]
    if (to.length !== 1 || low > high) cursor.refuse('has a range in descending order')
    ranges.push([low, high])
  }
  cursor.at++
  return negated ? complement(ranges) : ranges
}

function parseMember(cursor: PatternCursor): readonly CodePointRange[] {
  const sign = cursor.signs[cursor.at++] as string
  if (sign === '\\') return escapedSign(cursor, true)
  const point = sign.codePointAt(0) as number
  return [[point, point]]
}

/** The subset of regular expressions that a grammar can express. */
export type PatternNode =
  | { readonly kind: 'sign'; readonly ranges: readonly CodePointRange[] }
  | { readonly kind: 'row'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly options: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly inner: PatternNode; readonly min: number; readonly max: number }
  | { readonly kind: 'start' }
  | { readonly kind: 'end' }

/** The length of matching texts; the maximum may be infinite. */
export interface LengthRange {
  readonly min: number
  readonly max: number
}

export function lengthOf(node: PatternNode): LengthRange {
  switch (node.kind) {
    case 'sign':
      return { min: 1, max: 1 }
    case 'start':
    case 'end':
      return { min: 0, max: 0 }
    case 'row':
      return node.parts.map(lengthOf).reduce((sum, span) => ({ min: sum.min + span.min, max: sum.max + span.max }), {
        min: 0,
        max: 0,
      })
    case 'choice': {
      const spans = node.options.map(lengthOf)
      return { min: Math.min(...spans.map(({ min }) => min)), max: Math.max(...spans.map(({ max }) => max)) }
    }
    case 'repeat': {
      const inner = lengthOf(node.inner)
      return { min: inner.min * node.min, max: inner.max === 0 ? 0 : inner.max * node.max }
    }
  }
}

/** Limits every repetition to `most`, unless its minimum is higher. */
export function capped(node: PatternNode, most: number): PatternNode {
  switch (node.kind) {
    case 'row':
      return { ...node, parts: node.parts.map((part) => capped(part, most)) }
    case 'choice':
      return { ...node, options: node.options.map((option) => capped(option, most)) }
    case 'repeat':
      return { ...node, inner: capped(node.inner, most), max: Math.max(node.min, Math.min(node.max, most)) }
    default:
      return node
  }
}
