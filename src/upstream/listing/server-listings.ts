import {
  type Call,
  type Caller,
  type CallerIdentity,
  type Capabilities,
  clientKey,
  hasShare,
  listProfile,
} from '../../core/call.ts'
import { deadline, endWith } from '../../core/deadline.ts'
import { refusalOf } from '../../core/decision.ts'
import type { Entry } from '../../core/entry.ts'
import type { Descriptors } from '../../core/stores.ts'
import type { ConnectionPool } from '../connection/connection-pool.ts'
import { type InitializedConnection, isStateful } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import type { UpstreamServerOptions } from '../server-options.ts'
import { type ListingPort, listDigest, ServerListing } from './server-listing.ts'

export interface ListingEvents {
  entriesOf(descriptors: Descriptors): readonly Entry[]
  /** Called with a client profile's listing that may have changed, before callers learn of it through `changed`. */
  examine(listing: ServerListing): void
  changed(): void
  /** Called when one caller's lists may have changed. */
  callerChanged(caller: CallerIdentity): void
}

interface CallerListing {
  readonly caller: Caller
  readonly open: InitializedConnection
  readonly listing: ServerListing
}

/** How many sessions' connections are asked for their lists every time that a listing is refreshed. */
const maxPolled = 16
/** How long a call waits for a new connection's lists. */
const listedWithinMs = 10_000
/** The maximum number of callers with their own listing, of all and of one principal. Others see the common listing. */
const maxCallerListings = 256
const maxPerPrincipal = 64
/** Max size of these listings together. Beyond it, the callers with the largest listings see the common one. */
const maxCallerBytes = 64 * 1024 * 1024
const noStore = { load: async () => undefined, save: async () => {} }

/**
 * All listings of one server: one for each kind of client, and those of callers that have connections for themselves. A
 * server may change its lists for one caller, for example if that caller enables a set of tools or creates a resource; no
 * other caller sees that (G3, W1).
 */
export class ServerListings implements AsyncDisposable {
  /** The listing for clients without capabilities. */
  readonly plain: ServerListing
  readonly byProfile = new Map<number, ServerListing>()
  readonly #server: UpstreamServerOptions
  readonly #pool: ConnectionPool
  readonly #events: ListingEvents
  /** Whether each listing is fetched only until it is complete. */
  readonly #isOnce: boolean
  readonly #byCaller = new Map<string, CallerListing>()
  readonly #closing = new Set<Promise<void>>()
  /** The connections whose lists are still being fetched. */
  readonly #fetching = new WeakMap<InitializedConnection, Promise<unknown>>()
  /** The transport's `gaps` when a connection's lists were last fetched. */
  readonly #gaps = new WeakMap<InitializedConnection, number>()

  constructor(server: UpstreamServerOptions, pool: ConnectionPool, events: ListingEvents) {
    this.#server = server
    this.#pool = pool
    this.#events = events
    this.#isOnce = server.defaults.discovery === 'startup'
    this.plain = this.of({})
  }

  of(capabilities: Capabilities): ServerListing {
    const profile = listProfile(capabilities)
    const known = this.byProfile.get(profile)
    if (known) return known
    const listing: ServerListing = this.#create({
      capabilities,
      store: this.#server.host.store,
      connection: () => this.#pool.forListing(capabilities),
      current: () => this.#pool.current(capabilities),
      unconnected: () => this.#fetchForCallers(capabilities),
      onNews: () => {
        this.#events.examine(listing)
        for (const own of this.#byCaller.values())
          if (!this.#differs(own) && !own.listing.fetching) this.#removeCommon(own)
        this.#events.changed()
      },
    })
    this.byProfile.set(profile, listing)
    return listing
  }

  /** The caller's own listing, if the server lists something else for it. */
  ofCaller(caller: CallerIdentity): ServerListing | undefined {
    const own = this.#byCaller.size > 0 ? this.#byCaller.get(clientKey(caller)) : undefined
    return own && this.#differs(own) ? own.listing : undefined
  }

