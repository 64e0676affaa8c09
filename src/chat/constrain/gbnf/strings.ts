import { CannotExpress } from '../conversion.ts'
import { type JsonSchemaObject, numberIn } from '../schema.ts'
import {
  anyOf,
  type CodePointRange,
  character,
  complement,
  type Expression,
  intersectRanges,
  literal,
  manyTimes,
  noText,
  rangesOf,
  sequence,
  stringOf,
  writableCharacters,
} from './expression.ts'
import { type GrammarContext, maxStringCharacters } from './rules.ts'

export function stringExpression(
  context: GrammarContext,
  schema: JsonSchemaObject,
  at: string,
): Expression | undefined {
  const { rules, limits } = context
  const min = numberIn(schema.minLength) ?? 0
  const max = Math.min(numberIn(schema.maxLength) ?? Math.max(limits.string, min), maxStringCharacters)
  if (min > maxStringCharacters) throw new CannotExpress(at, 'minLength', 'is too large')
  if (min > max) return undefined
  const pattern = patternOf(schema, at)
  if (pattern === undefined) {
    const isPlain = schema.minLength === undefined && schema.maxLength === undefined
    return rules.define(isPlain ? 'string' : 'text', stringOf(rules.define('char', character), min, max))
  }
  const found = patternString(pattern, { min, max }, at)
  return found && rules.define(typeof schema.format === 'string' ? schema.format : 'pattern', found)
}

function patternOf(schema: JsonSchemaObject, at: string): string | undefined {
  const format = typeof schema.format === 'string' ? formatPattern(schema.format) : undefined
  if (format === false) throw new CannotExpress(at, 'format', `${schema.format} is not supported`)
  if (schema.pattern === undefined) return format
  if (typeof schema.pattern !== 'string') throw new CannotExpress(at, 'pattern', 'is not a string')
  if (format !== undefined) throw new CannotExpress(at, 'pattern', 'cannot be combined with format')
  return schema.pattern
}

const dayPattern =
  '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))'
