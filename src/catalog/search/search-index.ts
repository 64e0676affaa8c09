import type { Item } from '../item.ts'
import { createPostings } from './postings.ts'
import { tokens } from './tokenizer.ts'

/** Ranks tools by how well their names, descriptions and parameters fit the words of a task (BM25). */
export interface SearchIndex {
  /** From now on these are the tools. Only what is new is read, and only what is gone is taken out. */
  update(items: readonly Item[]): void
  /** The best of the tools that are asked about, best first; ties in the order of the list. */
  search(query: string, asked: SearchQuery): IndexMatches
}

export interface SearchQuery {
  readonly limit: number
  /** What the caller may use. What is known of a list is kept, so that it should be the same one each time. */
  readonly among: readonly Item[]
  readonly server?: string | undefined
}

export interface IndexMatches {
  readonly items: readonly Item[]
  /** How many there are with any word of the query. */
  readonly total: number
}

export function createSearchIndex(): SearchIndex {
  const postings = createPostings()
  /** By place; a place is taken again when its tool is gone. */
  const items: (Item | undefined)[] = []
  const places = new Map<Item, number>()
  const free: number[] = []
  /** Where each place stands in the list. */
  let ranks = new Int32Array(0)
  /** For each list that was asked about, 1 where a place is in it. */
  let masks = new WeakMap<readonly Item[], Uint8Array>()

  return {
    update(listed) {
      const present = new Set(listed)
      const gone = [...places].filter(([item]) => !present.has(item))
      postings.remove(gone.map(([item, place]) => ({ place, entry: item.entry })))
      for (const [item, place] of gone) {
        places.delete(item)
        items[place] = undefined
        free.push(place)
      }
      for (const item of present) {
        if (places.has(item)) continue
        const place = free.pop() ?? items.length
        items[place] = item
        places.set(item, place)
        postings.add(place, item.entry)
      }
      ranks = new Int32Array(items.length)
      for (const [rank, item] of listed.entries()) ranks[places.get(item) as number] = rank
      masks = new WeakMap()
    },
    search(query, { limit, among, server }) {
      const steps = stepsOf(query)
      const whole = score([...new Set(steps.flat())])
      const mask = maskOf(among)
      const ofServer = (place: number) => server === undefined || items[place]?.entry.server === server
      const found = whole.places.filter((place) => mask[place] === 1 && ofServer(place))
      const scores = steps.length > 1 ? fused(steps, whole.scores, found) : whole.scores
      const order = (a: number, b: number) =>
        (scores[b] as number) - (scores[a] as number) || (ranks[a] as number) - (ranks[b] as number)
      return { items: best(found, limit, order).map((place) => items[place] as Item), total: found.length }
    },
  }

  function score(words: readonly string[]) {
    return postings.score(words, { count: places.size, room: items.length })
  }

  /** Looking every match up in a set, again in every search, would cost more than all the rest. */
  function maskOf(among: readonly Item[]): Uint8Array {
    const known = masks.get(among)
    if (known) return known
    const mask = new Uint8Array(items.length)
    for (const item of among) {
      const place = places.get(item)
      if (place !== undefined) mask[place] = 1
    }
    masks.set(among, mask)
    return mask
  }

  /**
   * A tool is as good for a task of several steps as it is for the whole of it, and for the one step that it serves
   * best, each against the best tool for that: else the step with the most words would fill the list.
   */
  function fused(steps: readonly (readonly string[])[], whole: Float64Array, found: readonly number[]): Float64Array {
    const bestStep = new Float64Array(items.length)
    for (const words of steps) {
      const step = score(words).scores
      const most = highest(step, found)
      for (const place of found) {
        const share = (step[place] as number) / most
        if (share > (bestStep[place] as number)) bestStep[place] = share
      }
    }
    const most = highest(whole, found)
    for (const place of found) bestStep[place] = (bestStep[place] as number) + (whole[place] as number) / most
    return bestStep
  }
}

/** Never 0, so that it can be divided by. */
function highest(scores: Float64Array, places: readonly number[]): number {
  let most = 0
  for (const place of places) if ((scores[place] as number) > most) most = scores[place] as number
  return most || 1
}

/** The first `limit` of some numbers by an order, in that order, without sorting all the others. */
export function best(
  candidates: Iterable<number>,
  limit: number,
  compare: (a: number, b: number) => number,
): readonly number[] {
  // A heap with the worst of the kept at its top: most candidates are turned away after one comparison.
  const kept: number[] = []
  for (const candidate of candidates) {
    if (kept.length < limit) rise(kept, candidate, compare)
    else if (limit > 0 && compare(candidate, kept[0] as number) < 0) sink(kept, candidate, compare)
  }
  return kept.sort(compare)
}

function rise(heap: number[], value: number, compare: (a: number, b: number) => number): void {
  let at = heap.length
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (compare(heap[parent] as number, value) >= 0) break
    heap[at] = heap[parent] as number
    at = parent
  }
  heap[at] = value
}

/** Puts a value in the place of the top. */
function sink(heap: number[], value: number, compare: (a: number, b: number) => number): void {
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && compare(heap[child + 1] as number, heap[child] as number) > 0) child++
    if (compare(value, heap[child] as number) >= 0) break
    heap[at] = heap[child] as number
    at = child
  }
  heap[at] = value
}

/** Where one step of a task ends and the next begins: sentences, lines, and the words that say so. */
const border = /(?<=[.?!;。？！；])\s+|\n+|,?\s+(?:(?:and\s+)?then|(?:and\s+)?after that|and (?:also|finally))[\s,]+/i

/** Nobody reads a task of more words; what comes after is no question any more. */
const longest = 4_000
const maxSteps = 12

/** The words of a task, step by step, each word once in a step. A step without words is none. */
function stepsOf(task: string): readonly (readonly string[])[] {
  const steps = task
    .slice(0, longest)
    .split(border)
    .map((step) => [...new Set(tokens(step))])
    .filter((words) => words.length > 0)
  if (steps.length <= maxSteps) return steps
  return [...steps.slice(0, maxSteps - 1), [...new Set(steps.slice(maxSteps - 1).flat())]]
}