  /** The listing that this caller sees. */
  forCaller(caller: CallerIdentity): ServerListing {
    return this.ofCaller(caller) ?? this.of(caller.capabilities)
  }

  /** The entries for a kind of client, or the plain ones until the kind's listing has been fetched. */
  entriesOf(listing: ServerListing): readonly Entry[] {
    return (listing.descriptors ? listing : this.plain).entries
  }

  /** Makes all entries again from the same lists, because the settings for them have changed. */
  remakeEntries(): void {
    const own = [...this.#byCaller.values()].map(({ listing }) => listing)
    // The common ones come first: callers' own ones are compared with them.
    for (const listing of [...this.byProfile.values(), ...own]) listing.remakeEntries()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const listing of this.byProfile.values()) this.#end(listing)
    for (const { listing } of this.#byCaller.values()) this.#end(listing)
    this.#byCaller.clear()
    await Promise.all(this.#closing)
  }

  #create(port: Omit<ListingPort, 'isDown' | 'entriesOf'>): ServerListing {
    const { entriesOf } = this.#events
    return new ServerListing(this.#server, { ...port, entriesOf, isDown: () => this.#pool.failure !== undefined })
  }

  #end(listing: ServerListing): void {
    const ended: Promise<void> = listing[Symbol.asyncDispose]().then(() => void this.#closing.delete(ended))
    this.#closing.add(ended)
  }

  // The lists of a connection.
  /** Called when a connection has announced that its lists changed. */
  changed(open: InitializedConnection, capabilities: Capabilities): void {
    for (const listing of this.#through(open, capabilities)) listing.changed(open)
  }

  /**
   * Fetches the lists of a new connection, or again those of another one, so that a changed definition is noticed (B5).
   * All calls that arrive in the meantime wait for one fetch.
   */
  fetch(open: InitializedConnection, capabilities: Capabilities): Promise<unknown> | undefined {
    const listings = this.#through(open, capabilities)
    if (listings.length === 0) return undefined
    const { gaps } = open.connection.transport
    if (gaps !== undefined) this.#gaps.set(open, gaps)
    const fetched = Promise.allSettled(listings.map((listing) => listing.opened(open)))
    this.#fetching.set(open, fetched)
    void fetched.then(() => this.#fetching.delete(open))
    return fetched
  }

  /** Waits, for a limited time, until a call's definition is known to be current; undefined if it is. */
  whenChecked(open: InitializedConnection, call: Call): Promise<void> | undefined {
    const { gaps } = open.connection.transport
    // Another program may have replaced an HTTP server since the policy evaluated its definitions.
    const mayBeReplaced = gaps !== undefined && gaps !== this.#gaps.get(open)
    const isJudged = mayBeReplaced && this.#server.policy?.judgesDefinitions?.()
    const fetching = this.#fetching.get(open) ?? (isJudged ? this.fetch(open, call.caller.capabilities) : undefined)
    return fetching && this.#check(fetching, call)
  }

  async #check(fetching: Promise<unknown>, { caller, entry, signal }: Call): Promise<void> {
    const { name: server, policy, clock, log } = this.#server
    using patience = deadline(clock, listedWithinMs, () => new Error('listing timed out'), signal)
    await endWith(patience.signal, fetching).catch((error) => {
      signal.throwIfAborted()
      log.debug({ server, err: error }, 'calling a tool whose definition could not be rechecked')
    })
    const isSame = ({ kind, name }: typeof entry) => kind === entry.kind && name === entry.name
    const current = this.entriesOf(this.forCaller(caller)).find(isSame)
    const decision = current && current !== entry ? policy?.decide?.(caller, current) : undefined
    if (decision && !decision.allowed) throw refusalOf(decision, server)
  }

  /**
   * The listings that a connection can fetch: all if it is stateless, else the one for its client's kind, or for its
   * caller if the server may have changed its lists for that caller.
   */
  #through(open: InitializedConnection, capabilities: Capabilities): ServerListing[] {
    const { handshake, principal } = open
    // Other principals must not see a listing that was fetched with one principal's credential.
    if (principal !== undefined) return []
    const common = () => this.of(capabilities)
    // The lists of a session may differ from those that the server has in the stateless protocol.
    const isBesideStateless = handshake.era === 'legacy' && this.#pool.current(capabilities)?.handshake.era === 'modern'
    if (isStateful(open) || isBesideStateless) {
      if (this.#isFinal(common())) return []
      const own = this.#callerListing(open, capabilities)
      if (!own && !isBesideStateless) common().outdated()
      return own ? [own] : []
    }
    const found = handshake.era === 'modern' ? [...this.byProfile.values()] : [common()]
    return found.filter((listing) => !this.#isFinal(listing))
  }

  #isFinal({ fetched, failure, missing }: ServerListing): boolean {
    return this.#isOnce && fetched && !failure && missing.length === 0
  }

  // The listings of callers.
  /** The listing to fetch over a caller's connection. Undefined if that connection no longer belongs to a caller. */
  #callerListing(open: InitializedConnection, capabilities: Capabilities): ServerListing | undefined {
    const owner = this.#pool.callerOf(open)
    if (!owner) return undefined
    const caller = { ...owner, capabilities }
    const key = clientKey(caller)
    const known = this.#byCaller.get(key)
    if (known?.open === open) return known.listing
    if (known) this.#remove(known)
    this.#makeRoomFor(caller)
    const managed = this.#pool.all.find(({ current }) => current === open) as ManagedConnection
    // It is not stored, because it ends with the connection.
    const listing = this.#create({
      capabilities,
      store: noStore,
      connection: () => managed,
      current: () => (managed.current === open ? open : undefined),
      onNews: () => this.#onCallerNews(key, open),
    })
    this.#byCaller.set(key, { caller, open, listing })
    return listing
  }

