import { type CallerIdentity, type Capabilities, listProfile } from '../../core/call.ts'
import type { Entry } from '../../core/entry.ts'
import type { DescriptorStore } from '../../core/stores.ts'
import type { ConnectionPool } from '../connection/connection-pool.ts'
import { type InitializedConnection, isStateful } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { type ListingSettings, ServerListing } from './server-listing.ts'
import { createSessionListings, type SessionListings } from './session-listings.ts'

/** All listings of one server: one for each client profile, and those of callers for which it lists something else. */
export interface ServerListings {
  /** The listing for clients without capabilities. */
  readonly plain: ServerListing
  readonly byProfile: ReadonlyMap<number, ServerListing>
  readonly sessions: SessionListings
  of(capabilities: Capabilities): ServerListing
  /** The listing that this caller sees: its own, if the server lists something else for it. */
  forCaller(caller: CallerIdentity): ServerListing
  /** A client profile's entries, or the plain profile's until the client profile's listing has been fetched. */
  entriesOf(listing: ServerListing): readonly Entry[]
  /**
   * The listings that a connection can fetch: all if it is stateless, else the one for its handshake's profile, or for
   * its caller if the server may have changed its lists for that caller.
   */
  through(open: InitializedConnection, capabilities: Capabilities): ServerListing[]
}

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

export function createServerListings({ common, store, pool, ...options }: ServerListingsOptions): ServerListings {
  const byProfile = new Map<number, ServerListing>()
  const sessions = createSessionListings({
    callerOf: (open) => pool.callerOf(open),
    common: of,
    create: sessionListing,
    changed: options.callerChanged,
  })
  const plain = of({})
  return {
    plain,
    byProfile,
    sessions,
    of,
    forCaller: (caller) => sessions.of(caller) ?? of(caller.capabilities),
    entriesOf: (listing) => (listing.descriptors ? listing : plain).entries,
    through(open, capabilities) {
      const { handshake, principal } = open
      // Other principals must not see a listing that was fetched with one principal's credential.
      if (principal !== undefined) return []
      // The lists of a session may differ from those that the server has in the stateless protocol.
      const isBesideStateless = handshake.era === 'legacy' && pool.current(capabilities)?.handshake.era === 'modern'
      if (isStateful(open) || isBesideStateless) {
        if (isFinal(of(capabilities))) return []
        const own = sessions.through(open, capabilities)
        if (!own && !isBesideStateless) of(capabilities).outdated()
        return own ? [own] : []
      }
      const found = handshake.era === 'modern' ? [...byProfile.values()] : [of(capabilities)]
      return found.filter((listing) => !isFinal(listing))
    },
  }

  function isDown(): boolean {
    return pool.failure !== undefined
  }

  function isFinal({ fetched, failure, missing }: ServerListing): boolean {
    return options.once && fetched && !failure && missing.length === 0
  }

  function of(capabilities: Capabilities): ServerListing {
    const profile = listProfile(capabilities)
    const known = byProfile.get(profile)
    if (known) return known
    const listing: ServerListing = new ServerListing(common, {
      capabilities,
      store,
      connection: () => pool.forListing(capabilities),
      current: () => pool.current(capabilities),
      unconnected: () => fetchForSessions(capabilities),
      isDown,
      onNews() {
        options.examine(listing)
        sessions.commonChanged()
        options.changed()
      },
    })
    byProfile.set(profile, listing)
    return listing
  }

  /** A listing that is fetched over one session's connection. It is not stored, because it ends with the connection. */
  function sessionListing(open: InitializedConnection, capabilities: Capabilities, onNews: () => void): ServerListing {
    const managed = pool.all.find(({ current }) => current === open) as ManagedConnection
    const current = () => (managed.current === open ? open : undefined)
    const unstored = { load: async () => undefined, save: async () => {} }
    return new ServerListing(common, {
      capabilities,
      store: unstored,
      connection: () => managed,
      current,
      isDown,
      onNews,
    })
  }

  /** Fetches the lists over sessions' connections, if there are no others. Returns false if there are none at all. */
  function fetchForSessions(capabilities: Capabilities): boolean {
    const stateful = pool.stateful(capabilities).slice(-maxPolled)
    for (const open of stateful) sessions.through(open, capabilities)?.changed(open)
    return stateful.length > 0
  }
}
