import type { Clock } from '../core/clock.ts'
import { type Deadline, deadline, endWith } from '../core/deadline.ts'
import type { Budget } from '../core/limits/budget.ts'
import { type Limits, runRefused, type SandboxChild } from './runtime.ts'

/** How many programs want a child, and the most that wanted one at once in this period and in the previous one. */
export class ChildDemand {
  wanted = 0
  #peak = 0
  #peakBefore = 0

  /** Counts a program that wants a child, now or after others have run. Dispose of it when it has one. */
  expect(): Disposable {
    this.wanted++
    this.#peak = Math.max(this.#peak, this.wanted)
    const over = new DisposableStack()
    over.defer(() => void this.wanted--)
    return over
  }

  get recent(): number {
    return Math.max(this.#peak, this.#peakBefore)
  }

  endPeriod(): void {
    this.#peakBefore = this.#peak
    this.#peak = this.wanted
  }
}

interface WarmChildrenOptions {
  start(): SandboxChild
  readonly demand: ChildDemand
  /** How many children all engines may keep ready. */
  readonly budget: Budget
  /** How many children are started at once in advance. */
  readonly startsAtOnce: number
  readonly limits: Pick<Limits, 'startMs' | 'idleMs' | 'demandMs'>
  readonly clock: Clock
}

/** Free memory that children in advance must leave. */
const reservedBytes = 512 * 1024 * 1024

/** Children that are ready in advance: as many as programs recently wanted at once. Each child is used once. */
export class WarmChildren {
  readonly #options: WarmChildrenOptions
  readonly #spares: SandboxChild[] = []
  #period: Disposable | undefined
  #idle: Disposable | undefined
  #starting = 0
  #over = false

  constructor(options: WarmChildrenOptions) {
    this.#options = options
  }

  /** A ready child. Rejects if none can be started or the signal aborts. */
  async take(signal: AbortSignal): Promise<SandboxChild> {
    const { start, limits, clock } = this.#options
    this.#idle?.[Symbol.dispose]()
    const [spare] = this.#spares
    if (spare) this.#remove(spare)
    const child = spare ?? start()
    using limit = startDeadline(clock, limits.startMs, signal)
    try {
      await endWith(limit.signal, child.ready)
    } catch (error) {
      void child.kill()
      throw error
    }
    // Start children later, so that the caller does not have to wait while a process starts.
    setImmediate(() => this.#refill())
    this.#idle?.[Symbol.dispose]()
    if (!this.#over) this.#idle = clock.after(limits.idleMs, () => void this.#trim(0))
    this.#period ??= this.#over ? undefined : clock.after(limits.demandMs, this.#endPeriod)
    return child
  }

  /** While programs wait, only children for them are started: others would slow those down. */
  #refill(): void {
    const { demand, startsAtOnce } = this.#options
    const target = demand.wanted > 0 ? demand.wanted : this.#target
    while (!this.#over && this.#spares.length < target && this.#starting < startsAtOnce) if (!this.#add()) return
  }

  get #target(): number {
    return Math.max(1, this.#options.demand.recent)
  }

  #add(): boolean {
    const { budget, start } = this.#options
    // One for each engine, whatever the others have.
    const hasRoom = budget.used < budget.limit && process.availableMemory() >= reservedBytes
    if (this.#spares.length > 0 && !hasRoom) return false
    budget.add(undefined, 1)
    const child = start()
    this.#spares.push(child)
    this.#starting++
    const started = () => {
      this.#starting--
      this.#refill()
    }
    child.ready.then(started, () => this.#starting--)
    void child.ended.then(() => this.#remove(child))
    return true
  }

  #remove(child: SandboxChild): boolean {
    const at = this.#spares.indexOf(child)
    if (at < 0) return false
    this.#spares.splice(at, 1)
    this.#options.budget.give(undefined)
    return true
  }

  readonly #endPeriod = (): void => {
    const { demand, clock, limits } = this.#options
    demand.endPeriod()
    void this.#trim(this.#target)
    this.#period = demand.recent > 0 ? clock.after(limits.demandMs, this.#endPeriod) : undefined
  }

  async #trim(count: number): Promise<void> {
    const surplus = this.#spares.slice(count)
    await Promise.all(surplus.map((child) => this.#remove(child) && child.kill()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true
    this.#idle?.[Symbol.dispose]()
    this.#period?.[Symbol.dispose]()
    await this.#trim(0)
  }
}

export const startDeadline = (clock: Clock, ms: number, parent?: AbortSignal): Deadline =>
  deadline(clock, ms, () => runRefused(`it did not start within ${ms / 1000} s (a fixed limit)`), parent)
