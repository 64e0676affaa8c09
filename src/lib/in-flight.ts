/**
 * A map for values that live as long as one call. V8 replaces the table of a `Map` now and then, and each old table
 * refers to the next one: as soon as one has reached the old generation, so do all later ones, with all the values that
 * they held, until the next full collection. Here the tables hold places, which forget their values.
 */
export class InFlight<Key, Value> {
  readonly #places = new Map<Key, { value: Value | undefined }>()

  get size(): number {
    return this.#places.size
  }

  has(key: Key): boolean {
    return this.#places.has(key)
  }

  get(key: Key): Value | undefined {
    return this.#places.get(key)?.value
  }

  set(key: Key, value: Value): void {
    this.#places.set(key, { value })
  }

  /** Removes a value and returns it. */
  take(key: Key): Value | undefined {
    const place = this.#places.get(key)
    if (place === undefined) return undefined
    this.#places.delete(key)
    const { value } = place
    place.value = undefined
    return value
  }

  clear(): void {
    this.#places.clear()
  }

  /** The values, in the order in which they were added. Any of them may be taken meanwhile. */
  *values(): Generator<Value, void> {
    for (const { value } of this.#places.values()) if (value !== undefined) yield value
  }
}
