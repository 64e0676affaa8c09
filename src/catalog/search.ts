import type { Definition, Entry } from '../core/entry.ts'
import type { Item } from './item.ts'
import { tokens } from './tokens.ts'

/** Ranks tools by how well their names, descriptions and parameters fit the words of a task (BM25). */
export interface SearchIndex {
  /** The best of those that `wanted` accepts, best first; ties in the order of the list. */
  search(query: string, limit: number, wanted: (item: Item) => boolean): readonly Item[]
}

// Repetition of a word adds little and long descriptions are hardly punished: definitions are short and uneven.
const saturation = 0.9
const lengthPenalty = 0.4
const nameWeight = 2

interface Posting {
  readonly document: number
  readonly weight: number
}

export function createIndex(items: readonly Item[]): SearchIndex {
  const documents = items.map(({ entry }) => wordsOf(entry))
  const averageLength = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length)
  const postings = new Map<string, Posting[]>()
  documents.forEach(({ counts, length }, document) => {
    const norm = saturation * (1 - lengthPenalty + (lengthPenalty * length) / averageLength)
    for (const [word, count] of counts) {
      const weight = (count * (saturation + 1)) / (count + norm)
      const known = postings.get(word)
      if (known) known.push({ document, weight })
      else postings.set(word, [{ document, weight }])
    }
  })

  return {
    search: (query, limit, wanted) => {
      const scores = new Float64Array(items.length)
      const touched: number[] = []
      for (const word of new Set(tokens(query))) {
        const found = postings.get(word)
        if (!found) continue
        const rarity = Math.log(1 + (items.length - found.length + 0.5) / (found.length + 0.5))
        for (const { document, weight } of found) {
          if (scores[document] === 0) touched.push(document)
          scores[document] = (scores[document] as number) + rarity * weight
        }
      }
      touched.sort((a, b) => (scores[b] as number) - (scores[a] as number) || a - b)
      const best: Item[] = []
      for (const document of touched) {
        if (best.length >= limit) break
        const item = items[document] as Item
        if (wanted(item)) best.push(item)
      }
      return best
    },
  }
}

interface Words {
  readonly counts: ReadonlyMap<string, number>
  readonly length: number
}

const read = new WeakMap<Definition, Words>()

/** Read once per definition: a change of one server must not cost reading all the others again. */
function wordsOf({ server, name, definition }: Entry): Words {
  const known = read.get(definition)
  if (known) return known
  const counts = new Map<string, number>()
  let length = 0
  const add = (text: unknown, weight: number) => {
    if (typeof text !== 'string') return
    for (const word of tokens(text)) {
      counts.set(word, (counts.get(word) ?? 0) + weight)
      length += weight
    }
  }
  add(name, nameWeight)
  add(server, 1)
  add(definition.title, 1)
  add(definition.description, 1)
  addParameters(definition.inputSchema, add, 0)
  const words = { counts, length }
  read.set(definition, words)
  return words
}

/** Schemas come from servers: deep ones and huge ones are read as far as they can matter. */
const deepest = 3
const mostParameters = 100

function addParameters(schema: unknown, add: (text: unknown, weight: number) => void, depth: number): void {
  if (!isObject(schema) || depth >= deepest) return
  if (isObject(schema.items)) addParameters(schema.items, add, depth)
  if (!isObject(schema.properties)) return
  for (const [name, property] of Object.entries(schema.properties).slice(0, mostParameters)) {
    add(name, 1)
    if (!isObject(property)) continue
    add(property.description, 1)
    addParameters(property, add, depth + 1)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
