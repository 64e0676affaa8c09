import { CannotExpress } from '../../cannot-express.ts'
import type { Range } from '../expression.ts'
import { overlap } from '../strings.ts'
import { capped, spanOf, type Tree } from './tree.ts'

/** Where it cannot be seen which repetition a character belongs to, every combination of two counts is kept in mind. */
const maxAmbiguous = 16

/**
 * The same without repetitions that readers of grammars lose themselves in: they follow every way in which a text can
 * be read, and `(.*.*)*` has more of them than there is time.
 */
export function tamed(tree: Tree, at: string): Tree {
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
