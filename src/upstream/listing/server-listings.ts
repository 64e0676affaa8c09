import { type CallerIdentity, type Capabilities, listProfile } from '../../core/call.ts'
import type { Entry } from '../../core/entry.ts'
import type { DescriptorStore } from '../../core/stores.ts'
import type { ConnectionPool } from '../connection/connection-pool.ts'
import { type InitializedConnection, isStateful } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { type ListingSettings, ServerListing } from './server-listing.ts'
import { SessionListings } from './session-listings.ts'

export interface ServerListingsOptions {
  readonly common: ListingSettings
  readonly store: DescriptorStore
  /** Whether each listing is fetched only until it is complete. */
  readonly once: boolean
  readonly pool: Pick<ConnectionPool, 'all' | 'current' | 'failure' | 'forListing' | 'callerOf' | 'stateful'>
  /** Called with a client profile's listing that may have changed, before callers learn of it through `changed`. */
  examine(listing: ServerListing): void
  changed(): void
  /** Called when one caller's lists may have changed. */
  callerChanged(caller: CallerIdentity): void
}

/** How many sessions' connections are asked for their lists every time that a listing is refreshed. */
const maxPolled = 16

/** All listings of one server: one for each kind of client, and those of callers for which it lists something else. */
export class ServerListings {
  /** The listing for clients without capabilities. */
  readonly plain: ServerListing
  readonly byProfile = new Map<number, ServerListing>()
  readonly sessions: SessionListings
  readonly #options: ServerListingsOptions

  constructor(options: ServerListingsOptions) {
    this.#options = options
    this.sessions = new SessionListings({
      callerOf: (open) => options.pool.callerOf(open),
      common: (capabilities) => this.of(capabilities),
      create: (open, capabilities, onNews) => this.#sessionListing(open, capabilities, onNews),
      changed: options.callerChanged,
    })
    this.plain = this.of({})
  }

  of(capabilities: Capabilities): ServerListing {
    const profile = listProfile(capabilities)
    const known = this.byProfile.get(profile)
    if (known) return known
    const { common, store, pool } = this.#options
    const listing: ServerListing = new ServerListing(common, {
      capabilities,
      store,
      connection: () => pool.forListing(capabilities),
      current: () => pool.current(capabilities),
      unconnected: () => this.#fetchForSessions(capabilities),
      isDown: () => pool.failure !== undefined,
      onNews: () => {
        this.#options.examine(listing)
        this.sessions.commonChanged()
        this.#options.changed()
      },
    })
    this.byProfile.set(profile, listing)
    return listing
  }

  /** The listing that this caller sees: its own, if the server lists something else for it. */
  forCaller(caller: CallerIdentity): ServerListing {
    return this.sessions.of(caller) ?? this.of(caller.capabilities)
  }

  /** The entries for a kind of client, or the plain ones until the kind's listing has been fetched. */
  entriesOf(listing: ServerListing): readonly Entry[] {
    return (listing.descriptors ? listing : this.plain).entries
  }

  /**
   * The listings that a connection can fetch: all if it is stateless, else the one for its client's kind, or for its
   * caller if the server may have changed its lists for that caller.
   */
  through(open: InitializedConnection, capabilities: Capabilities): ServerListing[] {
    const { handshake, principal } = open
    // Other principals must not see a listing that was fetched with one principal's credential.
    if (principal !== undefined) return []
    const common = () => this.of(capabilities)
    const { pool } = this.#options
    // The lists of a session may differ from those that the server has in the stateless protocol.
    const isBesideStateless = handshake.era === 'legacy' && pool.current(capabilities)?.handshake.era === 'modern'
    if (isStateful(open) || isBesideStateless) {
      if (this.#isFinal(common())) return []
      const own = this.sessions.through(open, capabilities)
      if (!own && !isBesideStateless) common().outdated()
      return own ? [own] : []
    }
    const found = handshake.era === 'modern' ? [...this.byProfile.values()] : [common()]
    return found.filter((listing) => !this.#isFinal(listing))
  }

  #isFinal({ fetched, failure, missing }: ServerListing): boolean {
    return this.#options.once && fetched && !failure && missing.length === 0
  }

  /** A listing that is fetched over one session's connection. It is not stored, because it ends with the connection. */
  #sessionListing(open: InitializedConnection, capabilities: Capabilities, onNews: () => void): ServerListing {
    const { common, pool } = this.#options
    const managed = pool.all.find(({ current }) => current === open) as ManagedConnection
    return new ServerListing(common, {
      capabilities,
      store: { load: async () => undefined, save: async () => {} },
      connection: () => managed,
      current: () => (managed.current === open ? open : undefined),
      isDown: () => pool.failure !== undefined,
      onNews,
    })
  }

  /** Fetches the lists over sessions' connections, if there are no others. Returns false if there are none at all. */
  #fetchForSessions(capabilities: Capabilities): boolean {
    const stateful = this.#options.pool.stateful(capabilities).slice(-maxPolled)
    for (const open of stateful) this.sessions.through(open, capabilities)?.changed(open)
    return stateful.length > 0
  }
}
