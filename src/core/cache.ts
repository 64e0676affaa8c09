/**
 * Where results are kept: in this process, or in a store that several share (F13). None of it ever throws or rejects.
 * `now` is `clock.monotonic()`.
 */
export interface CacheStore {
  /** What is kept for this key, and the mark under which an answer that is asked for now may be kept. */
  get(group: string, key: string, now: number): Found | Promise<Found>
  /**
   * Keeps an answer in the place of the one before. Nothing is kept where the group was dropped since the mark was
   * given: what was asked for before that may be an answer of the time before that.
   */
  put(group: string, key: string, answer: Answer, now: number): void | Promise<void>
  /** Drops all that is kept for a group, and all that is on its way. */
  drop(group: string): void | Promise<void>
  /** Drops everything. */
  clear(): void | Promise<void>
  usage(): CacheUsage
}

export type Mark = number | string

export interface Found {
  /** The body of a result, not to be changed; absent where nothing is kept, or not any more. */
  readonly bytes?: Buffer
  readonly mark: Mark
}

/** The body of a result that may be given out again. */
export interface Answer {
  readonly bytes: Buffer
  readonly mark: Mark
  readonly ttlMs: number
}

export interface CacheLimits {
  readonly maxEntries: number
  /** Of memory, not only of results: keys and what it takes to find them count, too. */
  readonly maxBytes: number
}

export interface CacheUsage {
  readonly entries: number
  readonly bytes: number
  /** How many were dropped before their time, to make room. */
  readonly evicted: number
}
