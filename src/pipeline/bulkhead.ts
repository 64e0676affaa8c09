import { type Call, hasShare, ownerKey } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import type { BudgetUse } from '../core/limits/budget.ts'
import { fixedLimits } from '../core/limits/fixed-limits.ts'
import { SlotPool, shareOfSlots, takeSlots, type Waiter, WaitingRoom } from '../core/limits/slots.ts'
import { callAgain } from '../lib/duration.ts'
import type { AttemptStep, LeaveStep } from './attempt.ts'
import { step } from './observe.ts'
import { timeOf } from './timeout.ts'

/** The limits are read when they are first needed, and by `limitsChanged`. */
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
  /** Takes the call's slots; waits for them if they are in use. */
  readonly step: AttemptStep
  stats(): BulkheadStats
  /** Applies changed limits: admits waiting calls and drops counters that no longer have a limit. */
  limitsChanged(): void
  /** Gives a server free slots, because another process or address has its name now. Calls to the old one keep theirs. */
  forget(server: string): void
}

/** Default for `maxWaitMs`. After this time, an error with a Retry-After serves the caller better than more waiting. */
const usualWaitMs = fixedLimits.queueMs.value

const slotTimes = new WeakMap<Call, number>()

/** When a call that was queued got its slots, by the monotonic clock; infinite if it has not got them. */
export const slotTimeOf = (call: Call): number | undefined => slotTimes.get(call)

/**
 * Limits the calls in flight per server, per agent and in total (B7), so that one busy server or agent leaves room for
 * others. Each caller has a share of the server's slots and of all slots (V6). A call without a slot waits. Calls that
 * carry other calls need no slot: they would take the slots that their inner calls need.
 */
export function bulkhead(options: BulkheadOptions): Bulkhead {
  const { clock } = options
  const pools = new CallPools(options)
  const room = new WaitingRoom(options.queue, clock)

  /** Gives the slots back. A handler that ignores the signal does not keep them after the call has ended. */
  const held = (needed: SlotPool[]): LeaveStep => {
    const start = clock.monotonic()
    return () => {
      const heldMs = Math.max(clock.monotonic() - start, 0)
      for (const pool of needed) pool.release(heldMs)
      if (room.size > 0) room.serve()
    }
  }

  const heldLater = async (call: Call, needed: SlotPool[]): Promise<LeaveStep> => {
    slotTimes.set(call, Number.POSITIVE_INFINITY)
    try {
      await step(call.trail, 'queue', room.wait(waiterOf(call, needed, options)))
    } catch (error) {
      for (const pool of needed) pool.forgetUnused()
      throw error
    }
    slotTimes.set(call, clock.monotonic())
    return held(needed)
  }

  return {
    step(call) {
      if (call.entry.traits.carries) return undefined
      const needed = pools.neededBy(call)
      // Every queued call lacks a slot, so a call that finds all its slots free does not jump the queue.
      return takeSlots(needed) ? held(needed) : heldLater(call, needed)
    },
    stats: () => ({ ...pools.stats(), budgets: { calls: pools.use(), queued: room.use() } }),
    limitsChanged() {
      pools.limitsChanged()
      room.serve()
    },
    forget: (server) => pools.forget(server),
  }
}

/** The slots of calls: in total, by server and agent, by caller, and by caller and server. */
class CallPools {
  readonly #options: BulkheadOptions
  readonly #servers = new Map<string, SlotPool>()
  readonly #agents = new Map<string, SlotPool>()
  readonly #callers = new Map<string, SlotPool>()
  /** The keys are those of `callerAtServerKey`. */
  readonly #callersAtServers = new Map<string, SlotPool>()
  /** Unlimited until the first call, which sets the configured limit. */
  readonly #all = new SlotPool('Toolway', Number.POSITIVE_INFINITY)

  constructor(options: BulkheadOptions) {
    this.#options = options
  }

