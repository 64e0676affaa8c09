import type { Definition, Entry } from './entry.ts'

/** Never throws or rejects (F13). `now` is `clock.monotonic()`. */
export interface CacheStore {
  /** The mark is for storing a new result. */
  get(group: string, key: string, now: number): CacheLookup | Promise<CacheLookup>
  /** Does nothing if the group was dropped after the mark was issued: the result may be older than the change. */
  put(group: string, key: string, answer: CachedAnswer, now: number): void | Promise<void>
  /** Drops all results of a group, including those of calls in flight. */
  drop(group: string): void | Promise<void>
  clear(): void | Promise<void>
  usage(): CacheUsage
}

export type Mark = number | string

export interface CacheLookup {
  /** The body of a result, not to be modified; absent on a miss. */
  readonly bytes?: Buffer
  readonly mark: Mark
}

export interface CachedAnswer {
  readonly bytes: Buffer
  readonly mark: Mark
  readonly ttlMs: number
}

export interface CacheLimits {
  readonly maxEntries: number
  /** Of memory, including keys and bookkeeping. */
  readonly maxBytes: number
}

export interface CacheUsage {
  readonly entries: number
  readonly bytes: number
  /** Dropped before expiry, to make room. */
  readonly evicted: number
}

/** Best effort: entries may be evicted or lost with their store. Never throws or rejects. */
export interface TtlStore {
  set(key: string, text: string, ttlMs: number): void | Promise<void>
  /** Also restarts the TTL, because the entry is still in use. */
  get(key: string, ttlMs: number): string | undefined | Promise<string | undefined>
}

/** A rate limit: no window of 60 seconds contains more than `perMinute` calls. */
export interface Bucket {
  readonly key: string
  readonly perMinute: number
}

/** If refused: the bucket with the longest wait, and that wait in whole milliseconds. */
export type Taken =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly key: string; readonly retryAfterMs: number }

export interface Buckets {
  /**
   * Takes one call from every bucket, or none if one of them is exhausted; keys must be unique. `now` is
   * `clock.monotonic()`; earlier times count as the latest one seen. Throws OVERLOADED if there is no room for another
   * key.
   */
  take(buckets: readonly Bucket[], now: number): Taken | Promise<Taken>
}

export interface Limit extends Bucket {
  readonly rule: string
  /** Completes "10 calls per minute": ` to files.read`, ` in total`, or empty. */
  readonly scope: string
}

export type LimitedEntry = Pick<Entry, 'kind' | 'server' | 'name' | 'aliases' | 'traits'>

/** All of them must have room. */
export type LimitsOf = (agent: string, entry: LimitedEntry) => readonly Limit[]

/** Encrypted storage of small secrets. */
export interface Vault {
  /** A damaged record counts as absent. */
  read(key: string): Promise<string | undefined>
  /** Atomic. */
  write(key: string, text: string): Promise<void>
  remove(key: string): Promise<void>
  /** In a stable order. */
  keys(): Promise<readonly string[]>
}

/** Mutual exclusion across processes or replicas. */
export interface Locks {
  /** Waits for the lock and holds it until disposed of. Rejects if it is not free in time. */
  hold(name: string): Promise<AsyncDisposable>
}

/** A server's self-description and listing, remembered between runs so that a list never waits for a server. */
export interface Descriptors {
  /** Milliseconds since the epoch. */
  readonly fetchedAt: number
  readonly era: 'legacy' | 'modern'
  readonly protocolVersion: string
  readonly serverInfo: Readonly<Record<string, unknown>>
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions?: string
  readonly tools: readonly Definition[]
  readonly resources: readonly Definition[]
  readonly templates: readonly Definition[]
  readonly prompts: readonly Definition[]
  /** Input schemas with numbers that a double cannot hold, by tool name, as JSON with all digits. */
  readonly exactSchemas?: Readonly<Record<string, string>> | undefined
}

export interface DescriptorStore {
  /** What was saved under the same fingerprint of the server's configuration; a damaged record counts as absent. */
  load(server: string, fingerprint: string): Promise<Descriptors | undefined>
  /** Atomic. */
  save(server: string, fingerprint: string, descriptors: Descriptors): Promise<void>
}
