import { CannotExpress } from '../conversion.ts'
import { character, overlap, written } from './characters.ts'
import { all, any, type Expression, manyTimes, nothing, type Range, text } from './expression.ts'
import { capped, parsePattern, type Span, spanOf, type Tree } from './pattern-parser.ts'

/**
 * A JSON string that fits a regular expression and has so many characters. Without anchors anything may stand before
 * and after it, as everywhere in JSON Schema. `undefined` where nothing fits.
 */
export function patternString(pattern: string, length: Span, at: string): Expression | undefined {
  const tree = sized(tamed(anchored(parsePattern(pattern, at), at), at), length, at)
  const inner = tree && expressionOf(tree, at)
  return inner && all(text('"'), inner, text('"'))
}

const anything: Tree = {
  kind: 'repeat',
  inner: { kind: 'sign', ranges: [[0, 0x10ffff]] },
  min: 0,
  max: Number.POSITIVE_INFINITY,
}

/** Puts what anchors leave out in their place; an anchor in the middle of something is refused. */
function anchored(tree: Tree, at: string): Tree {
  if (tree.kind === 'choice') return { ...tree, options: tree.options.map((option) => anchored(option, at)) }
  const parts = tree.kind === 'row' ? tree.parts : [tree]
  const start = parts[0]?.kind === 'start'
  const end = parts.length > Number(start) && parts.at(-1)?.kind === 'end'
  const inner = parts.slice(start ? 1 : 0, end ? -1 : undefined)
  // `^(a|b)$` and `(^a$|^b$)` are both usual.
  const [only] = inner
  if (!start && !end && inner.length === 1 && only?.kind === 'choice' && hasAnchor(only)) return anchored(only, at)
  if (inner.some(hasAnchor)) throw new CannotExpress(at, 'pattern', 'has an anchor in the middle')
  return { kind: 'row', parts: [...(start ? [] : [anything]), ...inner, ...(end ? [] : [anything])] }
}

function hasAnchor(tree: Tree): boolean {
  if (tree.kind === 'start' || tree.kind === 'end') return true
  if (tree.kind === 'row') return tree.parts.some(hasAnchor)
  if (tree.kind === 'choice') return tree.options.some(hasAnchor)
  return tree.kind === 'repeat' && hasAnchor(tree.inner)
}

/** The same with its repetitions held within the wanted length. */
function sized(tree: Tree, length: Span, at: string): Tree | undefined {
  const fitting = lengthened(tree, length.min, at)
  if (spanOf(fitting).min > length.max) return undefined
  let [low, high] = [0, length.max]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (spanOf(capped(fitting, middle)).max <= length.max) low = middle
    else high = middle - 1
  }
  const held = capped(fitting, low)
  if (spanOf(held).max <= length.max) return held
  throw new CannotExpress(at, 'pattern', 'allows more characters than maxLength, in too many ways')
}

/** Raises the one repetition that can be raised, where the pattern allows less than `minLength` asks for. */
function lengthened(tree: Tree, min: number, at: string): Tree {
  const short = min - spanOf(tree).min
  if (short <= 0) return tree
  const parts = tree.kind === 'row' ? tree.parts : [tree]
  const loose = parts.filter((part) => spanOf(part).min !== spanOf(part).max)
  const [only] = loose
  const unit = only?.kind === 'repeat' ? spanOf(only.inner) : undefined
  if (loose.length !== 1 || only?.kind !== 'repeat' || !unit || unit.min !== unit.max || unit.min === 0) {
    throw new CannotExpress(at, 'minLength', 'asks for more characters than the pattern, in too many ways')
  }
  const raised = { ...only, min: only.min + Math.ceil(short / unit.min) }
  if (raised.min > raised.max)
    throw new CannotExpress(at, 'minLength', 'asks for more characters than the pattern allows')
  return { kind: 'row', parts: parts.map((part) => (part === only ? raised : part)) }
}

function expressionOf(tree: Tree, at: string): Expression | undefined {
  switch (tree.kind) {
    case 'sign':
      return tree.ranges.length === 1 && tree.ranges[0]?.[1] === 0x10ffff && tree.ranges[0][0] === 0
        ? character
        : written(tree.ranges)
    case 'row': {
      const parts = tree.parts.map((part) => expressionOf(part, at))
      return parts.includes(undefined) ? undefined : all(...(parts as Expression[]))
    }
    case 'choice':
      return any(...tree.options.map((option) => expressionOf(option, at)))
    case 'repeat': {
      const inner = expressionOf(tree.inner, at)
      if (!inner) return tree.min === 0 ? nothing : undefined
      return manyTimes(inner, tree.min, tree.max)
    }
    default:
      return nothing
  }
}

/** Where it cannot be seen which repetition a character belongs to, every combination of two counts is kept in mind. */
const maxAmbiguous = 16

/**
 * The same without repetitions that readers of grammars lose themselves in: they follow every way in which a text can
 * be read, and `(.*.*)*` has more of them than there is time.
 */
function tamed(tree: Tree, at: string): Tree {
  if (tree.kind === 'row') return { ...tree, parts: tree.parts.map((part) => tamed(part, at)) }
  if (tree.kind === 'choice') return { ...tree, options: tree.options.map((option) => tamed(option, at)) }
  if (tree.kind !== 'repeat') return tree
  const inner = tamed(tree.inner, at)
  if (tree.max <= 1) return { ...tree, inner }
  // `(a+)*` is `a*`.
  if (inner.kind === 'repeat' && inner.min <= 1) {
    return { ...inner, min: inner.min * tree.min, max: inner.max === 0 ? 0 : inner.max * tree.max }
  }
  if (spanOf(inner).min === 0) throw new CannotExpress(at, 'pattern', 'repeats what may be empty')
  if (!runsOn(inner, firstOf(inner))) return { ...tree, inner }
  const max = Math.max(tree.min, Math.min(tree.max, maxAmbiguous))
  return { ...tree, inner: capped(inner, maxAmbiguous), max }
}

/** Whether a text may end with a repetition that could as well be the beginning of the next text. */
function runsOn(tree: Tree, first: readonly Range[]): boolean {
  if (tree.kind === 'choice') return tree.options.some((option) => runsOn(option, first))
  if (tree.kind === 'repeat') {
    return (tree.min !== tree.max && overlap(firstOf(tree.inner), first).length > 0) || runsOn(tree.inner, first)
  }
  if (tree.kind !== 'row') return false
  for (const part of tree.parts.toReversed()) {
    if (runsOn(part, first)) return true
    if (spanOf(part).min > 0) return false
  }
  return false
}

/** The characters that a text may begin with. */
function firstOf(tree: Tree): readonly Range[] {
  if (tree.kind === 'sign') return tree.ranges
  if (tree.kind === 'choice') return tree.options.flatMap(firstOf)
  if (tree.kind === 'repeat') return firstOf(tree.inner)
  if (tree.kind !== 'row') return []
  const until = tree.parts.findIndex((part) => spanOf(part).min > 0)
  return tree.parts.slice(0, until < 0 ? undefined : until + 1).flatMap(firstOf)
}
