import type { Clock } from '../core/clock.ts'
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
  keep(key: string, remembered: EnvironmentState): void
  /** Drops the state; the next run reports the reason. */
  forget(key: string, why: string): void
}

interface Kept extends EnvironmentState {
  readonly idle: Disposable
}

/** Maximum number of remembered reasons for dropped state. */
const maxReasons = 1000

export function createEnvironments({ limits, clock }: { limits: Limits; clock: Clock }): Environments {
  // The map is ordered by use: least recently used first.
  const kept = new Map<string, Kept>()
  const reasons = new Map<string, string>()

  const remove = (key: string): Kept | undefined => {
    const found = kept.get(key)
    kept.delete(key)
    found?.idle[Symbol.dispose]()
    return found
  }

  const forget = (key: string, why: string) => {
    void remove(key)?.child?.kill()
    setBounded(reasons, key, why, maxReasons)
  }

  /** Evicts the least recently used environments. */
  const makeRoom = () => {
    const bytes = () => [...kept.values()].reduce((sum, { memory }) => sum + (memory?.length ?? 0), 0)
    while (kept.size > limits.environments || bytes() > limits.rememberedBytes)
      forget(kept.keys().next().value as string, room)
    const interpreters = [...kept].filter(([, { child }]) => child)
    for (const [key] of interpreters.slice(0, Math.max(0, interpreters.length - limits.interpreters))) forget(key, room)
  }

  return {
    take(key) {
      const reset = reasons.get(key)
      reasons.delete(key)
      const { memory, child } = remove(key) ?? {}
      return { memory, child, reset }
    },
    hasChild: (key) => kept.get(key)?.child !== undefined,
    keep(key, remembered) {
      remove(key)
      const idle = clock.after(limits.idleMs, () =>
        forget(key, `The environment was idle for ${limits.idleMs / 60_000} min.`),
      )
      kept.set(key, { ...remembered, idle })
      makeRoom()
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
