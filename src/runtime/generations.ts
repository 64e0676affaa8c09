import type { Clock } from '../core/clock.ts'

interface Slot<G> {
  readonly generation: G
  running: number
  /** Whether the generation has been replaced and its grace period is over. */
  old: boolean
}

interface GenerationsOptions<G> {
  readonly first: G
  /** Called once for each generation, after it has been removed from `alive`. */
  dispose(generation: G): Promise<void>
  readonly clock: Clock
}

/** How long a replaced generation stays open for calls that have looked up an entry in it but have not started yet. */
const graceMs = 1_000

/**
 * The generations in use. A call finishes in the generation in which it started. A replaced generation is disposed of
 * when its last call has finished, and then nothing refers to it.
 */
export class Generations<G> implements AsyncDisposable {
  readonly #dispose: (generation: G) => Promise<void>
  readonly #clock: Clock
  readonly #ending = new Set<Promise<void>>()
  readonly #timers = new Set<Disposable>()
  #current: Slot<G>
  #slots: readonly Slot<G>[]

  constructor({ first, dispose, clock }: GenerationsOptions<G>) {
    this.#dispose = dispose
    this.#clock = clock
    this.#current = { generation: first, running: 0, old: false }
    this.#slots = [this.#current]
  }

  /** The generation in which new calls run. */
  get current(): G {
    return this.#current.generation
  }

  /** Generations that have not been disposed of yet, the current one first. */
  get alive(): readonly G[] {
    return this.#slots.map(({ generation }) => generation)
  }

  /** Runs work in the current generation, which is not disposed of until the work has finished. */
  run<T>(work: (generation: G) => Promise<T>): Promise<T> {
    const slot = this.#current
    slot.running++
    const finished = () => this.#finished(slot)
    const result = work(slot.generation)
    result.then(finished, finished)
    return result
  }

  replace(next: G): void {
    const before = this.#current
    this.#current = { generation: next, running: 0, old: false }
    this.#slots = [this.#current, ...this.#slots]
    const timer = this.#clock.after(graceMs, () => {
      this.#timers.delete(timer)
      before.old = true
      if (before.running === 0) this.#end(before)
    })
    this.#timers.add(timer)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) timer[Symbol.dispose]()
    for (const slot of this.#slots) this.#end(slot)
    await Promise.all(this.#ending)
  }

  #finished(slot: Slot<G>): void {
    slot.running--
    if (slot.old && slot.running === 0 && this.#slots.includes(slot)) this.#end(slot)
  }

  #end(slot: Slot<G>): void {
    this.#slots = this.#slots.filter((other) => other !== slot)
    const done = this.#dispose(slot.generation).finally(() => this.#ending.delete(done))
    this.#ending.add(done)
  }
}
