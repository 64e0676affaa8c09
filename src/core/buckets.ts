import type { Entry } from './entry.ts'

/** A limit of calls: no 60 seconds, whenever they begin, hold more than `perMinute` of them. */
export interface Bucket {
  /** Whoever draws from the same key draws from the same bucket. */
  readonly key: string
  readonly perMinute: number
}

/** Whether a call may go on; if not, which bucket keeps it waiting longest, and for how many whole milliseconds. */
export type Taken =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly key: string; readonly retryAfterMs: number }

/** Where buckets are kept: in this process, or in a store that several share. */
export interface Buckets {
  /**
   * Takes one call from each bucket, or nothing at all where one of them has none left; no key is named twice.
   * `now` is `clock.monotonic()`; a time before the latest one counts as that. Throws OVERLOADED where there is no room
   * to count another key.
   */
  take(buckets: readonly Bucket[], now: number): Taken | Promise<Taken>
}

/** A bucket that a call draws from, and the line of the configuration that wants it so. */
export interface Limit extends Bucket {
  readonly rule: string
  /** What the calls go to, to end "10 calls a minute" with: ` to files.read`, ` in all`, or nothing. */
  readonly scope: string
}

/** What limits need to know of an entry. */
export type LimitedEntry = Pick<Entry, 'kind' | 'server' | 'name' | 'aliases' | 'traits'>

/** The limits that a call of this agent meets: none, one, or several that must all have room. */
export type LimitsOf = (agent: string, entry: LimitedEntry) => readonly Limit[]
