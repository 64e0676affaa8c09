import { isDeepStrictEqual } from 'node:util'

interface SharedPart {
  /** What the part was built from. */
  readonly key: unknown
  readonly value: AsyncDisposable
  /** How many generations use the part. */
  users: number
}

/**
 * The parts of one generation that others may share, by name. A part is reused as long as what it was built from stays
 * equal, and closed with the last generation that uses it.
 */
export class SharedParts implements AsyncDisposable {
  readonly #parts = new Map<string, SharedPart>()

  /** The part of this name that `before` has if it was built from an equal key; otherwise a new one. */
  share<T extends AsyncDisposable>(before: SharedParts | undefined, name: string, key: unknown, create: () => T): T {
    return this.reuse<T>(before, name, key) ?? this.add(name, key, create())
  }

  /** Adds the part of this name that `before` has, unless it was built from another key. */
  reuse<T extends AsyncDisposable>(before: SharedParts | undefined, name: string, key: unknown): T | undefined {
    const part = before === undefined ? undefined : before.#parts.get(name)
    if (!part || !isDeepStrictEqual(part.key, key)) return undefined
    part.users++
    this.#parts.set(name, part)
    return part.value as T
  }

  /** Adds a part that was built for this generation. */
  add<T extends AsyncDisposable>(name: string, key: unknown, value: T): T {
    this.#parts.set(name, { key, value, users: 1 })
    return value
  }

  /** Closes the parts that no other generation uses, all at once: each may wait for a process that is slow to exit. */
  async [Symbol.asyncDispose](): Promise<void> {
    const parts = [...this.#parts.values()]
    this.#parts.clear()
    const unused = parts.filter((part) => --part.users === 0)
    const results = await Promise.allSettled(unused.map(async ({ value }) => value[Symbol.asyncDispose]()))
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    if (failures.length > 0) throw new AggregateError(failures)
  }
}
