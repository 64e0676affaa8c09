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
