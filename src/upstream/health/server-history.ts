import type { Clock } from '../../core/clock.ts'

/**
 * Something that happened to a server's processes and connections. `started`: a process or connection was opened;
 * `lost`: it ended without being asked to, or stopped responding; `failed`: none could be opened; `idle`: Toolway closed
 * it because nobody used it; the others are an operator's actions.
 */
export interface ServerEvent {
  readonly at: number
  readonly kind: 'started' | 'lost' | 'failed' | 'idle' | 'restarted' | 'paused' | 'resumed'
  readonly pid?: number | undefined
  /** Why it happened, as a sentence; undefined if the kind says it all. */
  readonly reason?: string | undefined
  /** How many times in a row it happened for the same reason, of which `at` is the last. */
  readonly times: number
}

export interface ServerHistory {
  record(kind: ServerEvent['kind'], details?: Pick<ServerEvent, 'pid' | 'reason'>): void
  /** Newest first. */
  events(): readonly ServerEvent[]
}

const maxEvents = 100
const maxReason = 500

/** The last events of one server in this process. An event that only repeats the last one is counted, not added. */
export function createServerHistory(clock: Pick<Clock, 'now'>): ServerHistory {
  const events: ServerEvent[] = []
  return {
    record(kind, { pid, reason } = {}) {
      const event = { at: clock.now(), kind, pid, reason: reason?.slice(0, maxReason), times: 1 }
      const last = events.at(-1)
      const repeats = kind === 'failed' && last?.kind === kind && last.reason === event.reason
      if (repeats) events.pop()
      events.push(repeats ? { ...event, times: last.times + 1 } : event)
      if (events.length > maxEvents) events.shift()
    },
    events: () => events.toReversed(),
  }
}
