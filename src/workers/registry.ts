import type { Clock } from '../core/clock.ts'
import type { TakenOver } from '../core/membership.ts'

/** Which workers there are and where, and what one needs to go on with a session of another. */
export interface Registry {
  /** Those that take requests, the oldest first. */
  members(): readonly Member[]
  join(member: Member): void
  leave(name: string): void
  keep(holder: string, session: string, record: string): void
  takeOver(taker: string, session: string, unreachable: string): TakenOver
  forget(session: string): void
}

export interface Member {
  readonly name: string
  /** Where it takes requests that others hand over. */
  readonly address: string
}

interface Kept {
  holder: string
  record: string
  readonly until: number
}

/** Longer than any session may be idle. */
const sessionMs = 2 * 3_600_000
/** Each worker has 10,000 sessions at most, and those of workers that are gone are kept as well. */
const maxSessions = 200_000

/** In memory: it lives as long as the workers do. */
export function createRegistry(clock: Clock, { most = maxSessions } = {}): Registry {
  const addresses = new Map<string, string>()
  /** The one that was heard of longest ago comes first. */
  const sessions = new Map<string, Kept>()

  const makeRoom = () => {
    for (const [session, { until }] of sessions) {
      if (until > clock.monotonic() && sessions.size <= most) return
      sessions.delete(session)
    }
  }

  const keep = (session: string, holder: string, record: string) => {
    sessions.delete(session)
    sessions.set(session, { holder, record, until: clock.monotonic() + sessionMs })
    makeRoom()
  }

  return {
    members: () => [...addresses].map(([name, address]) => ({ name, address })),
    join: ({ name, address }) => void addresses.set(name, address),
    leave: (name) => void addresses.delete(name),
    keep: (holder, session, record) => keep(session, holder, record),
    takeOver(taker, session, unreachable) {
      const kept = sessions.get(session)
      if (kept === undefined || kept.until <= clock.monotonic()) return undefined
      const { holder, record } = kept
      const address = holder === taker || holder === unreachable ? undefined : addresses.get(holder)
      if (address !== undefined) return { heldBy: holder, address }
      keep(session, taker, record)
      return { record }
    },
    forget: (session) => void sessions.delete(session),
  }
}
