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
  readonly members: FindMembers
  readonly clock: Clock
}

/** The result cache (F13). It outlives configurations; each configuration has its own interceptor. */
export interface Cache {
  /** Without rules, nothing is cached. */
  interceptor(rules: CacheRules | undefined): Interceptor
  stats(): CacheStats
  invalidate(server: string): void
  clear(): void
  /** Must be called when data that servers can request from callers, such as their roots, has changed. */
  callersChanged(): void
}

export interface CacheStats extends CacheUsage, Readonly<CacheCounts> {}

export function cache({ store, members, clock }: CacheOptions): Cache {
  const counts: CacheCounts = { hits: 0, misses: 0, joined: 0 }
  // Part of every session's keys, so that they never match those from another process or an earlier run.
  const run = randomUUID()
  let callers = run
  let changes = 0

  /** Makes a call that writes, then drops the server's cached results: a caller must see its own changes. */
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

/** Whether a failed call may have changed something. Calls stopped by the breaker or the bulkhead cannot have. */
function mayHaveRun(thrown: unknown): boolean {
  if (!(thrown instanceof ToolwayError)) return true
  return thrown.details.unsent !== true && thrown.code !== 'CIRCUIT_OPEN' && thrown.code !== 'OVERLOADED'
}
