import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Served } from '../../core/access.ts'
import { type Definition, type Entry, seenName } from '../../core/entry.ts'
import { isRecord } from '../../lib/is-record.ts'
import { addScores, type ScoreSource } from './combine-scores.ts'
import { tokens } from './tokenizer.ts'

interface SearchQuery<Item> {
  readonly limit: number
  /** The tools that the caller may use. Pass the same array each time, because its mask is cached by identity. */
  readonly among: readonly Item[]
  readonly server?: string | undefined
  /** What is added to the score of the tools' own words. */
  readonly sources?: readonly ScoreSource[]
}

/** How long an update of the index may block the event loop at a time. */
const maxTurnMs = 10

/** When to pause: the time, and how to wait for the next turn. */
const turnTime = { now: () => performance.now(), next: () => nextIteration() }

/** Ranks tools by how well their names, descriptions and parameters match a task (BM25). */
export class SearchIndex<Item extends Served = Served> {
  readonly #postings = new Postings()
  /** The tools. A tool's index in this array is its place; the places of removed tools are reused. */
  readonly #items: (Item | undefined)[] = []
  readonly #places = new Map<Item, number>()
  readonly #free: number[] = []
  /** For each place, the position of its tool in the list passed to `update`. */
  #ranks = new Int32Array(0)
  #byName: ReadonlyMap<string, number> | undefined
  /** For each list that was searched, a mask with 1 for every place whose tool is in the list. */
  #masks = new WeakMap<readonly Item[], Uint8Array>()

