import type { Definition, Entry } from '../../core/entry.ts'
import { isRecord } from '../../lib/is-record.ts'
import { tokens } from './tokenizer.ts'

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

/** How much each word of a tool says about it, from 0 to 1. */
type Words = ReadonlyMap<string, number>

/** What the parts of a definition count: a name is chosen with care, a parameter's description tells many small things. */
const weights = { name: 3, server: 1, title: 2, description: 2, parameter: 2, explanation: 1, value: 2 } as const

/** Weighted words at which a word counts half of what it ever can. */
const saturation = 2
/** How far the length of a definition counts at all. */
const lengthPenalty = 0.4
/**
 * The weighted length of a usual tool. A constant and not the average of those that are here, so that what a word says
 * about a tool depends on that tool alone, and other tools can come and go.
 */
const usualLength = 50

const read = new WeakMap<Definition, Words>()

/** Read once per definition. */
function wordsOf(entry: Entry): Words {
  const known = read.get(entry.definition) ?? weigh(entry)
  read.set(entry.definition, known)
  return known
}

function weigh({ server, name, definition }: Entry): Words {
  const counts = new Map<string, number>()
  let length = 0
  const add = (text: unknown, weight: number) => {
    if (typeof text !== 'string') return
    for (const word of tokens(text)) {
      counts.set(word, (counts.get(word) ?? 0) + weight)
      length += weight
    }
  }
  add(name, weights.name)
  add(server, weights.server)
  add(definition.title, weights.title)
  add(definition.description, weights.description)
  addParameters(definition.inputSchema, add, 0)
  const half = saturation * (1 - lengthPenalty + (lengthPenalty * length) / usualLength)
  for (const [word, count] of counts) counts.set(word, count / (count + half))
  return counts
}

/** Schemas come from servers: deep ones and huge ones are read as far as they can matter. */
const deepest = 3
const maxParameters = 100
const maxValues = 50

function addParameters(schema: unknown, add: (text: unknown, weight: number) => void, depth: number): void {
  if (!isRecord(schema) || depth >= deepest) return
  // Among what a parameter may be there are words of the tasks that it is for: `unit: celsius | fahrenheit`.
  if (Array.isArray(schema.enum)) for (const value of schema.enum.slice(0, maxValues)) add(value, weights.value)
  if (isRecord(schema.items)) addParameters(schema.items, add, depth)
  if (!isRecord(schema.properties)) return
  for (const [name, property] of Object.entries(schema.properties).slice(0, maxParameters)) {
    add(name, weights.parameter)
    if (!isRecord(property)) continue
    add(property.description, weights.explanation)
    addParameters(property, add, depth + 1)
  }
}
