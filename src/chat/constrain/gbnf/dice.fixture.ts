import fc from 'fast-check'

/** Numbers from 0 to 1 that look like chance and follow from a seed. */
export function diceOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

export const dice: fc.Arbitrary<() => number> = fc.integer().map(diceOf)
