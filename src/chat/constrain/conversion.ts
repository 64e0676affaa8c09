import { createHash } from 'node:crypto'

/** A schema asks for something that a grammar, or a strict schema, cannot say. */
export class CannotExpress extends Error {
  override readonly name = 'CannotExpress'
  /** Where in the schema, as a JSON Pointer. */
  readonly at: string
  readonly keyword: string

  constructor(at: string, keyword: string, why: string) {
    super(`${at === '' ? 'The schema' : at} cannot be expressed: ${keyword} ${why}.`)
    this.at = at
    this.keyword = keyword
  }
}

/** Whether it was the schema that failed: one that nests, or whose members chain, beyond what the stack holds, as well. */
export const isInexpressible = (error: unknown): boolean =>
  error instanceof CannotExpress || error instanceof RangeError

/** One step further into a schema. */
export const step = (at: string, ...names: readonly (string | number)[]): string =>
  [at, ...names.map((name) => String(name).replaceAll('~', '~0').replaceAll('/', '~1'))].join('/')

/** How much work a schema may still make. Schemas come from strangers, and whoever converts one holds up everybody. */
export interface WorkBudget {
  /** Throws `CannotExpress` where nothing is left. */
  spend(steps: number, at?: string): void
}

/** Some tenths of a second. */
const maxSteps = 2_000_000

/** What one part of a schema costs, whatever it holds. */
export const stepsPerSchema = 100

export function createBudget(steps = maxSteps): WorkBudget {
  let left = steps
  return {
    spend(steps, at = '') {
      left -= steps
      if (left < 0) throw new CannotExpress(at, 'the schema', 'is too large')
    },
  }
}

/** Enough for the schemas of a busy gateway. */
const defaultMost = 512

/**
 * Makes something of each schema once, failures included, and keeps the latest. Schemas are told apart by their
 * content as it is written: the order of members counts, because models write them in that order.
 */
export function memoizeByContent<Given extends object | boolean, Made>(
  make: (given: Given) => Made,
  most = defaultMost,
): (given: Given) => Made {
  const kept = new Map<string, { readonly made: Made } | { readonly failure: unknown }>()
  const keys = new WeakMap<object, string>()
  return (given) => {
    const key = keyOf(given, keys)
    let outcome = kept.get(key)
    if (outcome) kept.delete(key)
    else outcome = attempt(make, given)
    kept.set(key, outcome)
    if (kept.size > most) kept.delete(kept.keys().next().value as string)
    if ('failure' in outcome) throw outcome.failure
    return outcome.made
  }
}

function keyOf(given: object | boolean, keys: WeakMap<object, string>): string {
  const known = typeof given === 'object' ? keys.get(given) : undefined
  const key = known ?? contentHash(given)
  if (typeof given === 'object') keys.set(given, key)
  return key
}

/** A short name for a content. */
export const contentHash = (content: unknown): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('base64url').slice(0, 32)

function attempt<Given, Made>(make: (given: Given) => Made, given: Given) {
  try {
    return { made: make(given) }
  } catch (failure) {
    return { failure }
  }
}
