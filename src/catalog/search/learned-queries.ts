import type { ScorePart, SearchQuestion } from './combine-scores.ts'
import { tokens } from './tokenizer.ts'

/** A query after which a tool was called with success, or an example that the operator wrote. */
export interface LearnedQuery {
  readonly tool: string
  /** Who asked. Undefined for examples, which count for everybody. */
  readonly principal: string | undefined
  /** The hash of the tool's definition at that time. Undefined for examples. */
  readonly definition: string | undefined
  readonly words: readonly string[]
  /** When, in milliseconds since the epoch. */
  readonly at: number
}

/** For whom the learned score is computed, and when. */
interface LearnedFor {
  readonly principal: string
  readonly now: number
  readonly halfLifeMs: number
  /** The hash of the definition at a place. */
  definitionHash(place: number): string
}

/** What the best learned score may add, relative to the best score of the tools' own words. */
const learnedWeight = 0.3
/** A weaker match does not count: it consists of words that most queries share. */
const minMatch = 0.1
/** How many tools one search may move up, so that tools without history keep their places. */
const maxMoved = 3
/** The share of the learned score that a tool gets even if its own words do not match at all. */
const unmatchedShare = 0.5
/** The nearest queries of a tool that count, the second half as much as the first, and so on. */
const nearestQueries = 3
const nearestSum = 2 - 2 ** (1 - nearestQueries)
/** How many principals must have taught the same before it counts for others, so that one key cannot move a tool. */
const minPrincipals = 3

const maxWords = 24
const maxWordLength = 40

/** The words of a query that are kept. Numbers and identifiers say nothing about the tool, and may be private. */
export function learnedWords(query: string): readonly string[] {
  const words = new Set(tokens(query).filter((word) => !/\p{N}/u.test(word) && word.length <= maxWordLength))
  return [...words].slice(0, maxWords)
}

/** Learned queries, indexed by their words. */
export class LearnedQueries {
  readonly #queries: readonly LearnedQuery[]
  readonly #byWord = new Map<string, number[]>()

  constructor(queries: readonly LearnedQuery[]) {
    this.#queries = queries
    for (const [at, { words }] of queries.entries()) {
      for (const word of words) {
        const known = this.#byWord.get(word)
        if (known) known.push(at)
        else this.#byWord.set(word, [at])
      }
    }
  }

  /** The expansion: how well the queries that led to a tool match this one. */
  score(question: SearchQuestion, { principal, now, halfLifeMs, definitionHash }: LearnedFor): ScorePart {
    const matches = new Map<string, Map<string | undefined, number[]>>()
    for (const [at, likeness] of this.#likeness(question)) {
      const query = this.#queries[at] as LearnedQuery
      const place = question.placeOf(query.tool)
      if (place === undefined) continue
      if (query.definition !== undefined && query.definition !== definitionHash(place)) continue
      const age = query.principal === undefined ? 0 : Math.max(0, now - query.at)
      const ofTool = matches.get(query.tool) ?? new Map<string | undefined, number[]>()
      const teacher = query.principal === principal ? undefined : query.principal
      matches.set(
        query.tool,
        ofTool.set(teacher, [...(ofTool.get(teacher) ?? []), likeness * 0.5 ** (age / halfLifeMs)]),
      )
    }
    const scores = [...matches].flatMap(([tool, byTeacher]): [number, number][] => {
      const place = question.placeOf(tool) as number
      const score = trustedScore(byTeacher)
      const share = unmatchedShare + (1 - unmatchedShare) * question.baseShare(place)
      return score < minMatch ? [] : [[place, score * share]]
    })
    scores.sort(([, a], [, b]) => b - a)
    return { scores: new Map(scores.slice(0, maxMoved)), weight: learnedWeight }
  }

  /** The cosine of each query to the task, or to its nearest step; words count by their rarity. */
  #likeness({ steps, rarity }: SearchQuestion): ReadonlyMap<number, number> {
    const best = new Map<number, number>()
    const weights = new Map<string, number>()
    const weigh = (word: string) => {
      const weight = weights.get(word) ?? rarity(word) ** 2
      weights.set(word, weight)
      return weight
    }
    const squared = (words: readonly string[]) => words.reduce((sum, word) => sum + weigh(word), 0)
    const whole = [...new Set(steps.flat())]
    for (const step of steps.length > 1 ? [...steps, whole] : [whole]) {
      const words = step.filter((word) => !/\p{N}/u.test(word))
      const length = squared(words)
      const shared = new Float64Array(this.#queries.length)
      for (const word of words) {
        const weight = weigh(word)
        for (const at of this.#byWord.get(word) ?? []) shared[at] = (shared[at] as number) + weight
      }
      for (const [at, common] of shared.entries()) {
        // The cosine is at most the root of this share, so most queries need no closer look.
        if (common === 0 || common / length < minMatch ** 2) continue
        const likeness = common / Math.sqrt(length * squared((this.#queries[at] as LearnedQuery).words))
        if (likeness > (best.get(at) ?? 0)) best.set(at, likeness)
      }
    }
    return best
  }
}

/**
 * A tool's score from the caller's own queries and the examples (`undefined`), or, if that is higher, the score that at
 * least `minPrincipals` others agree on. So what one other principal does changes nothing.
 */
function trustedScore(byTeacher: ReadonlyMap<string | undefined, readonly number[]>): number {
  const own = sumOfNearest(byTeacher.get(undefined) ?? [])
  const others = [...byTeacher].flatMap(([teacher, all]) => (teacher === undefined ? [] : [sumOfNearest(all)]))
  return Math.max(own, others.sort((a, b) => b - a)[minPrincipals - 1] ?? 0)
}

function sumOfNearest(likenesses: readonly number[]): number {
  const sorted = likenesses.toSorted((a, b) => b - a).slice(0, nearestQueries)
  return sorted.reduce((sum, likeness, at) => sum + likeness / 2 ** at, 0) / nearestSum
}
