import { createHash } from 'node:crypto'

/** Enough for the schemas of a busy gateway. */
const defaultMost = 512

/**
 * Makes something of each schema once, failures included, and keeps the latest. Schemas are told apart by their
 * content as it is written: the order of members counts, because models write them in that order.
 */
export function keptByContent<Given extends object | boolean, Made>(
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
