import { type Budget, createBudgets } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'

/** A stored event. Without a message, it only marks the end of the stream. */
interface StoredEvent {
  readonly stream: string
  readonly number: number
  readonly message: Buffer | undefined
  readonly last: boolean
}

/** Limits per session. They are small: clients reconnect within seconds. */
const storedBounds = { count: fixedLimits.storedMessages.value, bytes: fixedLimits.storedBytes.value }

/** Estimated memory per event in addition to its bytes. */
const eventOverhead = 128

/**
 * Stores events, with limits per session, per caller and in total. The oldest events are evicted first. Final responses
 * are evicted last, because a call whose response is lost cannot be completed. The newest event is always kept.
 */
export class EventStore {
  readonly bounds: typeof storedBounds
  readonly budget: Budget
  /** The sessions with events. The least recently active one comes first. */
  readonly #sessions = new Set<SessionEvents>()

  constructor(bounds = storedBounds, budget: Budget = createBudgets().stored_bytes) {
    this.bounds = bounds
    this.budget = budget
  }

  get bytes(): number {
    return this.budget.used
  }

  /** Opens the store for one session. Its events are kept so that a client that reconnects can receive them. */
  open(caller: string): SessionEvents {
    return new SessionEvents(this, caller)
  }

  keepBounds(newest: SessionEvents): void {
    const { budget } = this
    const { caller } = newest
    this.#sessions.delete(newest)
    this.#sessions.add(newest)
    this.#evict(newest, () => budget.usedBy(caller) > budget.perCaller, caller)
    this.#evict(newest, () => budget.used > budget.limit)
  }

  forget(session: SessionEvents): void {
    this.#sessions.delete(session)
  }

  #evict(newest: SessionEvents, isTooMuch: () => boolean, caller?: string): void {
    if (!isTooMuch()) return
    for (const session of this.#sessions) {
      if (caller !== undefined && session.caller !== caller) continue
      while (isTooMuch() && session.evict(session === newest)) this.budget.shed()
      if (!isTooMuch() || session === newest) return
      // This session has no events left. It is inserted again when it gets a new one.
      this.#sessions.delete(session)
    }
  }
}

export class SessionEvents implements Disposable {
  readonly caller: string
  readonly #store: EventStore
  readonly #passing = new Map<number, StoredEvent>()
  readonly #lasts = new Map<number, StoredEvent>()
  #newest = 0
  #bytes = 0
  #isOpen = true

  constructor(store: EventStore, caller: string) {
    this.#store = store
    this.caller = caller
  }

  get newest(): number {
    return this.#newest
  }

  /** Stores an event under the session's next number, and returns that number. */
  add(stream: string, message: Buffer | undefined, last = false): number {
    const number = ++this.#newest
    if (!this.#isOpen) return number
    const { bounds, budget } = this.#store
    const kept = last ? this.#lasts : this.#passing
    kept.set(number, { stream, number, message, last })
    this.#bytes += storedSize(message)
    budget.add(this.caller, storedSize(message))
    const isTooMuch = () => this.#passing.size + this.#lasts.size > bounds.count || this.#bytes > bounds.bytes
    while (isTooMuch() && this.evict(true));
    this.#store.keepBounds(this)
    return number
  }

  after(stream: string, number: number): readonly StoredEvent[] {
    const later = (event: StoredEvent) => event.stream === stream && event.number > number
    return [...this.#passing.values(), ...this.#lasts.values()].filter(later).sort((a, b) => a.number - b.number)
  }

  isOver(stream: string): boolean {
    return [...this.#lasts.values()].some((event) => event.stream === stream)
  }

  /** Reserves memory for a message that waits for a stream. Returns false if there is no room for it. */
  reserve(message: Buffer): boolean {
    return this.#isOpen && this.#store.budget.take(this.caller, storedSize(message)) === undefined
  }

  release(message: Buffer): void {
    this.#store.budget.give(this.caller, storedSize(message))
  }

  /** Evicts one event. Returns false if there is nothing to evict. With `sparing`, the newest event is kept. */
  evict(sparing: boolean): boolean {
    for (const kept of [this.#passing, this.#lasts]) {
      const [oldest] = kept.values()
      if (oldest === undefined || (sparing && oldest.number === this.#newest)) continue
      kept.delete(oldest.number)
      const size = storedSize(oldest.message)
      this.#bytes -= size
      this.#store.budget.give(this.caller, size)
      return true
    }
    return false
  }

  [Symbol.dispose](): void {
    this.#isOpen = false
    this.#store.forget(this)
    this.#store.budget.give(this.caller, this.#bytes)
    this.#bytes = 0
    this.#passing.clear()
    this.#lasts.clear()
  }
}

const storedSize = (message: Buffer | undefined): number => eventOverhead + (message?.length ?? 0)
