import type { Call, Interceptor } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { endWith } from '../../core/deadline.ts'
import { step } from '../observe.ts'
import {
  createPlaces,
  createWaitingRoom,
  giveBack,
  hasPlace,
  type MaxWait,
  type Needs,
  type Places,
  takePlace,
} from './waiting-room.ts'

/** The limits are read on each call, so that a reload applies at once. */
export interface BulkheadOptions {
  /** Undefined for sources in this process. */
  serverLimit(server: string): number | undefined
  agentLimit(agent: string): number | undefined
  total(): number
  queue(): number
  /** Upper bound for waiting; half the call's timeout if that is shorter. */
  readonly maxWaitMs?: number
  readonly clock: Clock
}

export interface BulkheadLoad {
  readonly inFlight: number
  readonly queued: number
  readonly limit: number
}

export interface BulkheadStats extends BulkheadLoad {
  readonly servers: Readonly<Record<string, BulkheadLoad>>
  readonly agents: Readonly<Record<string, BulkheadLoad>>
}

export interface Bulkhead {
  readonly interceptor: Interceptor
  stats(): BulkheadStats
  /** Applies changed limits: admits waiting calls and drops counters that no longer have a limit. */
  limitsChanged(): void
}

/** Beyond this, a caller is better off with an error and a Retry-After. */
const usualWaitMs = 5_000

/**
 * Limits the calls in flight per server, per agent and in all (B7), so that one busy server or agent leaves room for
 * others. A call without a slot waits. Calls that carry other calls need none: they would take the slots of their inner
 * calls.
 */
export function bulkhead(options: BulkheadOptions): Bulkhead {
  const { clock } = options
  // The limit is read with the first call.
  const whole = createPlaces(Number.POSITIVE_INFINITY)
  const servers = new Map<string, Places>()
  const agents = new Map<string, Places>()
  const room = createWaitingRoom(options)

  const take = ({ server, agent }: Needs): boolean => {
    if (!hasPlace(whole) || !hasPlace(server) || !hasPlace(agent)) return false
    takePlace(whole)
    takePlace(server)
    takePlace(agent)
    return true
  }

  return {
    async interceptor(call, next) {
      const { entry, caller } = call
      if (entry.traits.carries) return next(call)
      const server = placesOf(servers, entry.server, options.serverLimit(entry.server))
      const agent = placesOf(agents, caller.agent, options.agentLimit(caller.agent))
      whole.limit = options.total()
      const needs = { whole, server, agent }
      // Queued calls wait for a slot that is taken, so a call that finds all its slots free overtakes nobody.
      if (!take(needs)) await step(call.trail, 'queue', room.wait(call, needs, maxWaitOf(call, options)))
      const start = clock.monotonic()
      try {
        // The call may have been cancelled just as it got its slot.
        call.signal.throwIfAborted()
        // A handler that ignores the signal must not keep its slot after the call ended.
        return await endWith(call.signal, next(call))
      } finally {
        const heldMs = Math.max(clock.monotonic() - start, 0)
        giveBack(whole, heldMs)
        giveBack(server, heldMs)
        giveBack(agent, heldMs)
        if (room.size > 0) room.serve(take)
      }
    },
    stats: () => ({ ...loadOf(whole), limit: options.total(), servers: loads(servers), agents: loads(agents) }),
    limitsChanged() {
      whole.limit = options.total()
      limitAnew(servers, options.serverLimit)
      limitAnew(agents, options.agentLimit)
      room.serve(take)
    },
  }
}

function placesOf(all: Map<string, Places>, name: string, limit: number | undefined): Places | undefined {
  if (limit === undefined) return undefined
  const known = all.get(name)
  if (known) {
    known.limit = limit
    return known
  }
  const places = createPlaces(limit)
  all.set(name, places)
  return places
}

function limitAnew(all: Map<string, Places>, limitOf: (name: string) => number | undefined): void {
  for (const [name, places] of all) {
    // Waiting calls still hold this object: lift its limit before it is dropped.
    places.limit = limitOf(name) ?? Number.POSITIVE_INFINITY
    if (places.limit === Number.POSITIVE_INFINITY) all.delete(name)
  }
}

const maxWaitOf = ({ timeoutMs, entry }: Call, { maxWaitMs = usualWaitMs }: BulkheadOptions): MaxWait => {
  const halfMs = (timeoutMs ?? entry.traits.timeoutMs) / 2
  return halfMs < maxWaitMs ? { ms: halfMs, from: "half the call's timeout" } : { ms: maxWaitMs, from: 'a fixed limit' }
}

const loadOf = ({ inFlight, waiting, limit }: Places): BulkheadLoad => ({ inFlight, queued: waiting, limit })

const loads = (all: ReadonlyMap<string, Places>): Record<string, BulkheadLoad> =>
  Object.fromEntries([...all].map(([name, places]) => [name, loadOf(places)]))
