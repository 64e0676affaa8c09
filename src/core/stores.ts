import type { Caller } from './call.ts'
import type { Definition, Entry } from './entry.ts'
import type { ServerFinding } from './source-status.ts'

/** Stores call results (F13). Never throws or rejects. `now` is `clock.monotonic()`. */
export interface CacheStore {
  /** Looks up a result. On a miss, pass the returned mark to `put` when storing the new result. */
  get(group: string, key: string, now: number): CacheLookup | Promise<CacheLookup>
  /** Stores a result, unless its group was dropped after the mark was issued: the result may be out of date. */
  put(group: string, key: string, answer: CachedAnswer, now: number): void | Promise<void>
  /** Drops all results in a group. The results of calls that are still running will not be stored. */
  drop(group: string): void | Promise<void>
  clear(): void | Promise<void>
  usage(): CacheUsage
}

export type Mark = number | string

export interface CacheLookup {
  /** The body of the cached result, which must not be modified; absent on a miss. */
  readonly bytes?: Buffer
  readonly mark: Mark
}

export interface CachedAnswer {
  readonly bytes: Buffer
  readonly mark: Mark
  readonly ttlMs: number
  /** The principal that may not use up the cache with its results; absent if it has no share. */
  readonly owner?: string | undefined
}

/** A whole result of which the caller got a part. */
export interface KeptResult {
  readonly server: string
  readonly tool: string
  /** The body as the server sent it. */
  readonly bytes: Buffer
}

/** Whole results for a limited time. Each can be found only by the principal and agent that it was kept for. */
export interface ResultStore {
  keep(caller: Caller, handle: string, result: KeptResult, keepMs: number): void | Promise<void>
  /** `keepMs` is the setting, which the shared store needs. */
  find(caller: Caller, handle: string, keepMs: number): KeptResult | undefined | Promise<KeptResult | undefined>
}

export interface CacheLimits {
  readonly maxEntries: number
  /** Memory limit, including keys and bookkeeping. */
  readonly maxBytes: number
}

export interface CacheUsage {
  readonly entries: number
  readonly bytes: number
  /** How many results were dropped before they expired, to make room. */
  readonly evicted: number
  /** The bytes of the owner that has most of them. */
  readonly largest?: number
}

/** Stores text that expires. Best effort: entries may be evicted, or lost with their store. Never throws or rejects. */
export interface TtlStore {
  set(key: string, text: string, ttlMs: number): void | Promise<void>
  /** Reads an entry and restarts its TTL, because the entry is still in use. */
  get(key: string, ttlMs: number): string | undefined | Promise<string | undefined>
}

/** A rate limit: no window of 60 seconds contains more than `perMinute` calls. */
export interface Bucket {
  readonly key: string
  readonly perMinute: number
}

/** Whether a call was allowed; if not, the bucket with the longest wait, and that wait in whole milliseconds. */
export type Taken =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly key: string; readonly retryAfterMs: number }

export interface Buckets {
  /**
   * Counts one call in every bucket, or in none if one of them is exhausted. Keys must be unique. `now` is
   * `clock.monotonic()`; a time before the latest one seen counts as the latest. Throws OVERLOADED if there is no room
   * for another key.
   */
  take(buckets: readonly Bucket[], now: number): Taken | Promise<Taken>
}

export interface Limit extends Bucket {
  readonly rule: string
  /** The end of a message that begins with "10 calls per minute": ` to files.read`, ` in total`, or empty. */
  readonly scope: string
  /** Set if each client has the limit for itself. */
  readonly perClient?: true
}

export type LimitedEntry = Pick<Entry, 'kind' | 'server' | 'name' | 'aliases' | 'traits'>

/** The limits for a caller's call. Every one of them must have room for it. */
export type LimitsOf = (caller: Pick<Caller, 'agent' | 'principal'>, entry: LimitedEntry) => readonly Limit[]

/** Encrypted storage for small secrets. */
export interface Vault {
  /** Reads a secret; undefined if there is none or its record is damaged. */
  read(key: string): Promise<string | undefined>
  /** Atomic. */
  write(key: string, text: string): Promise<void>
  remove(key: string): Promise<void>
  /** All keys, in a stable order. */
  keys(): Promise<readonly string[]>
}

/** Mutual exclusion across processes or replicas. */
export interface Locks {
  /** Waits for the lock and holds it until the returned object is disposed of. Rejects if it is not free in time. */
  hold(name: string): Promise<AsyncDisposable>
}

/** A server's description and listing, kept between runs so that listing tools does not have to wait for the server. */
export interface Descriptors {
  /** When the description and the listing were fetched, in milliseconds since the epoch. */
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
  /** Absent in listings that earlier versions saved. */
  readonly skills?: readonly Definition[] | undefined
  /** Input schemas with numbers that a double cannot hold, by tool name, as JSON with all digits. */
  readonly exactSchemas?: Readonly<Record<string, string>> | undefined
  /** What was shortened or left out of the description and the lists. */
  readonly findings?: readonly ServerFinding[] | undefined
}

export interface DescriptorStore {
  /** Loads the listing saved under the same configuration fingerprint; undefined if there is none or it is damaged. */
  load(server: string, fingerprint: string): Promise<Descriptors | undefined>
  /** Atomic. */
  save(server: string, fingerprint: string, descriptors: Descriptors): Promise<void>
}