const datePattern = `\\d{4}-${dayPattern}`
const timePattern = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)'
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?'
const host = `${label}(?:\\.${label}){0,4}`
const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const ipv4 = `(?:${octet}\\.){3}${octet}`
const hexPattern = '[0-9A-Fa-f]'
const uriPath = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%${hexPattern}{2})`
const query = `(?:\\?(?:${uriPath}|[/?]){0,128})?(?:#(?:${uriPath}|[/?]){0,64})?`
const uriTail = `(?:/${uriPath}{0,64}){0,16}${query}`
const uri = `[A-Za-z][A-Za-z0-9+.-]{0,15}:(?://(?:${host}(?::\\d{1,5})?)?${uriTail}|${uriPath}(?:${uriPath}|/){0,128}${query})`
// A path must not start with two slashes, because the next segment would then be a host name.
const rootedReference = `(?:/(?:${uriPath}{1,64}(?:/${uriPath}{0,64}){0,15})?)?${query}`
const reference = `(?:${uri}|[A-Za-z0-9._~-]{1,64}${uriTail}|${rootedReference})`
const email = `[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,32}){0,2}@${label}(?:\\.${label}){1,4}`

/** Patterns for the JSON Schema formats. Each allows less than the standard: no leap days, no unusual addresses. */
const formatPatterns: Readonly<Record<string, string>> = {
  date: datePattern,
  time: timePattern,
  'date-time': `${datePattern}T${timePattern}`,
  duration: 'P(?:\\d{1,4}[YMWD]|T\\d{1,4}[HMS]|\\d{1,4}DT\\d{1,4}[HMS])',
  email,
  'idn-email': email,
  hostname: host,
  'idn-hostname': host,
  ipv4,
  ipv6: `(?:${hexPattern}{1,4}:){7}${hexPattern}{1,4}`,
  uri,
  iri: uri,
  'uri-reference': reference,
  'iri-reference': reference,
  uuid: `${hexPattern}{8}-${hexPattern}{4}-${hexPattern}{4}-${hexPattern}{4}-${hexPattern}{12}`,
  'json-pointer': '(?:/[A-Za-z0-9_.-]{0,64}){0,16}',
}

/** Standard formats that would need too large a grammar. */
const inexpressible = new Set(['regex', 'uri-template', 'relative-json-pointer'])

/** The pattern for a format; `undefined` for unknown formats, which are annotations; `false` for inexpressible ones. */
function formatPattern(format: string): string | undefined | false {
  if (inexpressible.has(format)) return false
  return Object.hasOwn(formatPatterns, format) ? `^(?:${formatPatterns[format]})$` : undefined
}

/** A JSON string of this length that matches a pattern, anchored or not; `undefined` if nothing matches. */
export function patternString(pattern: string, length: LengthRange, at: string): Expression | undefined {
  const node = fitPattern(withoutAmbiguity(anchorPattern(parsePattern(pattern, at), at), at), length, at)
  const inner = node && expressionOf(node)
  return inner && sequence(literal('"'), inner, literal('"'))
}

const anyCharacters: PatternNode = {
  kind: 'repeat',
  inner: { kind: 'sign', ranges: [[0, 0x10ffff]] },
  min: 0,
  max: Number.POSITIVE_INFINITY,
}

/** Adds "anything" where a pattern is not anchored; refuses an anchor in the middle. */
function anchorPattern(node: PatternNode, at: string): PatternNode {
  if (node.kind === 'choice') return { ...node, parts: node.parts.map((option) => anchorPattern(option, at)) }
  const parts = node.kind === 'row' ? node.parts : [node]
  const start = parts[0]?.kind === 'start'
  const end = parts.length > Number(start) && parts.at(-1)?.kind === 'end'
  const inner = parts.slice(start ? 1 : 0, end ? -1 : undefined)
  // Anchors may be inside a choice: `^(a|b)$` and `(^a$|^b$)` are both common.
  const [only] = inner
  if (!start && !end && inner.length === 1 && only?.kind === 'choice' && hasAnchor(only)) return anchorPattern(only, at)
  if (inner.some(hasAnchor)) throw new CannotExpress(at, 'pattern', 'has an anchor in the middle')
  return { kind: 'row', parts: [...(start ? [] : [anyCharacters]), ...inner, ...(end ? [] : [anyCharacters])] }
}

function hasAnchor(node: PatternNode): boolean {
  if (node.kind === 'start' || node.kind === 'end') return true
  if ('parts' in node) return node.parts.some(hasAnchor)
  return node.kind === 'repeat' && hasAnchor(node.inner)
}

/** Fits a pattern to the minimum and maximum length; `undefined` if no match is short enough. */
function fitPattern(node: PatternNode, length: LengthRange, at: string): PatternNode | undefined {
  const fitting = lengthenPattern(node, length.min, at)
  if (patternLength(fitting).min > length.max) return undefined
  let [low, high] = [0, length.max]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (patternLength(capRepetitions(fitting, middle)).max <= length.max) low = middle
    else high = middle - 1
  }
  const shortened = capRepetitions(fitting, low)
  if (patternLength(shortened).max <= length.max) return shortened
  throw new CannotExpress(at, 'pattern', 'exceeds maxLength and cannot be shortened')
}

/** Raises the minimum of the only variable repetition, so that matches reach `minLength`. */
function lengthenPattern(node: PatternNode, min: number, at: string): PatternNode {
  const short = min - patternLength(node).min
  if (short <= 0) return node
  const parts = node.kind === 'row' ? node.parts : [node]
  const loose = parts.filter((part) => patternLength(part).min !== patternLength(part).max)
  const [only] = loose
  const unit = only?.kind === 'repeat' ? patternLength(only.inner) : undefined
  if (loose.length !== 1 || only?.kind !== 'repeat' || !unit || unit.min !== unit.max || unit.min === 0) {
    throw new CannotExpress(at, 'minLength', 'exceeds the minimum length of the pattern')
  }
  const raised = { ...only, min: only.min + Math.ceil(short / unit.min) }
  if (raised.min > raised.max) throw new CannotExpress(at, 'minLength', 'exceeds the maximum length of the pattern')
  return { kind: 'row', parts: parts.map((part) => (part === only ? raised : part)) }
}

