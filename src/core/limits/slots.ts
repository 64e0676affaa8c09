import { durationText } from '../../lib/duration.ts'
import type { Clock } from '../clock.ts'
import { pause } from '../deadline.ts'
import type { BudgetUse } from './budget.ts'

/** Assumed time for which a slot is held, before the first one has been released. */
const unknownMs = 1_000

/** Where a pool is found. Unless it is permanent, it is removed from there while it is not in use. */
interface PoolHome {
  readonly pools: Map<string, SlotPool>
  readonly key: string
  readonly isPermanent?: boolean
}

/** Slots for work that runs at the same time, such as the calls of one server. */
export class SlotPool {
  /** The owner of the slots, as the subject of an error message. */
  readonly owner: string
  limit: number
  inUse = 0
  waiting = 0
  readonly #home: PoolHome | undefined
  /** Moving average of how long slots were held; undefined before the first release. */
  #meanMs: number | undefined

  constructor(owner: string, limit: number, home?: PoolHome) {
    this.owner = owner
    this.limit = limit
    this.#home = home
    home?.pools.set(home.key, this)
  }

  get isFull(): boolean {
    return this.inUse >= this.limit
  }

  release(heldMs: number): void {
    this.inUse--
    // Exponential moving average, so that estimates follow recent work.
    this.#meanMs = this.#meanMs === undefined ? heldMs : this.#meanMs * 0.8 + heldMs * 0.2
    this.forgetUnused()
  }

