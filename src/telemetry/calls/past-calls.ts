import type { KeptCall } from './kept-call.ts'

/** The last calls that are over, no more than so many and so large; the oldest makes room. */
export interface PastCalls {
  add(call: KeptCall): void
  find(id: string): KeptCall | undefined
  /** In the order in which they ended. */
  all(): KeptCall[]
}

/** A ring: taking the oldest out of a large Map would have to step over all that were taken out before it. */
export function createPastCalls(most: number, maxBytes: number): PastCalls {
  const places = new Array<KeptCall | undefined>(most)
  let oldest = 0
  let count = 0
  let bytes = 0

  const dropOldest = () => {
    const call = places[oldest] as KeptCall
    places[oldest] = undefined
    oldest = (oldest + 1) % most
    count--
    bytes -= call.bytes
  }

  const all = () => Array.from({ length: count }, (_, index) => places[(oldest + index) % most] as KeptCall)

  return {
    add(call) {
      if (count === most) dropOldest()
      places[(oldest + count) % most] = call
      count++
      bytes += call.bytes
      while (bytes > maxBytes) dropOldest()
    },
    // Calls come in thousands and people who look for one of them do not: there is no index to keep up.
    find: (id) => all().findLast((call) => call.id === id),
    all,
  }
}
