import { createHash } from 'node:crypto'
import type { ServerConfig } from '../../config/schema.ts'
import { type Capabilities, listProfile } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, never } from '../../core/deadline.ts'
import type { Entry, Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { DescriptorStore, Descriptors } from '../../core/stores.ts'
import { backoffMs } from '../../lib/duration.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import type { HandshakeResult, InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import type { UpstreamServerOptions } from '../server-options.ts'
import { type FailedList, fetchLists, type ListName, type ListTtls, type ServerLists } from './fetch-lists.ts'

/** Where a listing comes from and goes. */
export interface ListingPort {
  readonly capabilities: Capabilities
  readonly store: DescriptorStore
  connection(): ManagedConnection
  /** An open connection for fetching the lists, if there is one. Does not open a connection. */
  current(): InitializedConnection | undefined
  /** Called when it is time to fetch the lists again but there is no such connection. False if there is none at all. */
  unconnected?(): boolean
  isDown(): boolean
  entriesOf(descriptors: Descriptors): readonly Entry[]
  /** Called when the listing was fetched, changed or failed. */
  onNews(): void
}

const listWithinMs = 30_000
/** How long lists are cached at least, so that a TTL of 0 does not turn each list request into one to the server. */
const minTtlMs = 1_000
/** How often a server is asked for lists that it failed to return, if somebody needs them. */
const missingRetryMs = 10_000
/** How often to check whether somebody has signed in. */
const signInMs = 5_000

/** What a server lists for clients of one kind; it may list more for clients that support more. */
export class ServerListing implements AsyncDisposable {
  descriptors: Descriptors | undefined
  entries: readonly Entry[] = []
  /** Whether the listing was fetched in this run. */
  fetched = false
  /** Why the listing could not be fetched, and which lists failed. */
  failure: ToolwayError | undefined
  missing: readonly FailedList[] = []
  /** The size of the lists that were fetched last. */
  bytes = 0
  /** How long the server allows caching each list, if it says so. */
  ttls: ListTtls = {}
  /** Whether the server has reported a change since the last fetch began. */
  behind = false
  readonly #server: UpstreamServerOptions
  readonly #port: ListingPort
  readonly #throttle: RefreshThrottle
  /** When the listing was fetched in this run, by the monotonic clock. */
  #listedAt = Number.NEGATIVE_INFINITY
  /** When the last fetch began, by the monotonic clock. */
  #requestedAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined
  #following: Promise<void> | undefined
  #again: Disposable | undefined
  #timer: Disposable | undefined
  #isOver = false

  constructor(server: UpstreamServerOptions, port: ListingPort) {
    this.#server = server
    this.#port = port
    this.#throttle = new RefreshThrottle(server.clock)
  }

  get fetching(): boolean {
    return this.#running !== undefined
  }

  /** Loads the cached listing from an earlier run. */
  async recall(): Promise<void> {
    if (this.descriptors) return
    const remembered = await this.#port.store.load(this.#record, fingerprintOf(this.#server.config))
    if (remembered && !this.descriptors) this.#learn(remembered)
  }

  /**
   * Whether a listing is known. If it is from an earlier run and old, or its TTL has passed, it is refreshed in the
   * background; only in mode `hybrid` does one from an earlier run count while the server is up. False if it lacks
   * something and it is time to try again.
   */
  known(): boolean {
    if (!this.descriptors || this.#mayComplete()) return false
    if (this.#port.isDown()) return true
    if (this.fetched) this.#refetchExpired()
    else if (this.#server.defaults.discovery !== 'hybrid') return false
    else if (this.#isOld(this.descriptors)) void this.refresh()
    return true
  }

  remakeEntries(): void {
    if (this.descriptors) this.#learn(this.descriptors)
  }

  /** Fetches the lists; never rejects. */
  async refresh(): Promise<void> {
    try {
      await this.#port.connection().use({ signal: never }, (open) => this.#list(open))
    } catch (error) {
      const { name: server, log } = this.#server
      log.debug({ server, err: error }, 'could not refresh the listing')
    }
  }

  /** Fetches the lists with requests that begin after this call. */
  renew(): Promise<void> {
    return this.#afterRunning(() => this.refresh()).catch(() => {})
  }

  /** Fetches all lists again over a new connection, because another program or version may be answering. May reject. */
  opened(open: InitializedConnection): Promise<void> {
    return this.#afterRunning(() => this.#list(open))
  }

  changed(open: InitializedConnection): void {
    this.behind = true
    // If a fetch is running, it may have missed the change, so another one follows.
    if (!this.#running && !this.#again) this.#catchUp(open)
  }

  /** The lists may have changed: fetches them again, over a new connection if no open one shows that. */
  outdated(): void {
    const open = this.#port.current()
    if (open) this.changed(open)
    if (open || this.#running || this.#again || this.#port.isDown()) return
    this.#again = this.#server.clock.after(this.#throttle.next(), () => {
      this.#again = undefined
      void this.refresh().finally(() => this.#throttle.done())
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    this.#timer?.[Symbol.dispose]()
    this.#again?.[Symbol.dispose]()
    // A listing that is being stored is stored completely.
    await Promise.allSettled([this.#running, this.#following])
  }

  /** The name of the listing's record in the store. For clients without known capabilities, it is the server's name. */
  get #record(): string {
    const { name } = this.#server
    const profile = listProfile(this.#port.capabilities)
    return profile === 0 ? name : `${name} ${profile}`
  }

  /** How often to refresh the listing; 0 if it is fetched only until it is complete. */
  get #refreshMs(): number {
    const { discovery, refreshMs } = this.#server.defaults
    return discovery === 'startup' ? 0 : refreshMs
  }

  #isOld({ fetchedAt }: Descriptors): boolean {
    const { clock } = this.#server
    // For a listing from an earlier run, only the wall-clock time is known.
    const ageMs = this.fetched ? clock.monotonic() - this.#listedAt : clock.now() - fetchedAt
    return this.#refreshMs > 0 && ageMs > this.#refreshMs
  }

  #mayComplete(): boolean {
    return this.missing.length > 0 && this.#server.clock.monotonic() - this.#requestedAt > missingRetryMs
  }

  /** Fetches lists whose TTL has passed, if a connection is open. No connection is opened for it. */
  #refetchExpired(): void {
    const { clock } = this.#server
    const ttlMs = Math.max(minTtlMs, this.#throttle.costMs, Math.min(...Object.values(this.ttls)))
    const isExpired = this.#refreshMs > 0 && clock.monotonic() - this.#requestedAt > ttlMs
    const open = isExpired && !this.#running ? this.#port.current() : undefined
    if (open) this.#list(open).catch(() => {})
  }

  /** The current fetch began too early, so another one follows, shared by all later callers. */
  #afterRunning(fetch: () => Promise<void>): Promise<void> {
    if (!this.#running) return fetch()
    this.#following ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#following = undefined
        return this.#isOver ? undefined : fetch()
      })
    return this.#following
  }

  #list(open: InitializedConnection, done?: () => void): Promise<void> {
    this.#running ??= this.#fetch(open).finally(() => {
      this.#running = undefined
      done?.()
      if (this.behind && !this.#again && !this.#isOver) this.#catchUp(open)
    })
    return this.#running
  }

  /** Fetches the lists again: at once, or after a pause if the server keeps reporting changes. */
  #catchUp(open: InitializedConnection): void {
    const ms = this.#throttle.next()
    const list = (over: InitializedConnection) => {
      this.#list(over, () => this.#throttle.done()).catch(() => {})
    }
    if (ms === 0) {
      list(open)
      return
    }
    this.#again = this.#server.clock.after(ms, () => {
      this.#again = undefined
      // If no connection is open, the next one that opens fetches the lists.
      const current = this.#port.current()
      if (current && this.behind) list(current)
    })
  }

  async #fetch(open: InitializedConnection): Promise<void> {
    const { name: server, defaults, host, clock, log } = this.#server
    using limit = deadline(clock, listWithinMs, () => listTimeout(server))
    this.behind = false
    this.#requestedAt = clock.monotonic()
    let spentMs = 0
    const spent = (ms: number) => {
      spentMs += ms
    }
    try {
      const { capabilities } = this.#port
      const options = { server, capabilities, limits: defaults.listLimits, redact: host.redact, signal: limit.signal }
      await this.#receive(open, await fetchLists(open, { ...options, spent, log }))
    } catch (thrown) {
      this.failure = ToolwayError.from(thrown)
      this.#port.onNews()
      throw thrown
    } finally {
      this.#throttle.costMs = spentMs
      this.#schedule()
    }
  }

  async #receive({ handshake }: InitializedConnection, lists: ServerLists): Promise<void> {
    const { name: server, config, clock, log } = this.#server
    const { failure, missing, fetched, descriptors } = this
    const recovered = failure !== undefined || JSON.stringify(missing) !== JSON.stringify(lists.failed)
    this.missing = lists.failed
    this.failure = undefined
    this.bytes = lists.bytes
    this.ttls = lists.ttls
    const findings = this.#findingsOf(handshake, lists)
    const fresh = { ...handshake, ...this.#withKnown(lists), findings, fetchedAt: clock.now() }
    const hasNews = !fetched || recovered || differs(fresh, descriptors)
    this.fetched = true
    this.#listedAt = clock.monotonic()
    this.descriptors = fresh
    if (!hasNews) return
    this.#learn(fresh)
    await this.#port.store.save(this.#record, fingerprintOf(config), fresh).catch((error: unknown) => {
      log.warn({ server, err: error }, 'could not store the listing; it is fetched again at the next start')
    })
  }

  /** Refreshes the listing periodically while a connection is open. No connection is opened for it. */
  #schedule(): void {
    const refreshMs = this.#refreshMs
    this.#timer?.[Symbol.dispose]()
    if (refreshMs === 0 || this.#isOver) return
    const soon = this.failure?.code === 'AUTH_REQUIRED' ? Math.min(refreshMs, signInMs) : refreshMs
    this.#timer = this.#server.clock.after(soon, () => {
      const open = this.#port.current()
      if (open) this.#list(open).catch(() => {})
      else if (this.#port.unconnected?.()) this.#schedule()
    })
  }

  /** The fetched lists, with the previous content in place of each list that failed, unless that has fewer entries. */
  #withKnown(lists: ServerLists): Pick<ServerLists, ListName | 'exactSchemas'> {
    const { descriptors } = this
    const or = (kind: Kind, name: ListName) => {
      const before = lists.failed.some((list) => list.kind === kind) ? (descriptors?.[name] ?? []) : []
      return before.length > lists[name].length ? before : lists[name]
    }
    const tools = or('tool', 'tools')
    return {
      tools,
      resources: or('resource', 'resources'),
      templates: or('template', 'templates'),
      prompts: or('prompt', 'prompts'),
      skills: or('skill', 'skills'),
      exactSchemas: tools === lists.tools ? lists.exactSchemas : descriptors?.exactSchemas,
    }
  }

  /** The findings about the handshake and the lists, with the previous ones of each list that failed. */
  #findingsOf(handshake: HandshakeResult, { failed, findings }: ServerLists): Descriptors['findings'] {
    const before = this.descriptors?.findings ?? []
    const known = before.filter((finding) => failed.some(({ method }) => method === finding.method))
    const all = [...(handshake.findings ?? []), ...findings, ...known]
    return all.length > 0 ? all : undefined
  }

  #learn(fresh: Descriptors): void {
    this.descriptors = fresh
    this.entries = this.#port.entriesOf(fresh)
    this.#port.onNews()
  }
}

