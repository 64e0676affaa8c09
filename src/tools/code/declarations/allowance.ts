/**
 * How much may still be written of one tool. Schemas come from servers, and references let a small one stand for an
 * endless one: all work is counted here, so it grows with what may be written and not with what could be.
 */
export interface Allowance {
  /** Nothing more should be begun. */
  readonly spent: boolean
  spend(count: number): void
  /** The keys of an object, which cost something to look at even where they are not written. */
  keys(object: object): readonly string[]
}

export function createAllowance(characters: number): Allowance {
  let left = characters
  return {
    get spent() {
      return left <= 0
    },
    spend(count) {
      left -= count
    },
    keys(object) {
      const keys = Object.keys(object)
      left -= Math.min(keys.length / 10, 500)
      return keys
    },
  }
}
