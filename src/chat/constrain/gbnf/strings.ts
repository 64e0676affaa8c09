import { CannotExpress } from '../conversion.ts'
import { type JsonSchemaObject, numberIn } from '../schema.ts'
import {
  anyOf,
  type CodePointRange,
  character,
  type Expression,
  intersectRanges,
  literal,
  manyTimes,
  noText,
  sequence,
  stringOf,
  writableCharacters,
} from './expression.ts'
import { capRepetitions, type LengthRange, type PatternNode, parsePattern, patternLength } from './pattern-parser.ts'
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
