/** One message as it was sent on a stream; without a message it only says that nothing more comes. */
export interface StoredEvent {
  readonly stream: string
  readonly number: number
  readonly message: Buffer | undefined
  /** Nothing follows it on its stream. */
  readonly last: boolean
}

/** What was sent on the streams of one session, kept for a client that has lost a connection and comes back. */
export interface SessionEvents extends Disposable {
  /** The number of the newest event, whichever its stream. */
  readonly newest: number
  /** Keeps what is sent on a stream, under the next number of the session. */
  add(stream: string, message: Buffer | undefined, last?: boolean): number
  /** What came after this number on the stream, oldest first, as far as it is still there. */
  after(stream: string, number: number): readonly StoredEvent[]
  /** Whether the end of the stream is still there. */
  isOver(stream: string): boolean
}

/** All that is kept for all sessions. */
export interface EventStore {
  open(): SessionEvents
  readonly bytes: number
}

export interface EventBounds {
  readonly count: number
  readonly bytes: number
  readonly total: number
}

const MiB = 1024 * 1024

/** A client is away for seconds, seldom for minutes; what it misses in that time is a few messages. */
const usual: EventBounds = { count: 1_000, bytes: MiB, total: 64 * MiB }

/** What keeping a message costs beside its bytes. */
const overhead = 128

/**
 * Keeps events within bounds per session and for all. Where something must go, the oldest goes first, and answers
 * go after everything else, because a call is lost without its answer. The newest event stays whatever its size.
 */
export function createEventStore(bounds: EventBounds = usual): EventStore {
  // Whoever has not sent anything for longest comes first.
  const sessions = new Set<Drop>()
  let total = 0

  const keepTotal = (newest: Drop) => {
    sessions.delete(newest)
    sessions.add(newest)
    if (total <= bounds.total) return
    for (const drop of sessions) {
      while (total > bounds.total && drop(drop === newest));
      if (total <= bounds.total || drop === newest) return
      // It has nothing left, and comes back with what it sends next.
      sessions.delete(drop)
    }
  }

  const open = (): SessionEvents => {
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
      get newest() {
        return newest
      },
      add(stream, message, last = false) {
        newest++
        if (!open) return newest
        ;(last ? lasts : passing).set(newest, { stream, number: newest, message, last })
        bytes += sizeOf(message)
        total += sizeOf(message)
        while ((passing.size + lasts.size > bounds.count || bytes > bounds.bytes) && drop(true));
        keepTotal(drop)
        return newest
      },
      after(stream, number) {
        const later = (event: StoredEvent) => event.stream === stream && event.number > number
        return [...passing.values(), ...lasts.values()].filter(later).sort((a, b) => a.number - b.number)
      },
      isOver: (stream) => [...lasts.values()].some((event) => event.stream === stream),
      [Symbol.dispose]() {
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
    get bytes() {
      return total
    },
  }
}

/** Drops what must go first, if there is anything; the newest event may be spared. */
type Drop = (sparing: boolean) => boolean

const sizeOf = (message: Buffer | undefined): number => overhead + (message?.length ?? 0)
