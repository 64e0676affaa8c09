import type { Call, Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { endWith } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { callAgain, durationText } from '../lib/duration.ts'
import { step } from './observe.ts'

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

interface WaitingQueue {
  readonly key: string
  readonly waiters: Set<QueuedCall>
}

interface QueuedCall {
  readonly call: Call
  readonly needs: Needs
  goOn(): void
  refuse(error: Error): void
}

/** `from`: the setting or rule behind the limit, for the error message. */
interface MaxWait {
  readonly ms: number
  readonly from: string
}

interface WaitingRoom {
  readonly size: number
  /** Resolves with the slots taken; rejects if the call waits too long or is aborted. */
  wait(call: Call, needs: Needs, maxWait: MaxWait): Promise<void>
  /** Offers a turn to the first call of each queue; a queue whose call cannot proceed keeps its position. */
  serve(goesOn: (needs: Needs) => boolean): void
}

/** Round robin over agents and servers. A queue that cannot be served yet keeps its position. */
function createWaitingRoom(options: { queue(): number; readonly clock: Clock }): WaitingRoom {
  const lanes = new Map<string, WaitingQueue>()
  let size = 0

  const counted = ({ whole, server, agent }: Needs, by: 1 | -1) => {
    size += by
    for (const places of [whole, server, agent] as (Places | undefined)[]) if (places) places.waiting += by
  }

  const leave = (lane: WaitingQueue, waiter: QueuedCall) => {
    lane.waiters.delete(waiter)
    if (lane.waiters.size === 0) lanes.delete(lane.key)
    counted(waiter.needs, -1)
  }

  /** Evicts the newest call of the longest queue in favour of a shorter queue, so that no agent can fill the room. */
  const makeRoom = (forLane: string): boolean => {
    let longest: WaitingQueue | undefined
    for (const lane of lanes.values()) if (lane.waiters.size > (longest?.waiters.size ?? 0)) longest = lane
    const own = lanes.get(forLane)?.waiters.size ?? 0
    if (!longest || longest.waiters.size <= own + 1) return false
    let last: QueuedCall | undefined
    for (const waiter of longest.waiters) last = waiter
    last?.refuse(overloaded(last.call, last.needs, 'this call lost its place in the queue to another agent'))
    return true
  }

  return {
    get size() {
      return size
    },
    async wait(call, needs, { ms, from }) {
      const { signal } = call
      signal.throwIfAborted()
      // Neither name contains a space, so keys are unique.
      const key = `${call.caller.agent} ${call.entry.server}`
      if (size >= options.queue() && !makeRoom(key)) throw overloaded(call, needs, 'the queue is full')
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const lane = lanes.get(key) ?? { key, waiters: new Set() }
      const waiter: QueuedCall = { call, needs, goOn: () => end(resolve), refuse: (error) => end(() => reject(error)) }
      const gone = () => waiter.refuse(signal.reason)
      const tooLong = () =>
        waiter.refuse(overloaded(call, needs, `no slot became free within ${durationText(ms)} (${from})`))
      const timer = options.clock.after(ms, tooLong)
      signal.addEventListener('abort', gone, { once: true })
      lanes.set(key, lane)
      lane.waiters.add(waiter)
      counted(needs, 1)
      return promise

      function end(settle: () => void): void {
        timer[Symbol.dispose]()
        signal.removeEventListener('abort', gone)
        leave(lane, waiter)
        settle()
      }
    },
    serve(goesOn) {
      for (const lane of lanes.values()) {
        const [first] = lane.waiters
        if (!first || !hasPlace(first.needs.whole)) return
        if (!goesOn(first.needs)) continue
        first.goOn()
        // At the end of the map, this loop visits it again.
        if (lanes.delete(lane.key)) lanes.set(lane.key, lane)
      }
    },
  }
}

interface Needs {
  readonly whole: Places
  readonly server: Places | undefined
  readonly agent: Places | undefined
}

/** Bounds for Retry-After: never sooner, however short the calls are; beyond the upper bound it is only a guess. */
const soonestMs = 100
const latestMs = 60_000

/** The error for a call without a free slot (B7): names what is full and when to retry. */
function overloaded({ entry, caller }: Call, { whole, server, agent }: Needs, why: string): ToolwayError {
  const full: (readonly [string, Places])[] = []
  if (server && !hasPlace(server)) full.push([`The server ${entry.server}`, server])
  if (agent && !hasPlace(agent)) full.push([`The agent ${caller.agent}`, agent])
  if (full.length === 0 || !hasPlace(whole)) full.push(['Toolway', whole])
  const [who, { limit }] = full[0] as (typeof full)[number]
  const backlog = Math.max(...full.map(([, places]) => backlogMs(places)))
  const retryAfterMs = Math.ceil(Math.min(Math.max(backlog, soonestMs), latestMs))
  const busy = `${who} has reached its limit of ${limit === 1 ? 'one call' : `${limit} calls`} in flight`
  const sentence = `${busy}, and ${why}. Nothing was sent: ${callAgain(retryAfterMs)}.`
  return new ToolwayError('OVERLOADED', sentence, { server: entry.server, retryAfterMs })
}

interface Places {
  limit: number
  inFlight: number
  waiting: number
  /** Moving average of how long slots were held; undefined before the first release. */
  meanMs: number | undefined
}

const createPlaces = (limit: number): Places => ({ limit, inFlight: 0, waiting: 0, meanMs: undefined })

const hasPlace = (places: Places | undefined): boolean => places === undefined || places.inFlight < places.limit

function takePlace(places: Places | undefined): void {
  if (places) places.inFlight++
}

function giveBack(places: Places | undefined, heldMs: number): void {
  if (!places) return
  places.inFlight--
  // Exponential moving average, so that estimates follow recent calls.
  places.meanMs = places.meanMs === undefined ? heldMs : places.meanMs * 0.8 + heldMs * 0.2
}

/** Assumed call duration before the first call has ended. */
const unknownMs = 1_000

const backlogMs = ({ limit, waiting, meanMs = unknownMs }: Places): number => (meanMs * (waiting + 1)) / limit
