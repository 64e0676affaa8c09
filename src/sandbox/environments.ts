import type { Clock } from '../core/clock.ts'
import { Budget, type Budgets } from '../core/limits/budget.ts'
import { RecentlyUsed } from '../core/limits/recently-used.ts'
import { shareOfSlots } from '../core/limits/slots.ts'
import { setBounded } from '../lib/memoize.ts'
import type { Limits, SandboxChild } from './runtime.ts'

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
  readonly key: string
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
  const kept = new Map<string, Kept>()
  const reasons = new Map<string, string>()
  const share = (name: string, what: string, limit: number) => {
    const budget = new Budget(name, { what, limit, perCaller: shareOfSlots(limit) })
    budgets?.register(name, () => budget.use())
    return budget
  }
  const byUse = new RecentlyUsed<Kept>(
    [
      { budget: share('code_environments', 'environments', limits.environments), of: () => 1 },
      {
        budget: share('code_environment_bytes', 'bytes of environments', limits.rememberedBytes),
        of: ({ memory }) => memory?.length ?? 0,
      },
      { budget: share('interpreters', 'interpreters', limits.interpreters), of: ({ child }) => (child ? 1 : 0) },
    ],
    ({ key }) => forget(key, 'The environment was evicted to make room for other environments.'),
  )

  const remove = (key: string): Kept | undefined => {
    const found = kept.get(key)
    if (!found) return undefined
    kept.delete(key)
    found.idle[Symbol.dispose]()
    byUse.delete(found)
    return found
  }

  const forget = (key: string, why: string) => {
    void remove(key)?.child?.kill()
    setBounded(reasons, key, why, maxReasons)
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
      const state = { ...remembered, key, owner, idle }
      kept.set(key, state)
      byUse.add(state)
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
