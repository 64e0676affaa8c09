import { createHash } from 'node:crypto'
import type { ServerConfig } from '../../config/schema.ts'
import { type Capabilities, listProfile } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, never } from '../../core/deadline.ts'
import type { Entry, Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { DescriptorStore, Descriptors } from '../../core/stores.ts'
import { backoffMs } from '../../lib/backoff.ts'
import type { HandshakeResult, InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { type FailedList, fetchLists, type ListTtls, type ServerLists } from './fetch-lists.ts'
import type { ListLimits } from './list-reader.ts'

/** What a server lists for clients with one set of capabilities; it may list more for clients that support more. */
export interface ServerListing extends AsyncDisposable {
  readonly descriptors: Descriptors | undefined
  readonly entries: readonly Entry[]
  /** Whether the listing was fetched in this run. */
  readonly fetched: boolean
  /** `failure` says why the listing could not be fetched; `missing` says which lists failed. */
  readonly failure: ToolwayError | undefined
  readonly missing: readonly FailedList[]
  /** The size of the lists that were fetched last. */
  readonly bytes: number
  /** How long the server allows caching each list, if it says so. */
  readonly ttls: ListTtls
  readonly fetching: boolean
  /** Whether the server has reported a change since the last fetch began. */
  readonly behind: boolean
  /** Loads the cached listing from an earlier run. */
  recall(): Promise<void>
  /**
   * Whether a listing is known. If it is from an earlier run and old, or its TTL has passed, it is refreshed in the
   * background. False if it lacks something and it is time to try again.
   */
  known(): boolean
  /** Fetches the lists; never rejects. */
  refresh(): Promise<void>
  /** Fetches the lists with requests that begin after this call. */
  renew(): Promise<void>
  /** Fetches all lists again over a new connection, because another program or version may be answering. May reject. */
  opened(open: InitializedConnection): Promise<void>
  changed(open: InitializedConnection): void
  /** The lists may have changed: fetches them again, over a new connection if no open one shows that. */
  outdated(): void
}

export interface ServerListingOptions {
  readonly server: string
  readonly capabilities: Capabilities
  readonly fingerprint: string
  readonly refreshMs: number
  readonly limits?: ListLimits | undefined
  /** Removes secrets from text. */
  redact?(text: string): string
  readonly store: DescriptorStore
  connection(): ManagedConnection
  /** An open connection for fetching the lists, if there is one. Does not open a connection. */
  current(): InitializedConnection | undefined
  /** Called when it is time to fetch the lists again but there is no such connection. False if there is none at all. */
  unconnected?(): boolean
  down(): boolean
  entriesOf(descriptors: Descriptors): readonly Entry[]
  news(): void
  readonly clock: Clock
  readonly log: Log
}

type ListingState = { -readonly [Key in keyof ServerListing]: ServerListing[Key] }

const listWithinMs = 30_000
/** How long lists are cached at least, so that a TTL of 0 does not turn each list request into one to the server. */
const minTtlMs = 1_000
/** How often a server is asked for lists that it failed to return, if somebody needs them. */
const retryMs = 10_000
/** How often to check whether somebody has signed in. */
const signInMs = 5_000

export function createServerListing(options: ServerListingOptions): ServerListing {
  const { server, capabilities, fingerprint, refreshMs, store, clock, log } = options
  const record = recordName(server, capabilities)
  /** When the listing was fetched in this run, by the monotonic clock. */
  let listedAt = Number.NEGATIVE_INFINITY
  /** When the last fetch began, by the monotonic clock. */
  let requestedAt = Number.NEGATIVE_INFINITY
  /** How long to wait before large lists are fetched again, so that a server's changes do not delay calls to others. */
  let costMs = 0
  let running: Promise<void> | undefined
  let following: Promise<void> | undefined
  const throttle = createRefreshThrottle(clock, () => costMs)
  let isBehind = false
  let again: Disposable | undefined
  let timer: Disposable | undefined
  let over = false

  const listing: ListingState = {
    descriptors: undefined,
    entries: [],
    fetched: false,
    failure: undefined,
    missing: [],
    bytes: 0,
    ttls: {},
    get fetching() {
      return running !== undefined
    },
    get behind() {
      return isBehind
    },
    async recall() {
      const remembered = await store.load(record, fingerprint)
      if (remembered && !listing.descriptors) learn(remembered)
    },
    known() {
      if (!listing.descriptors || mayComplete()) return false
      if (options.down()) return true
      if (listing.fetched) refetchExpired()
      else if (isOld()) void refresh()
      return true
    },
    refresh,
    renew: () => afterRunning(refresh).catch(() => {}),
    opened: (open) => afterRunning(() => list(open)),
    changed(open) {
      isBehind = true
      // If a fetch is running, it may have missed the change, so another one follows.
      if (!running && !again) catchUp(open)
    },
    outdated() {
      const open = options.current()
      if (open) return listing.changed(open)
      if (running || again || options.down()) return
      again = clock.after(throttle.next(), () => {
        again = undefined
        void refresh().finally(throttle.done)
      })
    },
    async [Symbol.asyncDispose]() {
      over = true
      timer?.[Symbol.dispose]()
      again?.[Symbol.dispose]()
      // A listing that is being stored is stored completely.
      await Promise.allSettled([running, following])
    },
  }
  return listing

  function isOld(): boolean {
    const { descriptors, fetched } = listing
    if (descriptors === undefined) return true
    // For a listing from an earlier run, only the wall-clock time is known.
    const ageMs = fetched ? clock.monotonic() - listedAt : clock.now() - descriptors.fetchedAt
    return refreshMs > 0 && ageMs > refreshMs
  }

  function mayComplete(): boolean {
    return listing.missing.length > 0 && clock.monotonic() - requestedAt > retryMs
  }

  /** Fetches lists whose TTL has passed, if a connection is open. No connection is opened for it. */
  function refetchExpired(): void {
    const ttlMs = Math.max(minTtlMs, costMs, Math.min(...Object.values(listing.ttls)))
    const isExpired = refreshMs > 0 && clock.monotonic() - requestedAt > ttlMs
    const open = isExpired && !running ? options.current() : undefined
    if (open) list(open).catch(() => {})
  }

  async function refresh(): Promise<void> {
    try {
      await options.connection().use((open) => list(open), never)
    } catch (error) {
      log.debug({ server, err: error }, 'could not refresh the listing')
    }
  }

  /** The current fetch began too early, so another one follows, shared by all later callers. */
  function afterRunning(fetch: () => Promise<void>): Promise<void> {
    if (!running) return fetch()
    following ??= running
      .catch(() => {})
      .then(() => {
        following = undefined
        return over ? undefined : fetch()
      })
    return following
  }

  function list(open: InitializedConnection, done?: () => void): Promise<void> {
    running ??= listOnce(open).finally(() => {
      running = undefined
      done?.()
      if (isBehind && !again && !over) catchUp(open)
    })
    return running
  }

  /** Fetches the lists again: at once, or after a pause if the server keeps reporting changes. */
  function catchUp(open: InitializedConnection): void {
    const ms = throttle.next()
    if (ms === 0) return void list(open, throttle.done).catch(() => {})
    again = clock.after(ms, () => {
      again = undefined
      // If no connection is open, the next one that opens fetches the lists.
      const current = options.current()
      if (current && isBehind) list(current, throttle.done).catch(() => {})
    })
  }

  async function listOnce(open: InitializedConnection): Promise<void> {
    using limit = deadline(clock, listWithinMs, tooSlow)
    isBehind = false
    requestedAt = clock.monotonic()
    let spentMs = 0
    const spent = (ms: number) => {
      spentMs += ms
    }
    try {
      const { limits, redact } = options
      const { signal } = limit
      const offer = await fetchLists(open, { server, capabilities, limits, redact, spent, log, signal })
      const { failure, missing, fetched, descriptors } = listing
      const recovered = failure !== undefined || JSON.stringify(missing) !== JSON.stringify(offer.failed)
      listing.missing = offer.failed
      listing.failure = undefined
      listing.bytes = offer.bytes
      listing.ttls = offer.ttls
      const found = findingsOf(open.handshake, offer)
      const fresh = { ...open.handshake, ...kept(offer), findings: found, fetchedAt: clock.now() }
      const news = !fetched || recovered || differs(fresh, descriptors)
      listing.fetched = true
      listedAt = clock.monotonic()
      if (news) learn(fresh)
      else listing.descriptors = fresh
      if (news) await store.save(record, fingerprint, fresh).catch(unsaved)
    } catch (thrown) {
      listing.failure = ToolwayError.from(thrown)
      options.news()
      throw thrown
    } finally {
      costMs = spentMs
      schedule()
    }
  }

  /** Refreshes the listing periodically while a connection is open. No connection is opened for it. */
  function schedule(): void {
    timer?.[Symbol.dispose]()
    if (refreshMs === 0 || over) return
    const soon = listing.failure?.code === 'AUTH_REQUIRED' ? Math.min(refreshMs, signInMs) : refreshMs
    timer = clock.after(soon, () => {
      const open = options.current()
      if (open) list(open).catch(() => {})
      else if (options.unconnected?.()) schedule()
    })
  }

  /** The fetched lists, with the previous content in place of each list that failed, unless that has fewer entries. */
  function kept({ failed, ...offer }: ServerLists): Omit<ServerLists, 'failed' | 'findings' | 'bytes' | 'ttls'> {
    const { descriptors } = listing
    const or = (kind: Kind, key: 'tools' | 'resources' | 'templates' | 'prompts') => {
      const before = failed.some((list) => list.kind === kind) ? (descriptors?.[key] ?? []) : []
      return before.length > offer[key].length ? before : offer[key]
    }
    const tools = or('tool', 'tools')
    return {
      tools,
      resources: or('resource', 'resources'),
      templates: or('template', 'templates'),
      prompts: or('prompt', 'prompts'),
      exactSchemas: tools === offer.tools ? offer.exactSchemas : descriptors?.exactSchemas,
    }
  }

  /** The findings about the handshake and the lists, with the previous ones of each list that failed. */
  function findingsOf(handshake: HandshakeResult, { failed, findings }: ServerLists): Descriptors['findings'] {
    const before = listing.descriptors?.findings ?? []
    const kept = before.filter((finding) => failed.some(({ method }) => method === finding.method))
    const all = [...(handshake.findings ?? []), ...findings, ...kept]
    return all.length > 0 ? all : undefined
  }

  function learn(fresh: Descriptors): void {
    listing.descriptors = fresh
    listing.entries = options.entriesOf(fresh)
    options.news()
  }

  function tooSlow(): ToolwayError {
    const sentence = `${server} did not return its lists within ${listWithinMs / 1000} s (a fixed limit).`
    return new ToolwayError('TIMEOUT', sentence, { server })
  }

  function unsaved(error: unknown): void {
    log.warn({ server, err: error }, 'could not store the listing; it is fetched again at the next start')
  }
}

const differs = (a: Descriptors, b: Descriptors | undefined): boolean =>
  JSON.stringify({ ...a, fetchedAt: 0 }) !== JSON.stringify({ ...b, fetchedAt: 0 })

const digests = new WeakMap<readonly Entry[], string>()

/** A list's digest. Memoized, because a list is the same array until it changes. */
export function listDigest(entries: readonly Entry[]): string {
  const known = digests.get(entries)
  if (known !== undefined) return known
  const hash = createHash('sha256')
  for (const { kind, definition } of entries) hash.update(JSON.stringify([kind, definition]))
  const digest = hash.digest('base64url').slice(0, 16)
  digests.set(entries, digest)
  return digest
}

/** The name of the listing's record in the store. For clients without known capabilities, it is the server's name. */
function recordName(server: string, capabilities: Capabilities): string {
  const profile = listProfile(capabilities)
  return profile === 0 ? server : `${server} ${profile}`
}

/** How many refreshes are allowed without a pause, because changes come in small bursts. */
const atOnce = 2
/** The cost of lists for which changes in a small burst need no pauses. */
const maxFreeMs = 1_000
const firstPauseMs = 100
const maxPauseMs = 30_000
/** The length of a quiet period, as a multiple of the current pause. */
const quietPauses = 10

/** Limits how often a listing is refreshed after change notifications: the less often, the more a refresh costs. */
function createRefreshThrottle(clock: Clock, costMs: () => number) {
  let inARow = 0
  let doneAt = Number.NEGATIVE_INFINITY

  const firstMs = (): number => Math.max(firstPauseMs, costMs())
  const pauseMs = (): number =>
    inARow <= atOnce
      ? Math.max(0, costMs() - maxFreeMs)
      : backoffMs(inARow - atOnce - 1, { firstMs: firstMs(), maxMs: maxPauseMs })

  return {
    /** Milliseconds to wait before the next refresh. Grows with each notification until there is a quiet period. */
    next(): number {
      const sinceMs = clock.monotonic() - doneAt
      const isQuiet = sinceMs > quietPauses * Math.max(pauseMs(), firstMs())
      inARow = isQuiet ? 0 : inARow + 1
      return Math.max(0, pauseMs() - sinceMs)
    },
    done(): void {
      doneAt = clock.monotonic()
    },
  }
}

/** A fingerprint of the configured server, so that another server's cached listing is not used. */
export function fingerprintOf(config: ServerConfig): string {
  // Use only the names of environment variables, because their values are often secrets.
  const identity =
    config.transport === 'stdio'
      ? [config.command, config.args, config.cwd, Object.keys(config.env).sort()]
      : [config.transport, config.url]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16)
}
