import type { Outcome } from '../../core/observer.ts'

/** What is counted of calls beside how long they took. */
export interface Counts {
  calls: number
  /** Failures, ours or a server's or a tool's own. */
  errors: number
  denials: number
  /** Of those that were not denied: a refusal takes no time, and says nothing about how long a call does. */
  sumMs: number
}

export const noCounts = (): Counts => ({ calls: 0, errors: 0, denials: 0, sumMs: 0 })

/** Counts one call, and its duration under the bucket it belongs to. */
export function count(counts: Counts, latencies: Uint32Array, kind: Outcome['kind'], ms: number, bucket: number): void {
  counts.calls++
  if (kind === 'denied') {
    counts.denials++
    return
  }
  if (kind !== 'answered') counts.errors++
  counts.sumMs += ms
  latencies[bucket] = (latencies[bucket] as number) + 1
}

export function addCounts(to: Counts, { calls, errors, denials, sumMs }: Counts): void {
  to.calls += calls
  to.errors += errors
  to.denials += denials
  to.sumMs += sumMs
}