  /** Replaces the set of tools. Indexes only tools that are new, and removes those that are gone. */
  update(listed: readonly Item[]): void {
    for (const _ of this.#changes(listed));
  }

  /** The same in turns, because thousands of tools take hundreds of milliseconds. Do not search in between. */
  async updateInTurns(listed: readonly Item[], time = turnTime): Promise<void> {
    let start = time.now()
    for (const _ of this.#changes(listed)) {
      if (time.now() - start < maxTurnMs) continue
      await time.next()
      start = time.now()
    }
  }

  /** The matching tools, best first. Ties keep the order of the list passed to `update`. */
  search(query: string, { limit, ...asked }: SearchQuery<Item>) {
    const { found, scores } = this.#rank(query, asked)
    return { items: this.#best(found, scores, limit).map((place) => this.#items[place] as Item), total: found.length }
  }

  /** The same with the parts of each tool's score, relative to the best score of a tool's own words. */
  explain(query: string, { limit, ...asked }: SearchQuery<Item>) {
    const { found, scores, base, best } = this.#rank(query, asked)
    return this.#best(found, scores, limit).map((place) => {
      const own = (base[place] as number) / best
      return { item: this.#items[place] as Item, base: own, added: (scores[place] as number) / best - own }
    })
  }

  #rank(query: string, { among, server, sources = [] }: Omit<SearchQuery<Item>, 'limit'>) {
    const steps = taskSteps(query)
    const whole = this.#score([...new Set(steps.flat())])
    const mask = this.#maskOf(among)
    const isWanted = (place: number) =>
      mask[place] === 1 && (server === undefined || this.#items[place]?.entry.server === server)
    const matches = whole.places.filter(isWanted)
    const base = steps.length > 1 ? this.#stepScores(steps, whole.scores, matches) : whole.scores
    const best = highest(base, matches)
    if (sources.length === 0) return { found: matches, scores: base, base, best }
    const known = this.#placesByName()
    const question = {
      ...{ query, steps, rarity: (word: string) => this.#postings.rarity(word, this.#places.size) },
      placeOf(tool: string) {
        const place = known.get(tool)
        return place !== undefined && isWanted(place) ? place : undefined
      },
      definitionAt: (place: number) => (this.#items[place] as Item).entry.definition,
      baseShare: (place: number) => (base[place] as number) / best,
    }
    const parts = sources.map((source) => source(question))
    return { ...addScores({ scores: base, found: matches, best }, parts), base, best }
  }

  #best(found: readonly number[], scores: Float64Array, limit: number): readonly number[] {
    const ranks = this.#ranks
    const order = (a: number, b: number) =>
      (scores[b] as number) - (scores[a] as number) || (ranks[a] as number) - (ranks[b] as number)
    return bestCandidates(found, limit, order)
  }

  #placesByName(): ReadonlyMap<string, number> {
    this.#byName ??= new Map([...this.#places].map(([{ entry }, place]) => [toolId(entry), place]))
    return this.#byName
  }

  /** Applies an update, and yields after each tool. */
  *#changes(listed: readonly Item[]): Generator<undefined> {
    const present = new Set(listed)
    const gone = [...this.#places].filter(([item]) => !present.has(item))
    this.#masks = new WeakMap()
    this.#byName = undefined
    this.#postings.remove(gone.map(([item, place]) => ({ place, entry: item.entry })))
    for (const [item, place] of gone) {
      this.#places.delete(item)
      this.#items[place] = undefined
      this.#free.push(place)
    }
    for (const item of present) {
      if (this.#places.has(item)) continue
      const place = this.#free.pop() ?? this.#items.length
      this.#items[place] = item
      this.#places.set(item, place)
      this.#postings.add(place, item.entry)
      yield
    }
    this.#ranks = new Int32Array(this.#items.length)
    for (const [rank, item] of listed.entries()) this.#ranks[this.#places.get(item) as number] = rank
  }

  #score(words: readonly string[]) {
    return this.#postings.score(words, { count: this.#places.size, room: this.#items.length })
  }

  /** A list's mask. Without it, looking up every match in a set would cost more than the rest of the search. */
  #maskOf(among: readonly Item[]): Uint8Array {
    const known = this.#masks.get(among)
    if (known) return known
    const mask = new Uint8Array(this.#items.length)
    for (const item of among) {
      const place = this.#places.get(item)
      if (place !== undefined) mask[place] = 1
    }
    this.#masks.set(among, mask)
    return mask
  }

  /**
   * The scores for a task with several steps. Adds a tool's score for the whole task and its score for its best step,
   * each relative to the best tool. Otherwise the step with the most words would dominate the list.
   */
  #stepScores(steps: readonly (readonly string[])[], whole: Float64Array, found: readonly number[]): Float64Array {
    const bestStep = new Float64Array(this.#items.length)
    for (const words of steps) {
      const step = this.#score(words).scores
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

/** A tool as the configuration and commands name it. */
export const toolId = ({ server, name }: Pick<Entry, 'server' | 'name'>): string => `${server}.${name}`

/** The highest score. Never 0, because it is used as a divisor. */
function highest(scores: Float64Array, places: readonly number[]): number {
  let most = 0
  for (const place of places) if ((scores[place] as number) > most) most = scores[place] as number
  return most || 1
}

/** The best `limit` candidates in order. Does not sort the others: most are worse than all that are kept. */
export function bestCandidates(
  candidates: Iterable<number>,
  limit: number,
  compare: (a: number, b: number) => number,
): readonly number[] {
  const kept: number[] = []
  for (const candidate of candidates) {
    if (kept.length >= limit && !(limit > 0 && compare(candidate, kept.at(-1) as number) < 0)) continue
    const place = kept.findLastIndex((other) => compare(other, candidate) <= 0) + 1
    kept.splice(place, 0, candidate)
    if (kept.length > limit) kept.pop()
  }
  return kept
}

/** Text between the steps of a task: ends of sentences and lines, and words such as "then". */
const border =
  /(?<=[.?!;])\s+|(?<=[。？！；])\s*|\n+|,?\s+(?:(?:and\s+)?then|(?:and\s+)?after that|and (?:also|finally))[\s,]+/i

const maxQuery = 4_000
const maxTaskSteps = 12

/** The words of a task by step, without duplicates within a step; empty steps are dropped. */
function taskSteps(task: string): readonly (readonly string[])[] {
  const steps = task
    .slice(0, maxQuery)
    .split(border)
    .map((step) => [...new Set(tokens(step))])
    .filter((words) => words.length > 0)
  if (steps.length <= maxTaskSteps) return steps
  return [...steps.slice(0, maxTaskSteps - 1), [...new Set(steps.slice(maxTaskSteps - 1).flat())]]
}

/** The tools that contain a word, and the word's weight in each of them. */
interface Posting {
  readonly places: number[]
  readonly weights: number[]
}

/** An inverted index that is updated tool by tool. */
class Postings {
  readonly #postings = new Map<string, Posting>()

  add(place: number, entry: Entry): void {
    for (const [word, weight] of entryWords(entry)) {
      const known = this.#postings.get(word)
      if (known) {
        known.places.push(place)
        known.weights.push(weight)
      } else this.#postings.set(word, { places: [place], weights: [weight] })
    }
  }

  remove(gone: readonly { readonly place: number; readonly entry: Entry }[]): void {
    const places = new Set(gone.map(({ place }) => place))
    const words = new Set(gone.flatMap(({ entry }) => [...entryWords(entry).keys()]))
    // Remove all tools together, so that each posting list is scanned only once.
    for (const word of words) {
      const posting = this.#postings.get(word) as Posting
      removePlaces(posting, places)
      if (posting.places.length === 0) this.#postings.delete(word)
    }
  }

  /** How much a word counts among `count` tools. */
  rarity(word: string, count: number): number {
    const having = this.#postings.get(word)?.places.length ?? 0
    return Math.log(1 + (count - having + 0.5) / (having + 0.5))
  }

  /** Scores `count` tools. A tool's score is at its place, which is below `room`. Rare words count more. */
  score(words: readonly string[], { count, room }: { readonly count: number; readonly room: number }) {
    const scores = new Float64Array(room)
    const touched: number[] = []
    for (const word of words) {
      const posting = this.#postings.get(word)
      if (!posting) continue
      const { places, weights } = posting
      const rarity = this.rarity(word, count)
      for (let at = 0; at < places.length; at++) {
        const place = places[at] as number
        if (scores[place] === 0) touched.push(place)
        scores[place] = (scores[place] as number) + rarity * (weights[at] as number)
      }
    }
    return { scores, places: touched }
  }
}

function removePlaces({ places, weights }: Posting, gone: ReadonlySet<number>): void {
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
const fieldWeights = { name: 3, server: 1, title: 2, description: 2, parameter: 2, explanation: 1, value: 2 } as const

/** The weighted count at which a word reaches half of its maximum score (BM25's k1). */
const saturation = 2
/** How much a definition's length matters (BM25's b). */
const lengthPenalty = 0.4
/** The weighted length of a typical tool. A constant, so that a tool's weights do not depend on other tools. */
const usualLength = 50

const knownWords = new WeakMap<Definition, Words>()

function entryWords(entry: Entry): Words {
  const known = knownWords.get(entry.definition) ?? weighWords(entry)
  knownWords.set(entry.definition, known)
  return known
}

function weighWords(entry: Entry): Words {
  const { server, definition, override } = entry
  const counts = new Map<string, number>()
  let length = 0
  const add = (text: unknown, weight: number) => {
    if (typeof text !== 'string') return
    for (const word of tokens(text)) {
      counts.set(word, (counts.get(word) ?? 0) + weight)
      length += weight
    }
  }
  add(seenName(entry), fieldWeights.name)
  for (const tag of override?.tags ?? []) add(tag, fieldWeights.title)
  add(server, fieldWeights.server)
  add(definition.title, fieldWeights.title)
  add(definition.description, fieldWeights.description)
  addParameters(definition.inputSchema, add, 0)
  const half = saturation * (1 - lengthPenalty + (lengthPenalty * length) / usualLength)
  for (const [word, count] of counts) counts.set(word, count / (count + half))
  return counts
}

/** Limits for the depth and size of schemas, which come from servers. */
const maxSchemaDepth = 3
const maxParameters = 100
const maxEnumValues = 50

function addParameters(schema: unknown, add: (text: unknown, weight: number) => void, depth: number): void {
  if (!isRecord(schema) || depth >= maxSchemaDepth) return
  // Enum values often contain words that users mention in tasks: `unit: celsius | fahrenheit`.
  if (Array.isArray(schema.enum))
    for (const value of schema.enum.slice(0, maxEnumValues)) add(value, fieldWeights.value)
  if (isRecord(schema.items)) addParameters(schema.items, add, depth)
  if (!isRecord(schema.properties)) return
  for (const [name, property] of Object.entries(schema.properties).slice(0, maxParameters)) {
    add(name, fieldWeights.parameter)
    if (!isRecord(property)) continue
    add(property.description, fieldWeights.explanation)
    addParameters(property, add, depth + 1)
  }
}
