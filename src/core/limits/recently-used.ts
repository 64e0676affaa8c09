import type { Budget } from './budget.ts'

interface Owned {
  /** The caller that may use only its share; undefined if the item belongs to no share. */
  readonly owner: string | undefined
}

/** A budget, and how much of it an item uses. */
interface ItemBound<Item> {
  readonly budget: Budget
  of(item: Item): number
}

/** Items in order of last use. Those that exceed a budget are evicted: an owner's oldest, then the oldest of all. */
export class RecentlyUsed<Item extends Owned> {
  readonly #bounds: readonly ItemBound<Item>[]
  readonly #evicted: (item: Item) => void
  readonly #items = new Set<Item>()
  readonly #ofOwners = new Map<string, Set<Item>>()

  constructor(bounds: readonly ItemBound<Item>[], evicted: (item: Item) => void) {
    this.#bounds = bounds
    this.#evicted = evicted
  }

  get oldest(): Item | undefined {
    for (const item of this.#items) return item
    return undefined
  }

  add(item: Item): void {
    this.#items.add(item)
    const { owner } = item
    if (owner !== undefined) this.#ofOwners.set(owner, (this.#ofOwners.get(owner) ?? new Set()).add(item))
    for (const { budget, of } of this.#bounds) budget.add(owner, of(item))
    for (const bound of this.#bounds) {
      const { budget } = bound
      if (owner !== undefined)
        this.#evictWhile(() => budget.usedBy(owner) > budget.perCaller, this.#ofOwners.get(owner) ?? [], bound)
      this.#evictWhile(() => budget.used > budget.limit, this.#items, bound)
    }
  }

  /** Makes an item the newest one. */
  touch(item: Item): void {
    if (!this.#items.delete(item)) return
    this.#items.add(item)
    const own = item.owner === undefined ? undefined : this.#ofOwners.get(item.owner)
    if (own?.delete(item)) own.add(item)
  }

  delete(item: Item): void {
    if (!this.#items.delete(item)) return
    const { owner } = item
    const own = owner === undefined ? undefined : this.#ofOwners.get(owner)
    own?.delete(item)
    if (owner !== undefined && own?.size === 0) this.#ofOwners.delete(owner)
    for (const { budget, of } of this.#bounds) budget.give(owner, of(item))
  }

  #evictWhile(isExceeded: () => boolean, items: Iterable<Item>, { budget, of }: ItemBound<Item>): void {
    if (!isExceeded()) return
    for (const item of items) {
      if (of(item) === 0) continue
      this.delete(item)
      budget.shed()
      this.#evicted(item)
      if (!isExceeded()) return
    }
  }
}
