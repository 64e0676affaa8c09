import type { Call, Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { endWith } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { callAgain, durationText } from '../lib/duration.ts'
import { step } from './observe.ts'

/** The limits are read on each call, so that a reload applies at once. */
export interface BulkheadOptions {
  /** The limit for one server; undefined for sources in this process. */
  serverLimit(server: string): number | undefined
  agentLimit(agent: string): number | undefined
  total(): number
  queue(): number
  /** Maximum waiting time. If half the call's timeout is shorter, that applies instead. */
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

/** Default for `maxWaitMs`. After this time, an error with a Retry-After serves the caller better than more waiting. */
const usualWaitMs = 5_000

/**
 * Limits the calls in flight per server, per agent and in total (B7), so that one busy server or agent leaves room for
 * others. A call without a slot waits. Calls that carry other calls need no slot: they would take the slots that their
 * inner calls need.
 */
export function bulkhead(options: BulkheadOptions): Bulkhead {
  const { clock } = options
  // Unlimited until the first call, which sets the configured limit.
  const whole = createSlots(Number.POSITIVE_INFINITY)
  const servers = new Map<string, Slots>()
  const agents = new Map<string, Slots>()
  const room = createWaitingRoom(options)

  const take = ({ server, agent }: Needs): boolean => {
    if (!hasSlot(whole) || !hasSlot(server) || !hasSlot(agent)) return false
    takeSlot(whole)
    takeSlot(server)
    takeSlot(agent)
    return true
  }

  return {
    async interceptor(call, next) {
      const { entry, caller } = call
      if (entry.traits.carries) return next(call)
      const server = slotsOf(servers, entry.server, options.serverLimit(entry.server))
      const agent = slotsOf(agents, caller.agent, options.agentLimit(caller.agent))
      whole.limit = options.total()
      const needs = { whole, server, agent }
      // Every queued call lacks a slot, so a call that finds all its slots free does not jump the queue.
      if (!take(needs)) await step(call.trail, 'queue', room.wait(call, needs, maxWaitOf(call, options)))
      const start = clock.monotonic()
      try {
        // The call may have been cancelled at the moment it got its slot.
        call.signal.throwIfAborted()
        // A handler that ignores the signal must not keep its slot after the call has ended.
        return await endWith(call.signal, next(call))
      } finally {
        const heldMs = Math.max(clock.monotonic() - start, 0)
        releaseSlot(whole, heldMs)
        releaseSlot(server, heldMs)
        releaseSlot(agent, heldMs)
        if (room.size > 0) room.serve(take)
      }
    },
    stats: () => ({ ...loadOf(whole), limit: options.total(), servers: loads(servers), agents: loads(agents) }),
    limitsChanged() {
      whole.limit = options.total()
      applyLimits(servers, options.serverLimit)
      applyLimits(agents, options.agentLimit)
      room.serve(take)
    },
  }
}

function slotsOf(all: Map<string, Slots>, name: string, limit: number | undefined): Slots | undefined {
  if (limit === undefined) return undefined
  let slots = all.get(name)
  if (!slots) {
    slots = createSlots(limit)
    all.set(name, slots)
  }
  slots.limit = limit
  return slots
}

function applyLimits(all: Map<string, Slots>, limitOf: (name: string) => number | undefined): void {
  for (const [name, slots] of all) {
    // Waiting calls still refer to this object, so lift its limit before dropping it from the map.
    slots.limit = limitOf(name) ?? Number.POSITIVE_INFINITY
    if (slots.limit === Number.POSITIVE_INFINITY) all.delete(name)
  }
}

const maxWaitOf = ({ timeoutMs, entry }: Call, { maxWaitMs = usualWaitMs }: BulkheadOptions): MaxWait => {
  const halfMs = (timeoutMs ?? entry.traits.timeoutMs) / 2
  return halfMs < maxWaitMs ? { ms: halfMs, from: "half the call's timeout" } : { ms: maxWaitMs, from: 'a fixed limit' }
}

const loadOf = ({ inFlight, waiting, limit }: Slots): BulkheadLoad => ({ inFlight, queued: waiting, limit })

const loads = (all: ReadonlyMap<string, Slots>): Record<string, BulkheadLoad> =>
  Object.fromEntries([...all].map(([name, slots]) => [name, loadOf(slots)]))

interface QueuedCall {
  readonly call: Call
  readonly needs: Needs
  goOn(): void
  refuse(error: Error): void
}

/** How long a call may wait. `from` is the setting or rule that set this limit, for the error message. */
interface MaxWait {
  readonly ms: number
  readonly from: string
}

/** The waiting calls, in one queue per agent and server. Queues are served round robin, as slots become free. */
function createWaitingRoom(options: Pick<BulkheadOptions, 'queue' | 'clock'>) {
  const queues = new Map<string, Set<QueuedCall>>()

  const count = ({ whole, server, agent }: Needs, by: 1 | -1) => {
    room.size += by
    whole.waiting += by
    if (server) server.waiting += by
    if (agent) agent.waiting += by
  }

  /** Evicts the newest call in the longest queue in favour of a shorter one, so that no agent can take all the room. */
  const makeRoom = (key: string): boolean => {
    let longest = new Set<QueuedCall>()
    for (const queue of queues.values()) if (queue.size > longest.size) longest = queue
    const last = [...longest].at(-1)
    if (!last || longest.size <= (queues.get(key)?.size ?? 0) + 1) return false
    last.refuse(overloaded(last.call, last.needs, 'its place in the queue was given to another agent'))
    return true
  }

  const room = {
    size: 0,
    /** Resolves once the call has its slots; rejects if the call waits too long or is aborted. */
    async wait(call: Call, needs: Needs, { ms, from }: MaxWait): Promise<void> {
      const { signal } = call
      signal.throwIfAborted()
      // Neither name contains a space, so keys are unique.
      const key = `${call.caller.agent} ${call.entry.server}`
      if (room.size >= options.queue() && !makeRoom(key)) throw overloaded(call, needs, 'the queue is full')
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const queue = queues.get(key) ?? new Set()
      const waiter: QueuedCall = { call, needs, goOn: () => end(resolve), refuse: (error) => end(() => reject(error)) }
      const gone = () => waiter.refuse(signal.reason)
      const tooLong = () =>
        waiter.refuse(overloaded(call, needs, `no slot became free within ${durationText(ms)} (${from})`))
      const timer = options.clock.after(ms, tooLong)
      signal.addEventListener('abort', gone, { once: true })
      queues.set(key, queue)
      queue.add(waiter)
      count(needs, 1)
      return promise

      function end(settle: () => void): void {
        timer[Symbol.dispose]()
        signal.removeEventListener('abort', gone)
        queue.delete(waiter)
        if (queue.size === 0) queues.delete(key)
        count(needs, -1)
        settle()
      }
    },
    /** Offers a turn to the first call in each queue; a queue whose first call cannot proceed keeps its position. */
    serve(goesOn: (needs: Needs) => boolean): void {
      for (const [key, queue] of queues) {
        const [first] = queue
        if (!first || !hasSlot(first.needs.whole)) return
        if (!goesOn(first.needs)) continue
        first.goOn()
        // Move the queue to the end of the map, where this loop visits it again.
        if (queues.delete(key)) queues.set(key, queue)
      }
    },
  }
  return room
}

interface Needs {
  readonly whole: Slots
  readonly server: Slots | undefined
  readonly agent: Slots | undefined
}

/** Bounds for Retry-After. Estimates above the maximum would only be guesses. */
const soonestMs = 100
const latestMs = 60_000

/** The error for a call without a free slot (B7): says what is full and when to retry. */
function overloaded({ entry, caller }: Call, { whole, server, agent }: Needs, why: string): ToolwayError {
  const full: (readonly [string, Slots])[] = []
  if (server && !hasSlot(server)) full.push([`The server ${entry.server}`, server])
  if (agent && !hasSlot(agent)) full.push([`The agent ${caller.agent}`, agent])
  if (full.length === 0 || !hasSlot(whole)) full.push(['Toolway', whole])
  const [who, { limit }] = full[0] as (typeof full)[number]
  const backlog = Math.max(...full.map(([, slots]) => backlogMs(slots)))
  const retryAfterMs = Math.ceil(Math.min(Math.max(backlog, soonestMs), latestMs))
  const busy = `${who} has reached its limit of ${limit === 1 ? 'one call' : `${limit} calls`} in flight`
  const sentence = `${busy}, and ${why}. Nothing was sent: ${callAgain(retryAfterMs)}.`
  return new ToolwayError('OVERLOADED', sentence, { server: entry.server, retryAfterMs })
}

interface Slots {
  limit: number
  inFlight: number
  waiting: number
  /** Moving average of how long slots were held; undefined before the first release. */
  meanMs: number | undefined
}

const createSlots = (limit: number): Slots => ({ limit, inFlight: 0, waiting: 0, meanMs: undefined })

const hasSlot = (slots: Slots | undefined): boolean => slots === undefined || slots.inFlight < slots.limit

function takeSlot(slots: Slots | undefined): void {
  if (slots) slots.inFlight++
}

function releaseSlot(slots: Slots | undefined, heldMs: number): void {
  if (!slots) return
  slots.inFlight--
  // Exponential moving average, so that estimates follow recent calls.
  slots.meanMs = slots.meanMs === undefined ? heldMs : slots.meanMs * 0.8 + heldMs * 0.2
}

/** Assumed call duration before the first call has ended. */
const unknownMs = 1_000

const backlogMs = ({ limit, waiting, meanMs = unknownMs }: Slots): number => (meanMs * (waiting + 1)) / limit
