import { createHash } from 'node:crypto'

/** The schema cannot be expressed as a grammar or a strict schema. */
export class CannotExpress extends Error {
  override readonly name = 'CannotExpress'
  /** JSON Pointer to the place in the schema. */
  readonly at: string
  readonly keyword: string

  constructor(at: string, keyword: string, why: string) {
    super(`${at === '' ? 'The schema' : at} cannot be expressed: ${keyword} ${why}.`)
    this.at = at
    this.keyword = keyword
  }
}

/** Whether the schema caused the error. A RangeError is a stack overflow from deep nesting. */
export const isInexpressible = (error: unknown): boolean =>
  error instanceof CannotExpress || error instanceof RangeError

/** Appends to a JSON Pointer. */
export const step = (at: string, ...names: readonly (string | number)[]): string =>
  [at, ...names.map((name) => String(name).replaceAll('~', '~0').replaceAll('/', '~1'))].join('/')

/** Limits the work of one conversion. Schemas are untrusted, and conversion blocks the event loop. */
export interface WorkBudget {
  /** Throws `CannotExpress` when the budget is used up. */
  spend(steps: number, at?: string): void
}

/** A few tenths of a second. */
const maxSteps = 2_000_000

/** The base cost of one subschema. */
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

/** Enough for a busy gateway. */
const defaultMost = 512

/**
 * Caches results and failures, least recently used first out. The key is the JSON text: member order matters, because
 * models write members in schema order.
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

/** A short hash of the content. */
export const contentHash = (content: unknown): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('base64url').slice(0, 32)

function attempt<Given, Made>(make: (given: Given) => Made, given: Given) {
  try {
    return { made: make(given) }
  } catch (failure) {
    return { failure }
  }
}
