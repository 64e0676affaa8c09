import { type Caller, type CallerIdentity, type Capabilities, clientKey, hasShare } from '../../core/call.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import { listDigest, type ServerListing } from './server-listing.ts'

/**
 * The listings of callers that have connections for themselves. A server may change its lists for one caller, for
 * example if that caller enables a set of tools or creates a resource; no other caller sees that (G3, W1).
 */
export interface SessionListings extends AsyncDisposable {
  /** The caller's listing, if it differs from the one that all clients with its capabilities see. */
  of(caller: CallerIdentity): ServerListing | undefined
  /** The listing to fetch over a caller's connection. Undefined if that connection no longer belongs to a caller. */
  through(open: InitializedConnection, capabilities: Capabilities): ServerListing | undefined
  /** Forgets the listings of connections that have been closed. */
  connectionClosed(): void
  /** Forgets the listings that no longer differ from the common one. */
  commonChanged(): void
}

export interface SessionListingsOptions {
  callerOf(open: InitializedConnection): Caller | undefined
  /** The listing that all clients with these capabilities see. */
  common(capabilities: Capabilities): ServerListing
  /** Creates a listing that is fetched over this connection and is not stored. */
  create(open: InitializedConnection, capabilities: Capabilities, news: () => void): ServerListing
  /** Called when the caller's lists may have changed. */
  changed(caller: CallerIdentity): void
}

interface SessionListing {
  readonly caller: Caller
  readonly open: InitializedConnection
  readonly listing: ServerListing
}

/** The maximum number of callers with their own listing, of all and of one principal. Others see the common listing. */
const maxListings = 256
const maxPerPrincipal = 64
/** Max size of these listings together. Beyond it, the callers with the largest listings see the common one. */
const maxBytes = 64 * 1024 * 1024

export function createSessionListings(options: SessionListingsOptions): SessionListings {
  const kept = new Map<string, SessionListing>()
  const closing = new Set<Promise<void>>()

  return {
    of(caller) {
      const own = kept.size > 0 ? kept.get(clientKey(caller)) : undefined
      return own && differs(own) ? own.listing : undefined
    },
    through(open, capabilities) {
      const owner = options.callerOf(open)
      if (!owner) return undefined
      const caller = { ...owner, capabilities }
      const key = clientKey(caller)
      const known = kept.get(key)
      if (known?.open === open) return known.listing
      if (known) remove(key, known)
      makeRoomFor(caller)
      const listing = options.create(open, capabilities, () => news(key, open))
      kept.set(key, { caller, open, listing })
      return listing
    },
    connectionClosed() {
      for (const [key, own] of kept) if (!options.callerOf(own.open)) remove(key, own)
    },
    commonChanged() {
      for (const [key, own] of kept) if (!differs(own) && !own.listing.fetching) forgetCommon(key, own)
    },
    async [Symbol.asyncDispose]() {
      for (const { listing } of kept.values()) end(listing)
      kept.clear()
      await Promise.all(closing)
    },
  }

  function differs({ listing, caller: { capabilities } }: SessionListing): boolean {
    if (!listing.descriptors) return false
    return listDigest(listing.entries) !== listDigest(options.common(capabilities).entries)
  }

  /** Called when a listing was fetched. If it is the common one, it is not kept. */
  function news(key: string, open: InitializedConnection): void {
    const own = kept.get(key)
    if (own?.open !== open) return
    if (!differs(own)) {
      forgetCommon(key, own)
      return
    }
    // The change may concern everybody.
    options.common(own.caller.capabilities).outdated()
    options.changed(own.caller)
    forgetLargest()
  }

  /** Forgets a listing that is the common one, unless it is about to be fetched again. */
  function forgetCommon(key: string, own: SessionListing): void {
    if (!own.listing.behind) remove(key, own)
  }

  function forgetLargest(): void {
    let bytes = [...kept.values()].reduce((sum, { listing }) => sum + listing.bytes, 0)
    const largestFirst = [...kept].sort(([, one], [, other]) => other.listing.bytes - one.listing.bytes)
    for (const [key, own] of largestFirst) {
      if (bytes <= maxBytes) return
      bytes -= own.listing.bytes
      remove(key, own)
    }
  }

  function makeRoomFor(newcomer: Caller): void {
    const isOwn = ({ caller }: SessionListing) => caller.principal === newcomer.principal
    const same = hasShare(newcomer) ? [...kept].filter(([, own]) => isOwn(own)) : []
    const [oldest] = same.length >= maxPerPrincipal ? same : kept.size >= maxListings ? kept : []
    if (oldest) remove(...oldest)
  }

  function remove(key: string, { listing, caller }: SessionListing): void {
    kept.delete(key)
    end(listing)
    options.changed(caller)
  }

  function end(listing: ServerListing): void {
    const ended = Promise.resolve(listing[Symbol.asyncDispose]()).then(() => void closing.delete(ended))
    closing.add(ended)
  }
}
