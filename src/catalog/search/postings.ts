import type { Definition, Entry } from '../../core/entry.ts'
import { isRecord } from '../../lib/is-record.ts'
import { tokens } from './tokenizer.ts'

/** The tools that contain a word, and the word's weight in each of them. */
interface Posting {
  readonly places: number[]
  readonly weights: number[]
}

/** An inverted index that is updated tool by tool. */
export function createPostings() {
  const postings = new Map<string, Posting>()

  return {
    add(place: number, entry: Entry): void {
      for (const [word, weight] of wordsOf(entry)) {
        const known = postings.get(word)
        if (known) {
          known.places.push(place)
          known.weights.push(weight)
        } else postings.set(word, { places: [place], weights: [weight] })
      }
    },
    remove(gone: readonly { readonly place: number; readonly entry: Entry }[]): void {
      const places = new Set(gone.map(({ place }) => place))
      const words = new Set(gone.flatMap(({ entry }) => [...wordsOf(entry).keys()]))
      // Remove all tools together, so that each posting list is scanned only once.
      for (const word of words) {
        const posting = postings.get(word) as Posting
        without(posting, places)
        if (posting.places.length === 0) postings.delete(word)
      }
    },
    /** Scores `count` tools. A tool's score is at its place, which is below `room`. Rare words count more. */
    score(words: readonly string[], { count, room }: { readonly count: number; readonly room: number }) {
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

/** The weight of each word in a tool, from 0 to 1. */
type Words = ReadonlyMap<string, number>

/** Field weights. Names count most, because they are chosen with care; parameter descriptions count least. */
const weights = { name: 3, server: 1, title: 2, description: 2, parameter: 2, explanation: 1, value: 2 } as const

/** The weighted count at which a word reaches half of its maximum score (BM25's k1). */
const saturation = 2
/** How much a definition's length matters (BM25's b). */
const lengthPenalty = 0.4
/** The weighted length of a typical tool. A constant, so that a tool's weights do not depend on other tools. */
const usualLength = 50

const read = new WeakMap<Definition, Words>()

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

/** Limits for the depth and size of schemas, which come from servers. */
const maxDepth = 3
const maxParameters = 100
const maxValues = 50

function addParameters(schema: unknown, add: (text: unknown, weight: number) => void, depth: number): void {
  if (!isRecord(schema) || depth >= maxDepth) return
  // Enum values often contain words that users mention in tasks: `unit: celsius | fahrenheit`.
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
