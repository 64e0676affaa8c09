import { type Call, hasShare, type Interceptor, ownerKey } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { endWith, pause } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import type { BudgetUse } from '../core/limits/budget.ts'
import { callAgain, durationText } from '../lib/duration.ts'
import { step } from './observe.ts'
import { timeOf } from './timeout.ts'

/** The limits are read on each call, so that a reload applies at once. */
export interface BulkheadOptions {
  /** The limit for one server; undefined for sources in this process. */
  serverLimit(server: string): number | undefined
  agentLimit(agent: string): number | undefined
  /** Whether each client of an agent has the agent's limit for itself. */
  perClient?(): boolean
  total(): number
  queue(): number
  /** Whether calls hold the server's slots only because it is starting, which is not load. */
  isStarting?(server: string): boolean
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
  /** The calls in flight and the queued calls as budgets, with the callers that use most of each. */
  readonly budgets: { readonly calls: CallBudget; readonly queued: CallBudget }
}

type CallBudget = Omit<BudgetUse, 'name'>

export interface Bulkhead {
  readonly interceptor: Interceptor
  stats(): BulkheadStats
  /** Applies changed limits: admits waiting calls and drops counters that no longer have a limit. */
  limitsChanged(): void
  /** Gives a server free slots, because another process or address has its name now. Calls to the old one keep theirs. */
  forget(server: string): void
}

/** Default for `maxWaitMs`. After this time, an error with a Retry-After serves the caller better than more waiting. */
const usualWaitMs = 5_000

/**
 * Limits the calls in flight per server, per agent and in total (B7), so that one busy server or agent leaves room for
 * others. Each caller has a share of the server's slots and of all slots (V6). A call without a slot waits. Calls that
 * carry other calls need no slot: they would take the slots that their inner calls need.
 */
export function bulkhead(options: BulkheadOptions): Bulkhead {
  const { clock } = options
  // Unlimited until the first call, which sets the configured limit.
  const whole = createSlots(Number.POSITIVE_INFINITY)
  const servers = new Map<string, Slots>()
  const agents = new Map<string, Slots>()
  /** Slots by caller, and by caller and server. They exist only while they are in use. */
  const callers = new Map<string, Slots>()
  const callersAtServers = new Map<string, Slots>()
  const room = createWaitingRoom(options)

  const take = ({ server, agent, caller, callerAtServer }: Needs): boolean => {
    if (!hasSlot(whole) || !hasSlot(server) || !hasSlot(agent)) return false
    if (!hasSlot(caller) || !hasSlot(callerAtServer)) return false
    takeSlot(whole)
    takeSlot(server)
    takeSlot(agent)
    takeSlot(caller)
    takeSlot(callerAtServer)
    return true
  }

  const needsOf = ({ entry, caller }: Call): Needs => {
    const { principal } = caller
    const server = slotsOf(servers, entry.server, options.serverLimit(entry.server))
    const agentKey = options.perClient?.() ? ownerKey(caller) : caller.agent
    const agent = slotsOf(agents, agentKey, options.agentLimit(caller.agent))
    whole.limit = options.total()
    const shared = hasShare(caller)
    const ofCaller = slotsOf(callers, principal, shared ? shareOf(whole.limit) : Number.POSITIVE_INFINITY)
    // Server names contain no line breaks, so keys are unique.
    const key = `${entry.server}\n${principal}`
    const callerAtServer = shared && server ? slotsOf(callersAtServers, key, shareOf(server.limit)) : undefined
    return { whole, server, agent, agentKey, caller: ofCaller as Slots, callerAtServer, principal, key }
  }

  const forgetUnused = ({ agent, agentKey, caller, callerAtServer, principal, key }: Needs) => {
    // Delete only these counters: a call that is refused after a pause is not counted during that pause, so the map may
    // already contain new ones, which other calls use.
    if (isUnused(caller) && callers.get(principal) === caller) callers.delete(principal)
    if (callerAtServer && isUnused(callerAtServer) && callersAtServers.get(key) === callerAtServer) {
      callersAtServers.delete(key)
    }
    const isOneClients = agent && agentKey.includes('\n')
    if (isOneClients && isUnused(agent) && agents.get(agentKey) === agent) agents.delete(agentKey)
  }

  return {
    async interceptor(call, next) {
      if (call.entry.traits.carries) return next(call)
      const needs = needsOf(call)
      // Every queued call lacks a slot, so a call that finds all its slots free does not jump the queue.
      if (!take(needs)) {
        slotTimes.set(call, Number.POSITIVE_INFINITY)
        try {
          await step(call.trail, 'queue', room.wait(call, needs, maxWaitOf(call, options)))
        } catch (error) {
          forgetUnused(needs)
          throw error
        }
        slotTimes.set(call, clock.monotonic())
      }
      const start = clock.monotonic()
      try {
        // The call may have been cancelled at the moment it got its slot.
        call.signal.throwIfAborted()
        // A handler that ignores the signal must not keep its slot after the call has ended.
        return await endWith(call.signal, next(call))
      } finally {
        const heldMs = Math.max(clock.monotonic() - start, 0)
        releaseSlot(whole, heldMs)
        releaseSlot(needs.server, heldMs)
        releaseSlot(needs.agent, heldMs)
        releaseSlot(needs.caller, heldMs)
        releaseSlot(needs.callerAtServer, heldMs)
        if (room.size > 0) room.serve(take)
        forgetUnused(needs)
      }
    },
    stats() {
      const limit = options.total()
      const { inFlight, waiting: queued } = whole
      let [most, largestQueue] = [0, 0]
      for (const slots of callers.values()) {
        most = Math.max(most, slots.inFlight)
        largestQueue = Math.max(largestQueue, slots.waiting)
      }
      const [queue, { refused }] = [options.queue(), room]
      const calls = { used: inFlight, limit, perCaller: shareOf(limit), largest: most, refused: 0 }
      const waiting = { used: queued, limit: queue, perCaller: queueShareOf(queue), largest: largestQueue, refused }
      const budgets = { calls, queued: waiting }
      return { inFlight, queued, limit, servers: loads(servers), agents: loads(agents), budgets }
    },
    limitsChanged() {
      whole.limit = options.total()
      applyLimits(servers, options.serverLimit)
      applyLimits(agents, (key) => options.agentLimit(agentIn(key)))
      for (const slots of callers.values()) if (isLimited(slots)) slots.limit = shareOf(whole.limit)
      for (const [key, slots] of callersAtServers) {
        slots.limit = shareOf(options.serverLimit(key.slice(0, key.indexOf('\n'))) ?? Number.POSITIVE_INFINITY)
      }
      room.serve(take)
    },
    forget(server) {
      servers.delete(server)
      for (const key of callersAtServers.keys()) if (key.startsWith(`${server}\n`)) callersAtServers.delete(key)
    },
  }
}

