import { CannotExpress } from '../conversion.ts'
import { type CodePointRange, complement, rangesOf } from './expression.ts'

const maxPatternDepth = 32
const maxPatternLength = 2_000

/** Parses a regular expression. Refuses lookarounds, back-references, word boundaries and Unicode properties. */
export function parsePattern(pattern: string, at: string): PatternNode {
  const refuse = (why: string): never => {
    throw new CannotExpress(at, 'pattern', why)
  }
  if (pattern.length > maxPatternLength) refuse('is too long')
  const cursor: PatternCursor = { signs: [...pattern], at: 0, refuse }
  const node = parseChoice(cursor, 0)
  if (cursor.at < cursor.signs.length) refuse('has an unmatched parenthesis')
  return node
}

function parseChoice(cursor: PatternCursor, depth: number): PatternNode {
  if (depth > maxPatternDepth) cursor.refuse('nests too deeply')
  const parts: PatternNode[] = [parseRow(cursor, depth)]
  while (cursor.signs[cursor.at] === '|') {
    cursor.at++
    parts.push(parseRow(cursor, depth))
  }
  return parts.length === 1 ? (parts[0] as PatternNode) : { kind: 'choice', parts }
}

function parseRow(cursor: PatternCursor, depth: number): PatternNode {
  const parts: PatternNode[] = []
  while (!['|', ')', undefined].includes(cursor.signs[cursor.at]))
    parts.push(parseRepeat(cursor, parseOne(cursor, depth)))
  return parts.length === 1 ? (parts[0] as PatternNode) : { kind: 'row', parts }
}

function parseOne(cursor: PatternCursor, depth: number): PatternNode {
  const sign = cursor.signs[cursor.at++] as string
  if (sign === '^') return { kind: 'start' }
  if (sign === '$') return { kind: 'end' }
  if (sign === '(') return parseGroup(cursor, depth)
  if (sign === '[') return signNode(parseSet(cursor))
  if (sign === '.') return signNode(complement(newline))
  if (sign === '\\') return signNode(escapedSign(cursor))
  if ('*+?'.includes(sign) || (sign === '{' && /^\d/.test(cursor.signs[cursor.at] ?? ''))) {
    cursor.refuse('repeats nothing')
  }
  return signNode(rangesOf(sign))
}

const signNode = (ranges: readonly CodePointRange[]): PatternNode => ({ kind: 'sign', ranges })

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
  const rest = cursor.signs.slice(cursor.at, cursor.at + 16).join('')
  const counts = /^(?:([*+?])|\{(\d{1,5})(,?)(\d{0,5})\})\??/.exec(rest)
  if (!counts) return inner
  if (inner.kind === 'start' || inner.kind === 'end') cursor.refuse('repeats nothing')
  cursor.at += counts[0].length
  const [, sign, from, comma, to] = counts
  if (sign)
    return { kind: 'repeat', inner, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Number.POSITIVE_INFINITY }
  const min = Number(from)
  const max = !comma ? min : to === '' ? Number.POSITIVE_INFINITY : Number(to)
  if (max < min) cursor.refuse('has a repetition whose minimum exceeds its maximum')
  return { kind: 'repeat', inner, min, max }
}

interface PatternCursor {
  readonly signs: readonly string[]
  at: number
  refuse(why: string): never
}

const digitCharacters = rangesOf('09')
const wordCharacters = rangesOf('09', 'AZ', '_', 'az')
const spaceCharacters = rangesOf(
  ...['\t\r', ' ', '\u00a0', '\u1680', '\u2000\u200a'],
  ...['\u2028\u2029', '\u202f', '\u205f', '\u3000', '\ufeff'],
)
const newline = rangesOf('\n', '\r', '\u2028\u2029')

const escapeClasses: Readonly<Record<string, readonly CodePointRange[]>> = {
  d: digitCharacters,
  w: wordCharacters,
  s: spaceCharacters,
  D: complement(digitCharacters),
  W: complement(wordCharacters),
  S: complement(spaceCharacters),
}

const controlEscapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', 0: '\0' }

/** Parses what follows a backslash. */
function escapedSign(cursor: PatternCursor, inSet = false): readonly CodePointRange[] {
  const sign = cursor.signs[cursor.at++] ?? cursor.refuse('ends with a backslash')
  if (Object.hasOwn(escapeClasses, sign)) return escapeClasses[sign] as readonly CodePointRange[]
  if (Object.hasOwn(controlEscapes, sign)) return rangesOf(controlEscapes[sign] as string)
  if (sign === 'b' && inSet) return rangesOf('\b')
  if (sign === 'x' || sign === 'u') return parseHexEscape(cursor, sign)
  if (/[A-Za-z1-9]/.test(sign)) cursor.refuse(`uses \\${sign}`)
  return rangesOf(sign)
}

function parseHexEscape(cursor: PatternCursor, sign: 'x' | 'u'): readonly CodePointRange[] {
  const rest = cursor.signs.slice(cursor.at, cursor.at + 10).join('')
  const form = sign === 'x' ? /^([0-9a-fA-F]{2})/ : /^(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})/
  const found = form.exec(rest) ?? cursor.refuse(`uses \\${sign}, without a code point`)
  cursor.at += found[0].length
  const point = Number.parseInt(found[1] ?? found[2] ?? '', 16)
  return point <= 0x10ffff ? [[point, point]] : cursor.refuse('contains an invalid code point')
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
  return sign === '\\' ? escapedSign(cursor, true) : rangesOf(sign)
}

/** The subset of regular expressions that a grammar can express. */
export type PatternNode =
  | { readonly kind: 'sign'; readonly ranges: readonly CodePointRange[] }
  | { readonly kind: 'row' | 'choice'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly inner: PatternNode; readonly min: number; readonly max: number }
  | { readonly kind: 'start' | 'end' }

/** The minimum and maximum length of a match; the maximum may be infinite. */
export interface LengthRange {
  readonly min: number
  readonly max: number
}

export function patternLength(node: PatternNode): LengthRange {
  if (node.kind === 'repeat') {
    const inner = patternLength(node.inner)
    return { min: inner.min * node.min, max: inner.max === 0 ? 0 : inner.max * node.max }
  }
  if (!('parts' in node)) return node.kind === 'sign' ? { min: 1, max: 1 } : { min: 0, max: 0 }
  const lengths = node.parts.map(patternLength)
  if (node.kind === 'choice')
    return { min: Math.min(...lengths.map(({ min }) => min)), max: Math.max(...lengths.map(({ max }) => max)) }
  return lengths.reduce((sum, { min, max }) => ({ min: sum.min + min, max: sum.max + max }), { min: 0, max: 0 })
}

/** Limits every repetition to `limit`, unless its minimum is higher. */
export function capRepetitions(node: PatternNode, limit: number): PatternNode {
  if ('parts' in node) return { ...node, parts: node.parts.map((part) => capRepetitions(part, limit)) }
  if (node.kind !== 'repeat') return node
  return { ...node, inner: capRepetitions(node.inner, limit), max: Math.max(node.min, Math.min(node.max, limit)) }
}
