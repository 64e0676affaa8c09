import type { Call, Capabilities } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, endWith } from '../../core/deadline.ts'
import { type Decide, refusalOf } from '../../core/decision.ts'
import type { Log } from '../../core/log.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { ServerListings } from './server-listings.ts'

interface ConnectionListsOptions {
  readonly server: string
  readonly listings: ServerListings
  readonly decide: Decide | undefined
  /** Whether a changed definition can make the policy deny a call. */
  judgesDefinitions(): boolean
  readonly clock: Clock
  readonly log: Log
}

/** How long a call waits for a new connection's lists. */
const listedWithinMs = 10_000

/** Fetches the lists of new connections, which calls on them wait for, so that a changed definition is noticed (B5). */
export class ConnectionLists {
  readonly #options: ConnectionListsOptions
  /** The connections whose lists are still being fetched. */
  readonly #fetching = new WeakMap<InitializedConnection, Promise<unknown>>()
  /** The transport's `gaps` when a connection's lists were last fetched. */
  readonly #gaps = new WeakMap<InitializedConnection, number>()

  constructor(options: ConnectionListsOptions) {
    this.#options = options
  }

  /** Fetches the lists again. All calls that arrive in the meantime share one fetch. */
  fetch(open: InitializedConnection, capabilities: Capabilities): Promise<unknown> | undefined {
    const listings = this.#options.listings.through(open, capabilities)
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
    const fetching =
      this.#fetching.get(open) ?? (this.#mayBeReplaced(open) ? this.fetch(open, call.caller.capabilities) : undefined)
    return fetching && this.#check(fetching, call)
  }

  /** Whether another program may have replaced an HTTP server since the policy evaluated its definitions. */
  #mayBeReplaced(open: InitializedConnection): boolean {
    const { gaps } = open.connection.transport
    return gaps !== undefined && gaps !== this.#gaps.get(open) && this.#options.judgesDefinitions()
  }

  async #check(fetching: Promise<unknown>, { caller, entry, signal }: Call): Promise<void> {
    const { server, listings, decide, clock, log } = this.#options
    using patience = deadline(clock, listedWithinMs, () => new Error('listing timed out'), signal)
    await endWith(patience.signal, fetching).catch((error) => {
      signal.throwIfAborted()
      log.debug({ server, err: error }, 'calling a tool whose definition could not be rechecked')
    })
    const isSame = ({ kind, name }: typeof entry) => kind === entry.kind && name === entry.name
    const current = listings.entriesOf(listings.forCaller(caller)).find(isSame)
    const decision = current && current !== entry ? decide?.(caller, current) : undefined
    if (decision && !decision.allowed) throw refusalOf(decision, server)
  }
}