  /** Fetches the lists over callers' connections, if there are no others. Returns false if there are none at all. */
  #fetchForCallers(capabilities: Capabilities): boolean {
    const stateful = this.#pool.stateful(capabilities).slice(-maxPolled)
    for (const open of stateful) this.#callerListing(open, capabilities)?.changed(open)
    return stateful.length > 0
  }

  /** Forgets the listings of connections that have been closed. */
  connectionClosed(): void {
    for (const own of this.#byCaller.values()) if (!this.#pool.callerOf(own.open)) this.#remove(own)
  }

  #differs({ listing, caller: { capabilities } }: CallerListing): boolean {
    if (!listing.descriptors) return false
    return listDigest(listing.entries) !== listDigest(this.of(capabilities).entries)
  }

  /** Called when a caller's listing was fetched. If it is the common one, it is not kept. */
  #onCallerNews(key: string, open: InitializedConnection): void {
    const own = this.#byCaller.get(key)
    if (own?.open !== open) return
    if (this.#differs(own)) {
      // The change may concern everybody.
      this.of(own.caller.capabilities).outdated()
      this.#events.callerChanged(own.caller)
      this.#removeLargest()
    } else this.#removeCommon(own)
  }

  /** Forgets a listing that is the common one, unless it is about to be fetched again. */
  #removeCommon(own: CallerListing): void {
    if (!own.listing.behind) this.#remove(own)
  }

  #removeLargest(): void {
    const largestFirst = [...this.#byCaller.values()].sort((one, other) => other.listing.bytes - one.listing.bytes)
    let bytes = largestFirst.reduce((sum, { listing }) => sum + listing.bytes, 0)
    for (const own of largestFirst) {
      if (bytes <= maxCallerBytes) return
      bytes -= own.listing.bytes
      this.#remove(own)
    }
  }

  #makeRoomFor(newcomer: Caller): void {
    const all = [...this.#byCaller.values()]
    const same = hasShare(newcomer) ? all.filter(({ caller }) => caller.principal === newcomer.principal) : []
    const [oldest] = same.length >= maxPerPrincipal ? same : all.length >= maxCallerListings ? all : []
    if (oldest) this.#remove(oldest)
  }

  #remove({ listing, caller }: CallerListing): void {
    this.#byCaller.delete(clientKey(caller))
    this.#end(listing)
    this.#events.callerChanged(caller)
  }
}
