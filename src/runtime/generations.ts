import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../core/clock.ts'

interface Slot<G> {
  readonly generation: G
  running: number
  /** Whether the generation has been replaced and its grace period is over. */
  old: boolean
  /** Runs during the grace period. */
  grace?: Disposable
}

interface GenerationsOptions<G> {
  /** Called once for each generation, after it has been removed from `alive`. */
  dispose(generation: G): Promise<void>
  readonly clock: Clock
}

/** How long a replaced generation stays open for calls that have looked up an entry in it but have not started yet. */
const replacedGraceMs = 1_000

/**
 * The generations in use. A call finishes in the generation in which it started. A replaced generation is disposed of
 * when its last call has finished, and then nothing refers to it.
 */
export class Generations<G> implements AsyncDisposable {
  /** The generation in which new calls run, after the first `replace`. A plain field, because each call reads it often. */
  current!: G
  readonly #options: GenerationsOptions<G>
  readonly #ending = new Set<Promise<void>>()
  #slots: readonly Slot<G>[] = []

  constructor(options: GenerationsOptions<G>) {
    this.#options = options
  }

  /** Generations that have not been disposed of yet, the current one first. */
  get alive(): readonly G[] {
    return this.#slots.map(({ generation }) => generation)
  }

  /** Runs work in the current generation, which is not disposed of until the work has finished. */
  run<Out, In = undefined>(work: (generation: G, input: In) => Promise<Out>, input?: In): Promise<Out> {
    const slot = this.#slots[0] as Slot<G>
    slot.running++
    const finished = () => {
      slot.running--
      if (slot.old) this.#endUnused(slot)
    }
    const result = work(slot.generation, input as In)
    result.then(finished, finished)
    return result
  }

  replace(next: G): void {
    const [before] = this.#slots
    this.current = next
    this.#slots = [{ generation: next, running: 0, old: false }, ...this.#slots]
    if (before === undefined) return
    before.grace = this.#options.clock.after(replacedGraceMs, () => {
      before.old = true
      this.#endUnused(before)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const slot of this.#slots) {
      slot.grace?.[Symbol.dispose]()
      this.#end(slot)
    }
    await Promise.all(this.#ending)
  }

  #endUnused(slot: Slot<G>): void {
    if (slot.running === 0 && this.#slots.includes(slot)) this.#end(slot)
  }

  #end(slot: Slot<G>): void {
    this.#slots = this.#slots.filter((other) => other !== slot)
    const done = this.#options.dispose(slot.generation).finally(() => this.#ending.delete(done))
    this.#ending.add(done)
  }
}

interface SharedPart {
  readonly key: unknown
  readonly value: AsyncDisposable
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
