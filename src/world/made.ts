import { isDeepStrictEqual } from 'node:util'

/** Something that a part of the configuration makes, and that goes on in the next world while that part stays the same. */
export interface Made<T> {
  readonly value: T
  /** The part that made it. */
  readonly from: unknown
}

/** What the world before has made of the same, or something new. */
export const takeOver = <T>(before: Made<T> | undefined, from: unknown, make: () => T): Made<T> =>
  before && isDeepStrictEqual(before.from, from) ? before : { value: make(), from }