/** One caller's share of the slots: three quarters, so that other callers always find some. */
const shareOf = (limit: number): number => Math.max(1, limit - Math.ceil(limit / 4))

/** One caller's share of the queue: half. */
const queueShareOf = (limit: number): number => Math.ceil(limit / 2)

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

const maxWaitOf = (call: Call, { maxWaitMs = usualWaitMs }: BulkheadOptions): MaxWait => {
  const halfMs = timeOf(call) / 2
  return halfMs < maxWaitMs ? { ms: halfMs, from: "half the call's timeout" } : { ms: maxWaitMs, from: 'a fixed limit' }
}

/** The loads by name. Those of an agent's clients are added up. */
function loads(all: ReadonlyMap<string, Slots>): Record<string, BulkheadLoad> {
  const byName = new Map<string, BulkheadLoad>()
  for (const [key, { inFlight, waiting, limit }] of all) {
    const known = byName.get(agentIn(key)) ?? { inFlight: 0, queued: 0 }
    byName.set(agentIn(key), { inFlight: known.inFlight + inFlight, queued: known.queued + waiting, limit })
  }
  return Object.fromEntries(byName)
}

/** The agent in a key, which is an agent's name or an `ownerKey`. */
const agentIn = (key: string): string => key.split('\n', 1)[0] as string

interface QueuedCall {
  readonly call: Call
  readonly needs: Needs
  goOn(): void
  refuse(error: Error): void
}

const slotTimes = new WeakMap<Call, number>()

/** When a call that was queued got its slots, by the monotonic clock; infinite if it has not got them. */
export const slotTimeOf = (call: Call): number | undefined => slotTimes.get(call)

/** How often a call that has waited too long checks whether its server is still starting. */
const startingCheckMs = 500

/** How long a call waits for its refusal if its caller has used up its share of the queue. */
const overShareMs = 500

/** How long a call may wait. `from` is the setting or rule that set this limit, for the error message. */
interface MaxWait {
  readonly ms: number
  readonly from: string
}

