import { CannotExpress } from '../../cannot-express.ts'
import type { Range } from '../expression.ts'
import { complement } from '../strings.ts'
import { classes, escapedSign } from './classes.ts'
import type { Cursor } from './cursor.ts'
import { parseSet } from './sets.ts'
import type { Tree } from './tree.ts'

const deepest = 32
const longest = 2_000

/** Reads a regular expression. Lookaheads, back-references, word boundaries and Unicode properties are refused. */
export function parsePattern(pattern: string, at: string): Tree {
  const refuse = (why: string): never => {
    throw new CannotExpress(at, 'pattern', why)
  }
  if (pattern.length > longest) refuse('is too long')
  const cursor: Cursor = { signs: [...pattern], at: 0, refuse }
  const tree = parseChoice(cursor, 0)
  if (cursor.at < cursor.signs.length) refuse('has a bracket too many')
  return tree
}

function parseChoice(cursor: Cursor, depth: number): Tree {
  if (depth > deepest) cursor.refuse('nests too deeply')
  const options: Tree[] = [parseRow(cursor, depth)]
  while (cursor.signs[cursor.at] === '|') {
    cursor.at++
    options.push(parseRow(cursor, depth))
  }
  return options.length === 1 ? (options[0] as Tree) : { kind: 'choice', options }
}

function parseRow(cursor: Cursor, depth: number): Tree {
  const parts: Tree[] = []
  for (
    let sign = cursor.signs[cursor.at];
    sign !== undefined && sign !== '|' && sign !== ')';
    sign = cursor.signs[cursor.at]
  ) {
    parts.push(parseRepeat(cursor, parseOne(cursor, sign, depth)))
  }
  return parts.length === 1 ? (parts[0] as Tree) : { kind: 'row', parts }
}

function parseOne(cursor: Cursor, sign: string, depth: number): Tree {
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

const one = (ranges: readonly Range[]): Tree => ({ kind: 'sign', ranges })

function parseGroup(cursor: Cursor, depth: number): Tree {
  const rest = cursor.signs.slice(cursor.at, cursor.at + 40).join('')
  const head = /^\?(?::|<[A-Za-z_]\w*>)/.exec(rest)?.[0] ?? ''
  if (rest.startsWith('?') && head === '') cursor.refuse('looks ahead or behind')
  cursor.at += head.length
  const inner = parseChoice(cursor, depth + 1)
  if (cursor.signs[cursor.at] !== ')') cursor.refuse('has a bracket that is not closed')
  cursor.at++
  return inner
}

function parseRepeat(cursor: Cursor, inner: Tree): Tree {
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
  if (max < min) cursor.refuse('repeats in the wrong order')
  return { kind: 'repeat', inner, min, max }
}