function expressionOf(node: PatternNode): Expression | undefined {
  switch (node.kind) {
    case 'sign':
      return node.ranges.length === 1 && node.ranges[0]?.[1] === 0x10ffff && node.ranges[0][0] === 0
        ? character
        : writableCharacters(node.ranges)
    case 'row': {
      const parts = node.parts.map(expressionOf)
      return parts.includes(undefined) ? undefined : sequence(...(parts as Expression[]))
    }
    case 'choice':
      return anyOf(...node.parts.map(expressionOf))
    case 'repeat': {
      const inner = expressionOf(node.inner)
      if (!inner) return node.min === 0 ? noText : undefined
      return manyTimes(inner, node.min, node.max)
    }
    default:
      return noText
  }
}

/** Upper bound for ambiguous repetitions, because parsers track every combination of the inner and the outer count. */
const maxAmbiguous = 16

/**
 * Rewrites or limits repetitions that make matching exponential: grammar parsers track every possible parse of the
 * input, and `(.*.*)*` has too many.
 */
function withoutAmbiguity(node: PatternNode, at: string): PatternNode {
  if ('parts' in node) return { ...node, parts: node.parts.map((part) => withoutAmbiguity(part, at)) }
  if (node.kind !== 'repeat') return node
  const inner = withoutAmbiguity(node.inner, at)
  if (node.max <= 1) return { ...node, inner }
  // `(a+)*` is `a*`.
  if (inner.kind === 'repeat' && inner.min <= 1) {
    return { ...inner, min: inner.min * node.min, max: inner.max === 0 ? 0 : inner.max * node.max }
  }
  if (patternLength(inner).min === 0) throw new CannotExpress(at, 'pattern', 'repeats a group that may be empty')
  if (!runsOn(inner, firstCharacters(inner))) return { ...node, inner }
  const max = Math.max(node.min, Math.min(node.max, maxAmbiguous))
  return { ...node, inner: capRepetitions(inner, maxAmbiguous), max }
}

/** Whether a match may end with a repetition that could also consume the first character of the next match. */
function runsOn(node: PatternNode, first: readonly CodePointRange[]): boolean {
  if (node.kind === 'choice') return node.parts.some((option) => runsOn(option, first))
  if (node.kind === 'repeat') {
    return (
      (node.min !== node.max && intersectRanges(firstCharacters(node.inner), first).length > 0) ||
      runsOn(node.inner, first)
    )
  }
  if (node.kind !== 'row') return false
  for (const part of node.parts.toReversed()) {
    if (runsOn(part, first)) return true
    if (patternLength(part).min > 0) return false
  }
  return false
}

/** The characters that a match may start with. */
function firstCharacters(node: PatternNode): readonly CodePointRange[] {
  if (node.kind === 'sign') return node.ranges
  if (node.kind === 'choice') return node.parts.flatMap(firstCharacters)
  if (node.kind === 'repeat') return firstCharacters(node.inner)
  if (node.kind !== 'row') return []
  const until = node.parts.findIndex((part) => patternLength(part).min > 0)
  return node.parts.slice(0, until < 0 ? undefined : until + 1).flatMap(firstCharacters)
}

const maxPatternDepth = 32
const maxPatternLength = 2_000

/** Parses a regular expression. Refuses lookarounds, back-references, word boundaries and Unicode properties. */
function parsePattern(pattern: string, at: string): PatternNode {
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
type PatternNode =
  | { readonly kind: 'sign'; readonly ranges: readonly CodePointRange[] }
  | { readonly kind: 'row' | 'choice'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly inner: PatternNode; readonly min: number; readonly max: number }
  | { readonly kind: 'start' | 'end' }

/** The minimum and maximum length of a match; the maximum may be infinite. */
interface LengthRange {
  readonly min: number
  readonly max: number
}

function patternLength(node: PatternNode): LengthRange {
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
function capRepetitions(node: PatternNode, limit: number): PatternNode {
  if ('parts' in node) return { ...node, parts: node.parts.map((part) => capRepetitions(part, limit)) }
  if (node.kind !== 'repeat') return node
  return { ...node, inner: capRepetitions(node.inner, limit), max: Math.max(node.min, Math.min(node.max, limit)) }
}
