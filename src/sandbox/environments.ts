import type { Clock } from '../core/clock.ts'
import type { Tier } from '../core/executor.ts'
import { Budget, type Budgets } from '../core/limits/budget.ts'
import { RecentlyUsed } from '../core/limits/recently-used.ts'
import { shareOfSlots } from '../core/limits/slots.ts'
import { setBounded } from '../lib/memoize.ts'
import type { Limits, SandboxChild } from './runtime.ts'

/**
 * An environment's state between runs: a memory image, a frozen interpreter, or both. With both, the next run continues
 * in the interpreter, and the image is used if the interpreter had to go.
 */
export interface EnvironmentState {
  readonly memory?: Buffer
  readonly child?: SandboxChild
  readonly tier?: Tier
}

interface KeptEnvironment extends EnvironmentState {
  readonly key: string
  readonly owner: string
  child?: SandboxChild | undefined
  readonly timers: readonly Disposable[]
}

/** Maximum number of remembered reasons for dropped state. */
const maxReasons = 1000

/** The environments whose state is kept. The owner's least recently used ones make room if it has more than its share. */
export class Environments {
  readonly #limits: Limits
  readonly #clock: Clock
  readonly #kept = new Map<string, KeptEnvironment>()
  readonly #reasons = new Map<string, string>()
  readonly #byUse: RecentlyUsed<KeptEnvironment>
  /** Those with an image and an interpreter. */
  readonly #warm: RecentlyUsed<KeptEnvironment>

  constructor(limits: Limits, budgets: Pick<Budgets, 'register'> | undefined, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
    const share = (name: string, what: string, limit: number) => {
      const budget = new Budget(name, { what, limit, perCaller: shareOfSlots(limit) })
      budgets?.register(name, () => budget.use())
      return budget
    }
    this.#byUse = new RecentlyUsed<KeptEnvironment>(
      [
        { budget: share('code_environments', 'environments', limits.environments), of: () => 1 },
        {
          budget: share('code_environment_bytes', 'bytes of environments', limits.rememberedBytes),
          of: ({ memory }) => memory?.length ?? 0,
        },
        { budget: share('interpreters', 'interpreters', limits.interpreters), of: ({ memory }) => (memory ? 0 : 1) },
      ],
      ({ key }) => this.forget(key, 'The environment was evicted to make room for other environments.'),
    )
    const engines = share('code_engines', 'engines', limits.engines)
    this.#warm = new RecentlyUsed<KeptEnvironment>([{ budget: engines, of: () => 1 }], (state) => this.#cool(state))
  }

  take(key: string): EnvironmentState & { readonly reset?: string } {
    const reset = this.#reasons.get(key)
    this.#reasons.delete(key)
    const { memory, child, tier } = this.#remove(key) ?? {}
    return { memory, child, tier, reset }
  }

  /** Whether an interpreter is being kept for the next run. */
  hasChild(key: string): boolean {
    return this.#kept.get(key)?.child !== undefined
  }

  keep(key: string, owner: string, remembered: EnvironmentState): void {
    this.#remove(key)
    const { idleMs, engineIdleMs } = this.#limits
    const { child, memory } = remembered
    const isWarm = child !== undefined && memory !== undefined
    const idle = this.#clock.after(idleMs, () =>
      this.forget(key, `The environment was idle for ${idleMs / 60_000} min.`),
    )
    const cooling = isWarm ? [this.#clock.after(engineIdleMs, () => this.#cool(state))] : []
    const state: KeptEnvironment = { ...remembered, key, owner, timers: [idle, ...cooling] }
    this.#kept.set(key, state)
    if (isWarm) this.#warm.add(state)
    this.#byUse.add(state)
    void child?.ended.then(() => {
      if (this.#kept.get(key)?.child !== child) return
      if (isWarm) this.#cool(state)
      else this.forget(key, 'The interpreter exited between two runs.')
    })
  }

  /** Drops the interpreter of an environment that has an image. */
  #cool(state: KeptEnvironment): void {
    this.#warm.delete(state)
    void state.child?.kill()
    state.child = undefined
  }

  /** Drops the state; the next run reports the reason. */
  forget(key: string, why: string): void {
    void this.#remove(key)?.child?.kill()
    setBounded(this.#reasons, key, why, maxReasons)
  }

  #remove(key: string): KeptEnvironment | undefined {
    const found = this.#kept.get(key)
    if (!found) return undefined
    this.#kept.delete(key)
    for (const timer of found.timers) timer[Symbol.dispose]()
    this.#byUse.delete(found)
    this.#warm.delete(found)
    return found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((key) => this.#remove(key)?.child?.kill()))
  }
}
