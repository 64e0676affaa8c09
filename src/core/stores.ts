import type { Definition, Entry } from './entry.ts'

/**
 * Where results are kept: in this process, or in a store that several share (F13). None of it ever throws or rejects.
 * `now` is `clock.monotonic()`.
 */
export interface CacheStore {
  /** What is kept for this key, and the mark under which an answer that is asked for now may be kept. */
  get(group: string, key: string, now: number): CacheLookup | Promise<CacheLookup>
  /**
   * Keeps an answer in the place of the one before. Nothing is kept where the group was dropped since the mark was
   * given: what was asked for before that may be an answer of the time before that.
   */
  put(group: string, key: string, answer: CachedAnswer, now: number): void | Promise<void>
  /** Drops all that is kept for a group, and all that is on its way. */
  drop(group: string): void | Promise<void>
  /** Drops everything. */
  clear(): void | Promise<void>
  usage(): CacheUsage
}

export type Mark = number | string

export interface CacheLookup {
  /** The body of a result, not to be changed; absent where nothing is kept, or not any more. */
  readonly bytes?: Buffer
  readonly mark: Mark
}

/** The body of a result that may be given out again. */
export interface CachedAnswer {
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

/**
 * Texts that are kept for a while, to be found again by their key: in this process, or in a store that several share.
 * What finds no room, or is away with its store, is as if it had never been kept. None of it ever throws or rejects.
 */
export interface TtlStore {
  /** Keeps a text for so long, in the place of the one before. */
  set(key: string, text: string, ttlMs: number): void | Promise<void>
  /** What is kept, and from now on for so long again: it belongs to something that goes on. */
  get(key: string, ttlMs: number): string | undefined | Promise<string | undefined>
}

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

/** Small secrets that are kept for later: whoever reads the disk learns nothing from them. */
export interface Vault {
  /** What was written under this key; a damaged record counts as none. */
  read(key: string): Promise<string | undefined>
  /** Never leaves half a record behind. */
  write(key: string, text: string): Promise<void>
  remove(key: string): Promise<void>
  /** Every key there is, in a stable order. */
  keys(): Promise<readonly string[]>
}

/** Things that only one may do at a time, however many processes or replicas there are. */
export interface Locks {
  /** Settles when it is ours; it is until disposed of. Rejects where it cannot be had in time. */
  hold(name: string): Promise<AsyncDisposable>
}

/** What a server said about itself and offers; remembered between runs so that a list never waits for a server. */
export interface Descriptors {
  /** When the server said so, in milliseconds since the epoch. */
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
  /** Input schemas that hold numbers which a double cannot, by the name of the tool, as JSON with all digits. */
  readonly exactSchemas?: Readonly<Record<string, string>> | undefined
}

export interface DescriptorStore {
  /** What was saved for this server under the same fingerprint of its configuration; a damaged record counts as none. */
  load(server: string, fingerprint: string): Promise<Descriptors | undefined>
  /** Never leaves half a record behind. */
  save(server: string, fingerprint: string, descriptors: Descriptors): Promise<void>
}
