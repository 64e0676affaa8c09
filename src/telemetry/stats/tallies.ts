import { type Counts, noCounts } from './counts.ts'
import { createLatencies, type Latencies } from './latencies.ts'

/** All calls of one agent, server, operation or tool since the start. */
export interface Tally {
  readonly counts: Counts
  readonly latencies: Latencies
}

export const createTally = (): Tally => ({ counts: noCounts(), latencies: createLatencies() })

/** What is counted by name. Names may be made up by callers, so only so many are kept apart; the rest is `other`. */
export interface Tallies {
  of(name: string): Tally
  find(name: string): Tally | undefined
  all(): Iterable<[name: string, tally: Tally]>
}

const other = 'other'

/** Nobody means a longer one as a name. */
const longest = 1000

export function createTallies(most: number): Tallies {
  const known = new Map<string, Tally>()
  const made = (name: string): Tally => {
    const tally = createTally()
    known.set(name, tally)
    return tally
  }
  return {
    of(name) {
      const before = known.get(name)
      if (before !== undefined) return before
      const hasRoom = known.size < most && name.length <= longest
      return hasRoom ? made(name) : (known.get(other) ?? made(other))
    },
    find: (name) => known.get(name),
    all: () => known,
  }
}