/** The waiting calls, in one queue per caller, agent and server. They are served round robin, as slots become free. */
function createWaitingRoom(options: Pick<BulkheadOptions, 'queue' | 'isStarting' | 'clock'>) {
  const queues = new Map<string, Set<QueuedCall>>()
  /** The waiting calls of each caller, oldest first. */
  const ofCallers = new Map<string, Set<QueuedCall>>()

  const count = ({ whole, server, agent, caller, callerAtServer }: Needs, by: 1 | -1) => {
    room.size += by
    whole.waiting += by
    caller.waiting += by
    if (server) server.waiting += by
    if (agent) agent.waiting += by
    if (callerAtServer) callerAtServer.waiting += by
  }

  /**
   * Evicts the newest call of the caller with the most waiting calls or, if that is the newcomer itself, of its longest
   * queue. The newcomer must have at least two calls fewer there, so that two callers do not evict each other's calls.
   */
  const makeRoom = (principal: string, key: string): boolean => {
    const ownQueues = () => [...queues.values()].filter(([first]) => first?.needs.principal === principal)
    return evictLongest(ofCallers.values(), ofCallers.get(principal)) || evictLongest(ownQueues(), queues.get(key))
  }

  const evictLongest = (all: Iterable<Set<QueuedCall>>, own: Set<QueuedCall> | undefined): boolean => {
    let longest = new Set<QueuedCall>()
    for (const waiters of all) if (waiters.size > longest.size) longest = waiters
    const last = [...longest].at(-1)
    if (!last || longest.size <= (own?.size ?? 0) + 1) return false
    last.refuse(overloaded(last.call, last.needs, 'its place in the queue was given to a caller with fewer calls'))
    room.refused++
    return true
  }

  /**
   * Refuses a call of a caller that has used up its share of the queue. Waits first, because a client that repeats
   * refused calls at full speed would keep this process from serving others.
   */
  const refuseOverShare = async (call: Call, needs: Needs): Promise<never> => {
    room.refused++
    await pause(options.clock, overShareMs, call.signal)
    throw overloaded(call, needs, 'your share of the queue is full')
  }

  const room = {
    size: 0,
    refused: 0,
    /** Resolves once the call has its slots; rejects if the call waits too long or is aborted. */
    async wait(call: Call, needs: Needs, { ms, from }: MaxWait): Promise<void> {
      const { signal } = call
      signal.throwIfAborted()
      // Names of agents and servers contain no spaces, so keys are unique.
      const key = `${call.caller.agent} ${call.entry.server} ${needs.principal}`
      const isOverShare = hasShare(call.caller) && needs.caller.waiting >= queueShareOf(options.queue())
      if (isOverShare && options.queue() > 0) return refuseOverShare(call, needs)
      if (room.size >= options.queue() && !makeRoom(needs.principal, key)) {
        room.refused++
        throw overloaded(call, needs, 'the queue is full')
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const queue = queues.get(key) ?? new Set()
      const ofCaller = ofCallers.get(needs.principal) ?? new Set()
      const waiter: QueuedCall = { call, needs, goOn: () => end(resolve), refuse: (error) => end(() => reject(error)) }
      const gone = () => waiter.refuse(signal.reason)
      const tooLong = () => {
        if (options.isStarting?.(call.entry.server)) {
          timer = options.clock.after(startingCheckMs, tooLong)
          return
        }
        room.refused++
        waiter.refuse(overloaded(call, needs, `no slot became free within ${durationText(ms)} (${from})`))
      }
      let timer = options.clock.after(ms, tooLong)
      signal.addEventListener('abort', gone, { once: true })
      queues.set(key, queue)
      queue.add(waiter)
      ofCallers.set(needs.principal, ofCaller)
      ofCaller.add(waiter)
      count(needs, 1)
      return promise

      function end(settle: () => void): void {
        timer[Symbol.dispose]()
        signal.removeEventListener('abort', gone)
        queue.delete(waiter)
        if (queue.size === 0) queues.delete(key)
        ofCaller.delete(waiter)
        if (ofCaller.size === 0) ofCallers.delete(needs.principal)
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
  /** The key of `agent`. */
  readonly agentKey: string
  readonly caller: Slots
  /** The caller's share of the server's slots; undefined if it has none. */
  readonly callerAtServer: Slots | undefined
  readonly principal: string
  /** The key of `callerAtServer`. */
  readonly key: string
}

/** Bounds for Retry-After. Estimates above the maximum would only be guesses. */
const minRetryAfterMs = 100
const maxRetryAfterMs = 60_000

/** The error for a call without a free slot (B7): names what is full and when to retry. */
function overloaded({ entry, caller }: Call, needs: Needs, why: string): ToolwayError {
  const { whole, server, agent, callerAtServer } = needs
  const full: (readonly [string, Slots])[] = []
  if (callerAtServer && !hasSlot(callerAtServer))
    full.push([`Your share of the server ${entry.server}`, callerAtServer])
  if (!hasSlot(needs.caller)) full.push(['Your share of Toolway', needs.caller])
  if (server && !hasSlot(server)) full.push([`The server ${entry.server}`, server])
  const client = needs.agentKey === caller.agent ? '' : ', for this client,'
  if (agent && !hasSlot(agent)) full.push([`The agent ${caller.agent}${client}`, agent])
  if (full.length === 0 || !hasSlot(whole)) full.push(['Toolway', whole])
  const [who, { limit }] = full[0] as (typeof full)[number]
  const backlog = Math.max(...full.map(([, slots]) => backlogMs(slots)))
  const retryAfterMs = Math.ceil(Math.min(Math.max(backlog, minRetryAfterMs), maxRetryAfterMs))
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

const isUnused = ({ inFlight, waiting }: Slots): boolean => inFlight === 0 && waiting === 0

const isLimited = ({ limit }: Slots): boolean => limit !== Number.POSITIVE_INFINITY

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
