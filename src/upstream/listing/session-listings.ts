import { type Caller, type CallerIdentity, type Capabilities, clientKey, hasShare } from '../../core/call.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import { listDigest, type ServerListing } from './server-listing.ts'

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

/**
 * The listings of callers that have connections for themselves. A server may change its lists for one caller, for
 * example if that caller enables a set of tools or creates a resource; no other caller sees that (G3, W1).
 */
export class SessionListings implements AsyncDisposable {
  readonly #options: SessionListingsOptions
  readonly #byCaller = new Map<string, SessionListing>()
  readonly #closing = new Set<Promise<void>>()

  constructor(options: SessionListingsOptions) {
    this.#options = options
  }

  /** The caller's listing, if it differs from the one that all clients of its kind see. */
  of(caller: CallerIdentity): ServerListing | undefined {
    const own = this.#byCaller.size > 0 ? this.#byCaller.get(clientKey(caller)) : undefined
    return own && this.#differs(own) ? own.listing : undefined
  }

  /** The listing to fetch over a caller's connection. Undefined if that connection no longer belongs to a caller. */
  through(open: InitializedConnection, capabilities: Capabilities): ServerListing | undefined {
    const owner = this.#options.callerOf(open)
    if (!owner) return undefined
    const caller = { ...owner, capabilities }
    const key = clientKey(caller)
    const known = this.#byCaller.get(key)
    if (known?.open === open) return known.listing
    if (known) this.#remove(key, known)
    this.#makeRoomFor(caller)
    const listing = this.#options.create(open, capabilities, () => this.#onNews(key, open))
    this.#byCaller.set(key, { caller, open, listing })
    return listing
  }

  /** Forgets the listings of connections that have been closed. */
  connectionClosed(): void {
    for (const [key, own] of this.#byCaller) if (!this.#options.callerOf(own.open)) this.#remove(key, own)
  }

  /** Forgets the listings that no longer differ from the common one. */
  commonChanged(): void {
    for (const [key, own] of this.#byCaller)
      if (!this.#differs(own) && !own.listing.fetching) this.#removeCommon(key, own)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { listing } of this.#byCaller.values()) this.#end(listing)
    this.#byCaller.clear()
    await Promise.all(this.#closing)
  }

  #differs({ listing, caller: { capabilities } }: SessionListing): boolean {
    if (!listing.descriptors) return false
    return listDigest(listing.entries) !== listDigest(this.#options.common(capabilities).entries)
  }

  /** Called when a listing was fetched. If it is the common one, it is not kept. */
  #onNews(key: string, open: InitializedConnection): void {
    const own = this.#byCaller.get(key)
    if (own?.open !== open) return
    if (!this.#differs(own)) {
      this.#removeCommon(key, own)
      return
    }
    // The change may concern everybody.
    this.#options.common(own.caller.capabilities).outdated()
    this.#options.changed(own.caller)
    this.#removeLargest()
  }

  /** Forgets a listing that is the common one, unless it is about to be fetched again. */
  #removeCommon(key: string, own: SessionListing): void {
    if (!own.listing.behind) this.#remove(key, own)
  }

  #removeLargest(): void {
    let bytes = [...this.#byCaller.values()].reduce((sum, { listing }) => sum + listing.bytes, 0)
    const largestFirst = [...this.#byCaller].sort(([, one], [, other]) => other.listing.bytes - one.listing.bytes)
    for (const [key, own] of largestFirst) {
      if (bytes <= maxBytes) return
      bytes -= own.listing.bytes
      this.#remove(key, own)
    }
  }

  #makeRoomFor(newcomer: Caller): void {
    const all = [...this.#byCaller]
    const same = hasShare(newcomer) ? all.filter(([, { caller }]) => caller.principal === newcomer.principal) : []
    const [oldest] = same.length >= maxPerPrincipal ? same : all.length >= maxListings ? all : []
    if (oldest) this.#remove(...oldest)
  }

  #remove(key: string, { listing, caller }: SessionListing): void {
    this.#byCaller.delete(key)
    this.#end(listing)
    this.#options.changed(caller)
  }

  #end(listing: ServerListing): void {
    const ended: Promise<void> = listing[Symbol.asyncDispose]().then(() => void this.#closing.delete(ended))
    this.#closing.add(ended)
  }
}
