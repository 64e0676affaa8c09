import type { Definition } from '../../core/entry.ts'

/** A search, as the sources of further scores see it. */
export interface SearchQuestion {
  readonly query: string
  /** The words of each step of the task. */
  readonly steps: readonly (readonly string[])[]
  /** How much a word counts among all tools. */
  rarity(word: string): number
  /** The place of a tool, named `server.tool`; undefined if the search is not for it or the caller may not use it. */
  placeOf(tool: string): number | undefined
  definitionAt(place: number): Definition
  /** The score of a tool's own words, relative to the best one. */
  baseShare(place: number): number
}

/** A score beside the base. */
export interface ScorePart {
  /** By place, from 0 to 1. */
  readonly scores: ReadonlyMap<number, number>
  /** How much a score of 1 is worth, relative to the best base score. */
  readonly weight: number
}

export type ScoreSource = (question: SearchQuestion) => ScorePart

interface BaseScores {
  readonly scores: Float64Array
  readonly found: readonly number[]
  readonly best: number
}

/**
 * score = base + expansion (+ semantic). No part lowers a tool's score, and none can add more than its weight. Tools that
 * only a part knows are found too.
 */
export function addScores({ scores: base, found, best }: BaseScores, parts: readonly ScorePart[]) {
  const scores = base.slice()
  const all = new Set(found)
  for (const part of parts) {
    for (const [place, score] of part.scores) {
      scores[place] = (scores[place] as number) + part.weight * best * score
      all.add(place)
    }
  }
  return { scores, found: [...all] }
}
