import { randomUUID } from 'node:crypto'
import type { Call, Handler, Interceptor } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import type { CacheStore, CacheUsage } from '../../core/stores.ts'
import type { FindMembers } from './hints.ts'
import { type CacheCounts, cacheLayer } from './layer.ts'
import type { CacheRules } from './rules.ts'

export interface CacheOptions {
  readonly store: CacheStore
  /** Finds the members of one JSON object, as slices. */
  readonly members: FindMembers
  readonly clock: Clock
}

/** The result cache (F13). It outlives configurations; each has a layer of its own. */
export interface Cache {
  /** Answers from what is kept, and lets calls for the same join one another. Nothing is kept without rules. */
  interceptor(rules: CacheRules | undefined): Interceptor
  stats(): CacheStats
  /** What a server has answered so far does not count any more. */
  invalidate(server: string): void
  /** Nothing that was answered so far counts any more. */
  clear(): void
  /** Something has changed that servers can ask callers for, such as their roots. */
  callersChanged(): void
}

export interface CacheStats extends CacheUsage, Readonly<CacheCounts> {}

export function cache({ store, members, clock }: CacheOptions): Cache {
  const counts: CacheCounts = { hits: 0, misses: 0, joined: 0 }
  // Another run of ours must not take what is kept for sessions of this one for its own.
  const run = randomUUID()
  let callers = run
  let changes = 0

  /** Whoever changes something and then looks must see it. */
  const thenForget = async (call: Call, next: Handler): Promise<Result> => {
    try {
      const result = await next(call)
      await store.drop(call.entry.server)
      return result
    } catch (thrown) {
      if (mayHaveRun(thrown)) await store.drop(call.entry.server)
      throw thrown
    }
  }

  return {
    interceptor(rules) {
      if (rules === undefined) return (call, next) => next(call)
      const kept = cacheLayer({ store, members, clock, counts, callers: () => callers })
      return (call, next) => {
        const plan = rules(call.entry)
        if (plan === undefined) return next(call)
        return plan === 'writes' ? thenForget(call, next) : kept(call, next, plan)
      }
    },
    stats: () => ({ ...counts, ...store.usage() }),
    invalidate: (server) => void store.drop(server),
    clear: () => void store.clear(),
    callersChanged() {
      callers = `${run}.${++changes}`
    },
  }
}

/** What a breaker or a bulkhead has held back has changed nothing. */
function mayHaveRun(thrown: unknown): boolean {
  if (!(thrown instanceof ToolwayError)) return true
  return thrown.details.unsent !== true && thrown.code !== 'CIRCUIT_OPEN' && thrown.code !== 'OVERLOADED'
}
