import type { Range } from '../expression.ts'

/** What a regular expression says, as far as a grammar can say it too. */
export type Tree =
  | { readonly kind: 'sign'; readonly ranges: readonly Range[] }
  | { readonly kind: 'row'; readonly parts: readonly Tree[] }
  | { readonly kind: 'choice'; readonly options: readonly Tree[] }
  | { readonly kind: 'repeat'; readonly inner: Tree; readonly min: number; readonly max: number }
  | { readonly kind: 'start' }
  | { readonly kind: 'end' }

/** How many characters a text may have that fits; the larger one may be infinite. */
export interface Span {
  readonly min: number
  readonly max: number
}

export function spanOf(tree: Tree): Span {
  switch (tree.kind) {
    case 'sign':
      return { min: 1, max: 1 }
    case 'start':
    case 'end':
      return { min: 0, max: 0 }
    case 'row':
      return tree.parts.map(spanOf).reduce((sum, span) => ({ min: sum.min + span.min, max: sum.max + span.max }), {
        min: 0,
        max: 0,
      })
    case 'choice': {
      const spans = tree.options.map(spanOf)
      return { min: Math.min(...spans.map(({ min }) => min)), max: Math.max(...spans.map(({ max }) => max)) }
    }
    case 'repeat': {
      const inner = spanOf(tree.inner)
      return { min: inner.min * tree.min, max: inner.max === 0 ? 0 : inner.max * tree.max }
    }
  }
}

/** The same with no repetition longer than `most`, unless it has to be. */
export function capped(tree: Tree, most: number): Tree {
  switch (tree.kind) {
    case 'row':
      return { ...tree, parts: tree.parts.map((part) => capped(part, most)) }
    case 'choice':
      return { ...tree, options: tree.options.map((option) => capped(option, most)) }
    case 'repeat':
      return { ...tree, inner: capped(tree.inner, most), max: Math.max(tree.min, Math.min(tree.max, most)) }
    default:
      return tree
  }
}