  forgetUnused(): void {
    if (!this.#home || this.#home.isPermanent || this.inUse > 0 || this.waiting > 0) return
    const { pools, key } = this.#home
    // A refusal may come late, when the map already has a new pool that other work uses.
    if (pools.get(key) === this) pools.delete(key)
  }

  /** Estimates how long one more piece of work would have to wait. */
  backlogMs(): number {
    return ((this.#meanMs ?? unknownMs) * (this.waiting + 1)) / this.limit
  }
}

/** Takes one slot of each pool, or none if one of them is full. */
export function takeSlots(pools: readonly SlotPool[]): boolean {
  for (const { inUse, limit } of pools) if (inUse >= limit) return false
  for (const pool of pools) pool.inUse++
  return true
}

/** One caller's share of slots that others need too: three quarters, so that other callers always find some. */
export const shareOfSlots = (limit: number): number => Math.max(1, limit - Math.ceil(limit / 4))

/** A piece of work that waits for a slot in each of its pools. */
export interface Waiter {
  readonly pools: readonly SlotPool[]
  readonly caller: string
  /** Whether the caller may use only a share of the queue. */
  readonly hasShare: boolean
  /** Work with the same key is served in order of arrival, and keys take turns. */
  readonly key: string
  readonly signal: AbortSignal
  /** How long it may wait. `from` is the setting or rule that set this limit, for the error message. */
  readonly maxWait: { readonly ms: number; readonly from: string }
  /** Whether it waits for something else than load, and may therefore wait longer. */
  isStarting(): boolean
  refusal(why: string): Error
}

interface QueuePlace {
  readonly waiter: Waiter
  goOn(): void
  refuse(error: Error): void
}

/** How often work that has waited too long checks `isStarting`. */
const startingCheckMs = 500

/** How long work waits for its refusal if its caller has used up its share of the queue. */
const overShareMs = 500

/** One caller's share of the queue: half. */
const shareOfQueue = (limit: number): number => Math.ceil(limit / 2)

/** Work that waits for slots, in one queue per key. The queues are served round robin, as slots become free. */
export class WaitingRoom {
  readonly #limit: () => number
  readonly #clock: Clock
  readonly #queues = new Map<string, Set<QueuePlace>>()
  /** The waiting work of each caller, oldest first. */
  readonly #callers = new Map<string, Set<QueuePlace>>()
  #size = 0
  #refused = 0

  /** `limit` is read for each newcomer. */
  constructor(limit: () => number, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  get size(): number {
    return this.#size
  }

  use(): Omit<BudgetUse, 'name'> {
    const limit = this.#limit()
    const largest = Math.max(0, ...[...this.#callers.values()].map(({ size }) => size))
    return { used: this.#size, limit, perCaller: shareOfQueue(limit), largest, refused: this.#refused }
  }

  /** Resolves once the work has its slots; rejects if it waits too long or is aborted. */
  async wait(waiter: Waiter): Promise<void> {
    const { caller, signal } = waiter
    signal.throwIfAborted()
    const limit = this.#limit()
    const own = this.#callers.get(caller)?.size ?? 0
    if (waiter.hasShare && limit > 0 && own >= shareOfQueue(limit)) {
      this.#refused++
      // Not at once: a client that repeats refused calls at full speed would keep this process from serving others.
      await pause(this.#clock, overShareMs, signal)
      throw waiter.refusal('your share of the queue is full')
    }
    if (this.#size >= limit && !this.#makeRoom(waiter)) {
      this.#refused++
      throw waiter.refusal('the queue is full')
    }
    return this.#enter(waiter)
  }

  /** Offers slots to the first in each queue; a queue whose first cannot proceed keeps its position. */
  serve(): void {
    for (const [key, queue] of this.#queues) {
      const [first] = queue
      if (!first || !takeSlots(first.waiter.pools)) continue
      first.goOn()
      // Move the queue to the end of the map, where this loop visits it again.
      if (this.#queues.delete(key)) this.#queues.set(key, queue)
    }
  }

  #enter(waiter: Waiter): Promise<void> {
    const { signal, maxWait } = waiter
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const end = (settle: () => void): void => {
      timer[Symbol.dispose]()
      signal.removeEventListener('abort', gone)
      this.#count(place, -1)
      settle()
    }
    const place: QueuePlace = { waiter, goOn: () => end(resolve), refuse: (error) => end(() => reject(error)) }
    const gone = () => place.refuse(signal.reason)
    const tooLong = () => {
      if (waiter.isStarting()) timer = this.#clock.after(startingCheckMs, tooLong)
      else this.#evict(place, `no slot became free within ${durationText(maxWait.ms)} (${maxWait.from})`)
    }
    let timer = this.#clock.after(maxWait.ms, tooLong)
    signal.addEventListener('abort', gone, { once: true })
    this.#count(place, 1)
    return promise
  }

  #count(place: QueuePlace, by: 1 | -1): void {
    const { pools, key, caller } = place.waiter
    this.#size += by
    for (const pool of pools) pool.waiting += by
    for (const [places, name] of [[this.#queues, key] as const, [this.#callers, caller] as const]) {
      const all = places.get(name) ?? new Set()
      places.set(name, all)
      if (by > 0) all.add(place)
      else all.delete(place)
      if (all.size === 0) places.delete(name)
    }
  }

  #evict(place: QueuePlace, why: string): void {
    this.#refused++
    place.refuse(place.waiter.refusal(why))
  }

  /**
   * Evicts the newest work of the caller that has most of it or, if that is the newcomer itself, of its longest queue.
   * The newcomer must have at least two fewer there, so that two callers do not evict each other's work.
   */
  #makeRoom({ caller, key }: Waiter): boolean {
    const ownQueues = [...this.#queues.values()].filter(([first]) => first?.waiter.caller === caller)
    return (
      this.#evictLongest(this.#callers.values(), this.#callers.get(caller)) ||
      this.#evictLongest(ownQueues, this.#queues.get(key))
    )
  }

  #evictLongest(all: Iterable<Set<QueuePlace>>, own: Set<QueuePlace> | undefined): boolean {
    let longest = new Set<QueuePlace>()
    for (const places of all) if (places.size > longest.size) longest = places
    const last = [...longest].at(-1)
    if (!last || longest.size <= (own?.size ?? 0) + 1) return false
    this.#evict(last, 'its place in the queue was given to a caller with fewer calls')
    return true
  }
}
