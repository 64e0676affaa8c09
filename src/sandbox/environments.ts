import type { Clock } from '../core/clock.ts'
import { Budget } from '../core/limits/budget.ts'
import type { Budgets } from '../core/limits/budgets.ts'
import { setBounded } from '../lib/memoize.ts'
import type { Limits } from './limits.ts'
import type { SandboxChild } from './runtime.ts'

/** An environment's state between runs: a memory image or a frozen interpreter. */
export interface EnvironmentState {
  readonly memory?: Buffer
  readonly child?: SandboxChild
}

export interface Environments extends AsyncDisposable {
  take(key: string): EnvironmentState & { readonly reset?: string }
  /** Whether an interpreter is being kept for the next run. */
  hasChild(key: string): boolean
  /** Keeps the state. The owner's least recently used environments make room if it has more than its share. */
  keep(key: string, owner: string, remembered: EnvironmentState): void
  /** Drops the state; the next run reports the reason. */
  forget(key: string, why: string): void
}

interface Kept extends EnvironmentState {
  readonly owner: string
  readonly idle: Disposable
}

/** Maximum number of remembered reasons for dropped state. */
const maxReasons = 1000

export function createEnvironments(options: {
  readonly limits: Limits
  readonly budgets?: Pick<Budgets, 'register'> | undefined
  readonly clock: Clock
}): Environments {
  const { limits, budgets, clock } = options
  // The map is ordered by use: least recently used first.
  const kept = new Map<string, Kept>()
  const reasons = new Map<string, string>()
  const share = (name: string, what: string, limit: number) => {
    const budget = new Budget(name, { what, limit, perCaller: Math.max(1, limit - Math.ceil(limit / 4)) })
    budgets?.register(name, () => budget.use())
    return budget
  }
  /** What is kept: environments, and how many bytes of memory and interpreters they have. */
  const counts: readonly { readonly budget: Budget; of(state: EnvironmentState): number }[] = [
    { budget: share('code_environments', 'environments', limits.environments), of: () => 1 },
    {
      budget: share('code_environment_bytes', 'bytes of environments', limits.rememberedBytes),
      of: ({ memory }) => memory?.length ?? 0,
    },
    { budget: share('interpreters', 'interpreters', limits.interpreters), of: ({ child }) => (child ? 1 : 0) },
  ]

  const remove = (key: string): Kept | undefined => {
    const found = kept.get(key)
    if (!found) return undefined
    kept.delete(key)
    found.idle[Symbol.dispose]()
    for (const { budget, of } of counts) budget.give(found.owner, of(found))
    return found
  }

  const forget = (key: string, why: string) => {
    void remove(key)?.child?.kill()
    setBounded(reasons, key, why, maxReasons)
  }

  /** Evicts the least recently used environments: those of the owner, then those of all. */
  const makeRoom = (owner: string) => {
    for (const { budget, of } of counts) {
      for (const [key, state] of kept) {
        const isOver = budget.usedBy(owner) > budget.perCaller ? state.owner === owner : budget.used > budget.limit
        if (!isOver || of(state) === 0) continue
        budget.shed()
        forget(key, room)
      }
    }
  }

  return {
    take(key) {
      const reset = reasons.get(key)
      reasons.delete(key)
      const { memory, child } = remove(key) ?? {}
      return { memory, child, reset }
    },
    hasChild: (key) => kept.get(key)?.child !== undefined,
    keep(key, owner, remembered) {
      remove(key)
      const idle = clock.after(limits.idleMs, () =>
        forget(key, `The environment was idle for ${limits.idleMs / 60_000} min.`),
      )
      kept.set(key, { ...remembered, owner, idle })
      for (const { budget, of } of counts) budget.add(owner, of(remembered))
      makeRoom(owner)
      const { child } = remembered
      void child?.ended.then(() => {
        if (kept.get(key)?.child === child) forget(key, 'The interpreter exited between two runs.')
      })
    },
    forget,
    async [Symbol.asyncDispose]() {
      await Promise.all([...kept.keys()].map((key) => remove(key)?.child?.kill()))
    },
  }
}

const room = 'The environment was evicted to make room for other environments.'
