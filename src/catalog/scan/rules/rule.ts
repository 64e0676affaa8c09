import type { FindingKind } from '../finding.ts'

/** Something that poison says and honest definitions do not. All patterns match folded sentences with stand-ins. */
export interface Rule {
  readonly kind: FindingKind
  /** Words one of which must be there: most sentences have none, and are done after one look. */
  readonly needs: readonly string[]
  /** One of these as well. */
  readonly and?: readonly string[]
  readonly pattern: RegExp
  /** Must be there too, in the same sentence or in one next to it. */
  readonly near?: RegExp
  /** Makes the sentence honest. */
  readonly unless?: RegExp
}

/** Phrases of which any will do, as part of a pattern and as the words that each begins with. */
export interface Phrases {
  readonly words: readonly string[]
  toString(): string
}

/** Makes phrases of a list with commas; `s?` at the end of a word stands for both of its forms. */
export function any(...lists: readonly (string | Phrases)[]): Phrases {
  const source = `(?:${lists.map((list) => (typeof list === 'string' ? list.split(', ').join('|') : list)).join('|')})`
  const words = lists.flatMap((list) =>
    typeof list === 'string' ? list.split(', ').flatMap((phrase) => forms(phrase.split(' ')[0] as string)) : list.words,
  )
  return { words, toString: () => source }
}

const forms = (word: string): string[] => (word.endsWith('s?') ? [word.slice(0, -2), `${word.slice(0, -2)}s`] : [word])

/** Joins parts into a pattern of whole words. Gaps in it are short, so that matching stays linear. */
export const pattern = (parts: TemplateStringsArray, ...inserted: readonly (string | Phrases)[]): RegExp =>
  new RegExp(String.raw(parts, ...inserted.map(String)), 'u')
