/** A stored event. Without a message, it only marks the end of the stream. */
interface StoredEvent {
  readonly stream: string
  readonly number: number
  readonly message: Buffer | undefined
  readonly last: boolean
}

export type SessionEvents = ReturnType<ReturnType<typeof createEventStore>['open']>

const MiB = 1024 * 1024

/** Default limits: events and bytes per session, and total bytes. They are small: clients reconnect within seconds. */
const usual = { count: 1_000, bytes: MiB, total: 64 * MiB }

/** Estimated memory per event in addition to its bytes. */
const overhead = 128

/**
 * Stores events, with limits per session and in total. The oldest events are evicted first. Final responses are evicted
 * last, because a call whose response is lost cannot be completed. The newest event is always kept.
 */
export function createEventStore(bounds = usual) {
  // For each session, a function that evicts one of its events. The least recently active session comes first.
  const sessions = new Set<Drop>()
  let total = 0

  const keepTotal = (newest: Drop) => {
    sessions.delete(newest)
    sessions.add(newest)
    if (total <= bounds.total) return
    for (const drop of sessions) {
      while (total > bounds.total && drop(drop === newest));
      if (total <= bounds.total || drop === newest) return
      // This session has no events left. It is inserted again when it gets a new one.
      sessions.delete(drop)
    }
  }

  /** Opens the store for one session. Its events are kept so that a client that reconnects can receive them. */
  const open = () => {
    const passing = new Map<number, StoredEvent>()
    const lasts = new Map<number, StoredEvent>()
    let newest = 0
    let bytes = 0
    let open = true

    const remove = (from: Map<number, StoredEvent>, { number, message }: StoredEvent) => {
      from.delete(number)
      const size = sizeOf(message)
      bytes -= size
      total -= size
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
        total += sizeOf(message)
        while ((passing.size + lasts.size > bounds.count || bytes > bounds.bytes) && drop(true));
        keepTotal(drop)
        return newest
      },
      after(stream: string, number: number): readonly StoredEvent[] {
        const later = (event: StoredEvent) => event.stream === stream && event.number > number
        return [...passing.values(), ...lasts.values()].filter(later).sort((a, b) => a.number - b.number)
      },
      isOver: (stream: string): boolean => [...lasts.values()].some((event) => event.stream === stream),
      [Symbol.dispose](): void {
        open = false
        sessions.delete(drop)
        total -= bytes
        bytes = 0
        passing.clear()
        lasts.clear()
      },
    }
  }

  return {
    open,
    get bytes(): number {
      return total
    },
  }
}

/** Evicts one event. Returns false if there is nothing to evict. With `sparing`, the newest event is kept. */
type Drop = (sparing: boolean) => boolean

const sizeOf = (message: Buffer | undefined): number => overhead + (message?.length ?? 0)