  /** The pools in which a call needs a slot. An error names the first of them that is full. */
  neededBy({ entry, caller }: Call): SlotPool[] {
    const { principal } = caller
    if (this.#all.limit === Number.POSITIVE_INFINITY) this.#all.limit = this.#options.total()
    const ofServer = this.#servers.get(entry.server) ?? this.#openServer(entry.server)
    const agentKey = this.#options.perClient?.() ? ownerKey(caller) : caller.agent
    const ofAgent = this.#agents.get(agentKey) ?? this.#openAgent(agentKey, caller.agent)
    const needed = [this.#callers.get(principal) ?? this.#openCaller(caller)]
    if (ofServer && hasShare(caller)) {
      const key = callerAtServerKey(entry.server, principal)
      needed.unshift(this.#callersAtServers.get(key) ?? this.#openCallerAtServer(key, ofServer.limit))
    }
    if (ofServer) needed.push(ofServer)
    if (ofAgent) needed.push(ofAgent)
    needed.push(this.#all)
    return needed
  }

  use(): CallBudget {
    const [limit, used] = [this.#options.total(), this.#all.inUse]
    const largest = Math.max(0, ...[...this.#callers.values()].map(({ inUse }) => inUse))
    return { used, limit, perCaller: shareOfSlots(limit), largest, refused: 0 }
  }

  stats(): Omit<BulkheadStats, 'budgets'> {
    const { inUse: inFlight, waiting: queued } = this.#all
    const limit = this.#options.total()
    return { inFlight, queued, limit, servers: loadsOf(this.#servers), agents: loadsOf(this.#agents) }
  }

  limitsChanged(): void {
    const { total, serverLimit, agentLimit } = this.#options
    this.#all.limit = total()
    applyLimits(this.#servers, serverLimit)
    applyLimits(this.#agents, (key) => agentLimit(agentIn(key)))
    for (const pool of this.#callers.values()) {
      if (pool.limit !== Number.POSITIVE_INFINITY) pool.limit = shareOfSlots(this.#all.limit)
    }
    for (const [key, pool] of this.#callersAtServers) {
      pool.limit = shareOfSlots(serverLimit(key.slice(0, key.indexOf('\n'))) ?? Number.POSITIVE_INFINITY)
    }
  }

  forget(server: string): void {
    this.#servers.delete(server)
    for (const key of this.#callersAtServers.keys()) {
      if (key.startsWith(callerAtServerKey(server, ''))) this.#callersAtServers.delete(key)
    }
  }

  #openServer(server: string): SlotPool | undefined {
    const limit = this.#options.serverLimit(server)
    const home = { pools: this.#servers, key: server, isPermanent: true }
    return limit === undefined ? undefined : new SlotPool(`The server ${server}`, limit, home)
  }

  #openAgent(key: string, agent: string): SlotPool | undefined {
    const limit = this.#options.agentLimit(agent)
    const isPermanent = key === agent
    const owner = isPermanent ? `The agent ${agent}` : `The agent ${agent}, for this client,`
    return limit === undefined ? undefined : new SlotPool(owner, limit, { pools: this.#agents, key, isPermanent })
  }

  #openCaller(caller: Call['caller']): SlotPool {
    const limit = hasShare(caller) ? shareOfSlots(this.#all.limit) : Number.POSITIVE_INFINITY
    return new SlotPool('Your share of Toolway', limit, { pools: this.#callers, key: caller.principal })
  }

  #openCallerAtServer(key: string, limit: number): SlotPool {
    const owner = `Your share of the server ${key.slice(0, key.indexOf('\n'))}`
    return new SlotPool(owner, shareOfSlots(limit), { pools: this.#callersAtServers, key })
  }
}

/** Server names contain no line breaks, so keys are unique. */
const callerAtServerKey = (server: string, principal: string): string => `${server}\n${principal}`

/** The agent in a key, which is an agent's name or an `ownerKey`. */
const agentIn = (key: string): string => key.split('\n', 1)[0] as string

function applyLimits(all: Map<string, SlotPool>, limitOf: (key: string) => number | undefined): void {
  for (const [key, pool] of all) {
    // Waiting calls still refer to this object, so lift its limit before dropping it from the map.
    pool.limit = limitOf(key) ?? Number.POSITIVE_INFINITY
    if (pool.limit === Number.POSITIVE_INFINITY) all.delete(key)
  }
}

/** The loads by name. Those of an agent's clients are added up. */
function loadsOf(pools: ReadonlyMap<string, SlotPool>): Record<string, BulkheadLoad> {
  const byName = new Map<string, BulkheadLoad>()
  for (const [key, { inUse, waiting, limit }] of pools) {
    const known = byName.get(agentIn(key)) ?? { inFlight: 0, queued: 0 }
    byName.set(agentIn(key), { inFlight: known.inFlight + inUse, queued: known.queued + waiting, limit })
  }
  return Object.fromEntries(byName)
}

function waiterOf(call: Call, pools: readonly SlotPool[], options: BulkheadOptions): Waiter {
  const { caller, entry, signal } = call
  const { maxWaitMs = usualWaitMs, isStarting } = options
  const halfMs = timeOf(call) / 2
  return {
    pools,
    caller: caller.principal,
    hasShare: hasShare(caller),
    // Names of agents and servers contain no spaces, so keys are unique.
    key: `${caller.agent} ${entry.server} ${caller.principal}`,
    signal,
    maxWait:
      halfMs < maxWaitMs ? { ms: halfMs, from: "half the call's timeout" } : { ms: maxWaitMs, from: 'a fixed limit' },
    isStarting: () => isStarting?.(entry.server) === true,
    refusal: (why) => overloaded(entry.server, pools, why),
  }
}

/** Bounds for Retry-After. Estimates above the maximum would only be guesses. */
const minRetryAfterMs = 100
const maxRetryAfterMs = 60_000

/** The error for a call without a free slot (B7): names what is full and when to retry. */
function overloaded(server: string, pools: readonly SlotPool[], why: string): ToolwayError {
  const isFull = pools.filter((pool) => pool.isFull)
  const full = isFull.length > 0 ? isFull : pools.slice(-1)
  const { owner, limit } = full[0] as SlotPool
  const backlogMs = Math.max(...full.map((pool) => pool.backlogMs()))
  const retryAfterMs = Math.ceil(Math.min(Math.max(backlogMs, minRetryAfterMs), maxRetryAfterMs))
  const busy = `${owner} has reached its limit of ${limit === 1 ? 'one call' : `${limit} calls`} in flight`
  const sentence = `${busy}, and ${why}. Nothing was sent: ${callAgain(retryAfterMs)}.`
  return new ToolwayError('OVERLOADED', sentence, { server, retryAfterMs })
}
