import type { KeptCall } from './kept-call.ts'

/** The last calls that are over, no more than so many and so large; the oldest makes room. */
export interface PastCalls {
  add(call: KeptCall): void
  find(id: string): KeptCall | undefined
  /** In the order in which they ended. */
  all(): KeptCall[]
}

/** A ring: taking the oldest out of a large Map would have to step over all that were taken out before it. */
export function createPastCalls(most: number, mostBytes: number): PastCalls {
  const places = new Array<KeptCall | undefined>(most)
  const byId = new Map<string, KeptCall>()
  let oldest = 0
  let count = 0
  let bytes = 0

  const dropOldest = () => {
    const call = places[oldest] as KeptCall
    places[oldest] = undefined
    oldest = (oldest + 1) % most
    count--
    bytes -= call.bytes
    // Somebody may have used an id twice.
    if (byId.get(call.id) === call) byId.delete(call.id)
  }

  return {
    add(call) {
      if (count === most) dropOldest()
      places[(oldest + count) % most] = call
      count++
      bytes += call.bytes
      byId.set(call.id, call)
      while (bytes > mostBytes) dropOldest()
    },
    find: (id) => byId.get(id),
    all: () => Array.from({ length: count }, (_, index) => places[(oldest + index) % most] as KeptCall),
  }
}
