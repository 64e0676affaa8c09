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

/** All of it is asked anew for each call, so that a configuration that is loaded anew counts at once. */
export interface BulkheadOptions {
  /** Calls in flight at a server; undefined for what runs in this process. */
  serverLimit(server: string): number | undefined
  agentLimit(agent: string): number | undefined
  /** Calls in flight in all. */
  total(): number
  /** Calls that may wait for a place. */
  queue(): number
  /** How long one may wait; never longer than half the time that the call has. */
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
  /** The limits are others now: who may go on does, and what is no longer limited is forgotten. */
  limitsChanged(): void
}

/** As long as it is better to wait than to hear that one should come back. */
const usualWaitMs = 5_000

/**
 * Keeps places for each server, each agent and the whole (B7), so that what fills one leaves room for the others. A
 * call without a place waits its turn. One that only carries others needs none: it would keep them from having it.
 */
export function bulkhead(options: BulkheadOptions): Bulkhead {
  const { clock } = options
  // Its limit is asked for with the first call, like all the others.
  const whole = createPlaces(Number.POSITIVE_INFINITY)
  const servers = new Map<string, Places>()
  const agents = new Map<string, Places>()
  const room = createWaitingRoom(options)

  /** Takes a place of each, or none of any. */
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
      // Whoever waits does so because a place is missing: one for whom none is missing overtakes nobody.
      if (!take(needs)) await step(call.trail, 'queue', room.wait(call, needs, maxWaitOf(call, options)))
      const start = clock.monotonic()
      try {
        // It may have been called off just when it got its place.
        call.signal.throwIfAborted()
        // What runs may not listen, and must not keep its place when the call is over.
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
    // Whoever still waits for something without a limit need not.
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
