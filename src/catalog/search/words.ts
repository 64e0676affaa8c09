import type { Definition, Entry } from '../../core/entry.ts'
import { isRecord } from '../../lib/is-record.ts'
import { tokens } from './tokens.ts'

/** How much each word of a tool says about it, from 0 to 1. */
export type Words = ReadonlyMap<string, number>

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
export function wordsOf(entry: Entry): Words {
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
