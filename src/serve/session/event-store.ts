import { type Budget, createBudgets } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'

/** A stored event. Without a message, it only marks the end of the stream. */
interface StoredEvent {
  readonly stream: string
  readonly number: number
  readonly message: Buffer | undefined
  readonly last: boolean
}

export type SessionEvents = ReturnType<ReturnType<typeof createEventStore>['open']>

/** Limits per session. They are small: clients reconnect within seconds. */
const usual = { count: fixedLimits.storedMessages.value, bytes: fixedLimits.storedBytes.value }

/** Estimated memory per event in addition to its bytes. */
const overhead = 128

/**
 * Stores events, with limits per session, per caller and in total. The oldest events are evicted first. Final responses
 * are evicted last, because a call whose response is lost cannot be completed. The newest event is always kept.
 */
export function createEventStore(bounds = usual, budget: Budget = createBudgets().stored_bytes) {
  // For each session, a function that evicts one of its events. The least recently active session comes first.
  const sessions = new Set<Drop>()
  const ofCallers = new Map<string, Set<Drop>>()

  const evict = (from: Set<Drop>, newest: Drop, tooMuch: () => boolean) => {
    from.delete(newest)
    from.add(newest)
    if (!tooMuch()) return
    for (const drop of from) {
      while (tooMuch() && drop(drop === newest)) budget.shed()
      if (!tooMuch() || drop === newest) return
      // This session has no events left. It is inserted again when it gets a new one.
      from.delete(drop)
    }
  }

  const keepBounds = (newest: Drop, caller: string) => {
    const own = ofCallers.get(caller) ?? new Set()
    ofCallers.set(caller, own)
    evict(own, newest, () => budget.usedBy(caller) > budget.perCaller)
    evict(sessions, newest, () => budget.used > budget.limit)
  }

  const forget = (drop: Drop, caller: string) => {
    sessions.delete(drop)
    const own = ofCallers.get(caller)
    own?.delete(drop)
    if (own?.size === 0) ofCallers.delete(caller)
  }

  /** Opens the store for one session. Its events are kept so that a client that reconnects can receive them. */
  const open = (caller: string) => {
    const passing = new Map<number, StoredEvent>()
    const lasts = new Map<number, StoredEvent>()
    let newest = 0
    let bytes = 0
    let open = true

    const remove = (from: Map<number, StoredEvent>, { number, message }: StoredEvent) => {
      from.delete(number)
      const size = sizeOf(message)
      bytes -= size
      budget.give(caller, size)
    }

    const drop: Drop = (sparing) => {
      for (const kept of [passing, lasts]) {
        for (const event of kept.values()) {
          if (sparing && event.number === newest) break
          remove(kept, event)
          return true
        }
      }
      return false
    }

    return {
      /** The number of the newest event in any of the session's streams. */
      get newest(): number {
        return newest
      },
      /** Stores an event under the session's next number, and returns that number. */
      add(stream: string, message: Buffer | undefined, last = false): number {
        newest++
        if (!open) return newest
        ;(last ? lasts : passing).set(newest, { stream, number: newest, message, last })
        bytes += sizeOf(message)
        budget.add(caller, sizeOf(message))
        while ((passing.size + lasts.size > bounds.count || bytes > bounds.bytes) && drop(true));
        keepBounds(drop, caller)
        return newest
      },
      after(stream: string, number: number): readonly StoredEvent[] {
        const later = (event: StoredEvent) => event.stream === stream && event.number > number
        return [...passing.values(), ...lasts.values()].filter(later).sort((a, b) => a.number - b.number)
      },
      /** Reserves memory for a message that waits for a stream. Returns false if there is no room for it. */
      reserve: (message: Buffer): boolean => open && budget.take(caller, sizeOf(message)) === undefined,
      release: (message: Buffer): void => budget.give(caller, sizeOf(message)),
      isOver: (stream: string): boolean => [...lasts.values()].some((event) => event.stream === stream),
      [Symbol.dispose](): void {
        open = false
        forget(drop, caller)
        budget.give(caller, bytes)
        bytes = 0
        passing.clear()
        lasts.clear()
      },
    }
  }

  return {
    open,
    get bytes(): number {
      return budget.used
    },
  }
}

/** Evicts one event. Returns false if there is nothing to evict. With `sparing`, the newest event is kept. */
type Drop = (sparing: boolean) => boolean

const sizeOf = (message: Buffer | undefined): number => overhead + (message?.length ?? 0)
