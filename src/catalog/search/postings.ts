import type { Entry } from '../../core/entry.ts'
import { wordsOf } from './words.ts'

/** Which tools have a word, and how much it says about each of them. */
interface Posting {
  readonly places: number[]
  readonly weights: number[]
}

export interface Scores {
  /** By place; 0 where no word matches. */
  readonly scores: Float64Array
  /** Where it is not 0. */
  readonly places: readonly number[]
}

/** Words and the tools that have them, kept up to date tool by tool. */
export interface Postings {
  add(place: number, entry: Entry): void
  remove(gone: readonly { readonly place: number; readonly entry: Entry }[]): void
  /** What different words come to for each of `count` tools, whose places are below `room`; rare words count more. */
  score(words: readonly string[], among: { readonly count: number; readonly room: number }): Scores
}

export function createPostings(): Postings {
  const postings = new Map<string, Posting>()

  return {
    add(place, entry) {
      for (const [word, weight] of wordsOf(entry)) {
        const known = postings.get(word)
        if (known) {
          known.places.push(place)
          known.weights.push(weight)
        } else postings.set(word, { places: [place], weights: [weight] })
      }
    },
    remove(gone) {
      const places = new Set(gone.map(({ place }) => place))
      const words = new Set(gone.flatMap(({ entry }) => [...wordsOf(entry).keys()]))
      // All at once, so that each list is gone through once however large the server was.
      for (const word of words) {
        const posting = postings.get(word) as Posting
        without(posting, places)
        if (posting.places.length === 0) postings.delete(word)
      }
    },
    score(words, { count, room }) {
      const scores = new Float64Array(room)
      const touched: number[] = []
      for (const word of words) {
        const posting = postings.get(word)
        if (!posting) continue
        const { places, weights } = posting
        const rarity = Math.log(1 + (count - places.length + 0.5) / (places.length + 0.5))
        for (let at = 0; at < places.length; at++) {
          const place = places[at] as number
          if (scores[place] === 0) touched.push(place)
          scores[place] = (scores[place] as number) + rarity * (weights[at] as number)
        }
      }
      return { scores, places: touched }
    },
  }
}

/** Takes places out, and keeps the others in order. */
function without({ places, weights }: Posting, gone: ReadonlySet<number>): void {
  let kept = 0
  for (let at = 0; at < places.length; at++) {
    if (gone.has(places[at] as number)) continue
    places[kept] = places[at] as number
    weights[kept++] = weights[at] as number
  }
  places.length = kept
  weights.length = kept
}
