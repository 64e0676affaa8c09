import { memoize } from '../lib/memoize.ts'
import { compilePattern, type Matches } from '../lib/wildcard.ts'

/** A compiled list of names and patterns, each with an outcome. */
export interface Patterns<Outcome> {
  readonly names: ReadonlyMap<string, Placed<Outcome>>
  readonly stars: readonly Star<Outcome>[]
}

interface Placed<Outcome> {
  readonly index: number
  readonly outcome: Outcome
}

interface Star<Outcome> extends Placed<Outcome> {
  readonly matches: Matches
}

/** Compiles a pattern. Each is compiled only once, because hundreds of agents may share the same patterns. */
export type CompilePattern = (pattern: string) => Matches

/** Compiles a list. Names are looked up by hash; patterns are tried in order, each in linear time. */
export function compilePatterns<Outcome>(
  written: readonly string[],
  compile: CompilePattern,
  outcomeOf: (index: number) => Outcome,
): Patterns<Outcome> {
  if (written.length === 0) return noPatterns
  const names = new Map<string, Placed<Outcome>>()
  const stars: Star<Outcome>[] = []
  for (const [index, text] of written.entries()) {
    const outcome = outcomeOf(index)
    if (text.includes('*')) stars.push({ index, outcome, matches: compile(text) })
    else if (!names.has(text)) names.set(text, { index, outcome })
  }
  return { names: names.size === 0 ? noNames : names, stars }
}

// Shared by all lists without names. Most lists have none.
const noNames: ReadonlyMap<string, never> = new Map<string, never>()
const noPatterns: Patterns<never> = { names: noNames, stars: [] }

export const matchName = <Outcome>({ names }: Patterns<Outcome>, text: string): Outcome | undefined =>
  names.get(text)?.outcome

export const matchStar = <Outcome>({ stars }: Patterns<Outcome>, text: string): Outcome | undefined =>
  firstStar(stars, text)?.outcome

/** The outcome of the first name or pattern in the list that matches. */
export function matchFirst<Outcome>({ names, stars }: Patterns<Outcome>, text: string): Outcome | undefined {
  const name = names.get(text)
  const star = firstStar(stars, text)
  if (name === undefined || star === undefined) return (name ?? star)?.outcome
  return name.index < star.index ? name.outcome : star.outcome
}

function firstStar<Outcome>(stars: readonly Star<Outcome>[], text: string): Star<Outcome> | undefined {
  for (const star of stars) if (star.matches(text)) return star
  return undefined
}

export const createPatternCompiler = (): CompilePattern => memoize(compilePattern)