function listTimeout(server: string): ToolwayError {
  const sentence = `${server} did not return its lists within ${listWithinMs / 1000} s (a fixed limit).`
  return new ToolwayError('TIMEOUT', sentence, { server })
}

const differs = (a: Descriptors, b: Descriptors | undefined): boolean =>
  JSON.stringify({ ...a, fetchedAt: 0 }) !== JSON.stringify({ ...b, fetchedAt: 0 })

/** A list's digest. Memoized, because a list is the same array until it changes. */
export const listDigest = memoizeByObject((entries: readonly Entry[]): string => {
  const hash = createHash('sha256')
  for (const { kind, definition } of entries) hash.update(JSON.stringify([kind, definition]))
  return hash.digest('base64url').slice(0, 16)
})

/** How many refreshes are allowed without a pause, because changes come in small bursts. */
const freeRefreshes = 2
/** The cost of lists for which changes in a small burst need no pauses. */
const maxFreeMs = 1_000
const firstRefreshPauseMs = 100
const maxRefreshPauseMs = 30_000
/** The length of a quiet period, as a multiple of the current pause. */
const quietPauses = 10

/** Limits how often a listing is refreshed after change notifications: the less often, the more a refresh costs. */
class RefreshThrottle {
  /** How long to wait before large lists are fetched again, so that a server's changes do not delay calls to others. */
  costMs = 0
  readonly #clock: Clock
  #inARow = 0
  #doneAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get #firstMs(): number {
    return Math.max(firstRefreshPauseMs, this.costMs)
  }

  get #pauseMs(): number {
    if (this.#inARow <= freeRefreshes) return Math.max(0, this.costMs - maxFreeMs)
    return backoffMs(this.#inARow - freeRefreshes - 1, { firstMs: this.#firstMs, maxMs: maxRefreshPauseMs })
  }

  /** Milliseconds to wait before the next refresh. Grows with each notification until there is a quiet period. */
  next(): number {
    const sinceMs = this.#clock.monotonic() - this.#doneAt
    const isQuiet = sinceMs > quietPauses * Math.max(this.#pauseMs, this.#firstMs)
    this.#inARow = isQuiet ? 0 : this.#inARow + 1
    return Math.max(0, this.#pauseMs - sinceMs)
  }

  done(): void {
    this.#doneAt = this.#clock.monotonic()
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
