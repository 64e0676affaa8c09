import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, never } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { asRecord } from '../../lib/is-record.ts'
import { methodNotFound } from '../../wire/message.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { encodeRequest } from './encode-request.ts'

export interface UpstreamSubscriptionsOptions {
  readonly server: string
  connectionOf(caller: Caller): ManagedConnection
  /** Called when the subscriptions changed, to update a stateless server's change stream with all of them. */
  changed(): void
  isPaused(): boolean
  readonly clock: Clock
  readonly log: Log
}

interface Subscription {
  readonly hold: Disposable
  readonly listeners: Set<() => void>
  confirmed: Promise<void>
  /** Whether a subscribe request was sent to the server. Only then is the subscription renewed. */
  isSent: boolean
}

const subscribeWithinMs = 10_000
const firstRenewalMs = 1_000
const maxRenewalMs = 30_000
/** A change stream that ends sooner than this counts as a failure. */
const stableStreamMs = 10_000

/** Resource subscriptions at one server. Callers that follow the same resource on the same connection share one. */
export class UpstreamSubscriptions implements Disposable {
  readonly #options: UpstreamSubscriptionsOptions
  readonly #byConnection = new Map<ManagedConnection, Map<string, Subscription>>()
  readonly #timers = new Map<ManagedConnection, Disposable>()
  readonly #renewals = new Set<Disposable>()

  constructor(options: UpstreamSubscriptionsOptions) {
    this.#options = options
  }

  async subscribe(caller: Caller, uri: string, listener: () => void): Promise<AsyncDisposable> {
    // Each subscription is a separate listener, even if the same function is passed twice.
    const updated = () => listener()
    const managed = this.#options.connectionOf(caller)
    const subscriptions = this.#on(managed)
    const subscription: Subscription = subscriptions.get(uri) ?? {
      hold: managed.hold(),
      listeners: new Set(),
      isSent: false,
      confirmed: managed.open(never).then((open) => {
        subscription.isSent = true
        return this.#send(open, 'resources/subscribe', uri)
      }),
    }
    subscription.listeners.add(updated)
    subscriptions.set(uri, subscription)
    try {
      await subscription.confirmed
    } catch (error) {
      await this.#release(managed, uri, updated)
      throw error
    }
    return { [Symbol.asyncDispose]: () => this.#release(managed, uri, updated) }
  }

  /** The resources that change streams should report. */
  uris(): string[] {
    return [...new Set(this.#onStreams().flatMap((subscriptions) => [...subscriptions.keys()]))]
  }

  /** Called when a resource changed, with the connection whose subscriptions that concerns, or for a change stream. */
  updated(uri: string, managed?: ManagedConnection): void {
    const concerned = managed ? [this.#byConnection.get(managed)] : this.#onStreams()
    for (const subscriptions of concerned) for (const listener of subscriptions?.get(uri)?.listeners ?? []) listener()
  }

  /** Called when a connection is open again: renews its subscriptions. */
  reopened(managed: ManagedConnection, open: InitializedConnection): void {
    for (const uri of this.#byConnection.get(managed)?.keys() ?? []) this.#renew(managed, open, uri, firstRenewalMs)
  }

  /** Called when a connection was lost: if it has subscriptions, reconnects without waiting for a call. */
  lost(managed: ManagedConnection): void {
    if (this.#byConnection.has(managed)) this.#reopenAfter(managed, firstRenewalMs)
  }

  /** Called when the server is no longer paused: reconnects for all subscriptions. */
  resumed(): void {
    for (const managed of this.#byConnection.keys()) this.#reopenAfter(managed, firstRenewalMs)
  }

  [Symbol.dispose](): void {
    this.#byConnection.clear()
    for (const timer of [...this.#timers.values(), ...this.#renewals]) timer[Symbol.dispose]()
  }

  /** Reopens a connection, with growing pauses, until it is open again or has no subscriptions left. */
  #reopenAfter(managed: ManagedConnection, pauseMs: number): void {
    const reopen = () => {
      this.#timers.delete(managed)
      const isNeeded = this.#byConnection.has(managed) && !managed.current && !managed.ended
      if (!isNeeded || this.#options.isPaused()) return
      managed.reopen().catch(() => this.#reopenAfter(managed, Math.min(pauseMs * 2, maxRenewalMs)))
    }
    this.#timers.get(managed)?.[Symbol.dispose]()
    this.#timers.set(managed, this.#options.clock.after(pauseMs, reopen))
  }

  #on(managed: ManagedConnection): Map<string, Subscription> {
    const known = this.#byConnection.get(managed) ?? new Map<string, Subscription>()
    this.#byConnection.set(managed, known)
    return known
  }

  /** The subscriptions that change streams report. A connection with a session reports its own. */
  #onStreams(): Map<string, Subscription>[] {
    return [...this.#byConnection].flatMap(([{ current }, subscriptions]) =>
      current?.handshake.era === 'legacy' ? [] : [subscriptions],
    )
  }

  async #send(open: InitializedConnection, method: string, uri: string): Promise<void> {
    if (open.handshake.era === 'modern') return this.#options.changed()
    const { server, clock } = this.#options
    using limit = deadline(clock, subscribeWithinMs, () => subscribeTimeout(server, method))
    const members = [Buffer.from(`"uri":${JSON.stringify(uri)}`)]
    await open.connection.request(encodeRequest(open, { method, members, capabilities: {}, signal: limit.signal }))
  }

  /** Subscribes again on a new connection, with growing pauses until the server accepts it. */
  #renew(managed: ManagedConnection, open: InitializedConnection, uri: string, pauseMs: number): void {
    const { server, clock, log } = this.#options
    const subscription = this.#byConnection.get(managed)?.get(uri)
    if (!subscription?.isSent || managed.current !== open) return
    subscription.confirmed = this.#send(open, 'resources/subscribe', uri)
    subscription.confirmed.catch((error) => {
      if (this.#byConnection.get(managed)?.get(uri) !== subscription || managed.current !== open) return
      const level = pauseMs === firstRenewalMs ? 'warn' : 'debug'
      log[level]({ server, uri, err: error, pauseMs }, 'could not renew a resource subscription; trying again')
      const timer = clock.after(pauseMs, () => {
        this.#renewals.delete(timer)
        this.#renew(managed, open, uri, Math.min(pauseMs * 2, maxRenewalMs))
      })
      this.#renewals.add(timer)
    })
  }

  async #release(managed: ManagedConnection, uri: string, updated: () => void): Promise<void> {
    const subscriptions = this.#byConnection.get(managed)
    const subscription = subscriptions?.get(uri)
    if (!subscription?.listeners.delete(updated) || subscription.listeners.size > 0) return
    subscriptions?.delete(uri)
    if (subscriptions?.size === 0) this.#byConnection.delete(managed)
    subscription.hold[Symbol.dispose]()
    if (managed.current) await this.#send(managed.current, 'resources/unsubscribe', uri).catch(() => {})
  }
}

function subscribeTimeout(server: string, method: string): ToolwayError {
  const sentence = `${server} did not answer ${method} within ${subscribeWithinMs / 1000} s (a fixed limit).`
  return new ToolwayError('TIMEOUT', sentence, { server })
}

interface ChangeStreamOptions {
  readonly server: string
  onStreamNotification(method: string, params: Buffer | undefined): void
  /** Called if changes may have been missed while the stream was down. */
  missed(): void
  readonly clock: Clock
  readonly log: Log
}

/** The `subscriptions/listen` stream of a stateless server, one for all callers. */
export class ChangeStream implements Disposable {
  readonly #open: InitializedConnection
  readonly #options: ChangeStreamOptions
  #uris: readonly string[] = []
  #current: AbortController | undefined
  #timer: Disposable | undefined
  #isOver = false
  #pauseMs = firstRenewalMs
  #startedAt = 0
  #isInterrupted = false

  constructor(open: InitializedConnection, options: ChangeStreamOptions) {
    this.#open = open
    this.#options = options
    this.#start()
  }

  /** Listens for changes to these resources, and for the list changes that the server declares. */
  listen(uris: readonly string[]): void {
    this.#uris = uris
    this.#timer?.[Symbol.dispose]()
    this.#start()
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#timer?.[Symbol.dispose]()
    this.#current?.abort(replacedRequest)
  }

  #start(): void {
    const { server, clock, log } = this.#options
    this.#current?.abort(replacedRequest)
    const filter = { ...listsOf(this.#open), ...(this.#uris.length > 0 && { resourceSubscriptions: this.#uris }) }
    if (this.#isOver || Object.keys(filter).length === 0) return
    const controller = new AbortController()
    const { signal } = controller
    this.#current = controller
    this.#startedAt = clock.monotonic()
    const members = [Buffer.from(`"notifications":${JSON.stringify(filter)}`)]
    const onStreamNotification = (method: string, params: Buffer | undefined) => this.#receive(method, params)
    const spec = { method: 'subscriptions/listen', members, capabilities: {}, onStreamNotification, signal }
    this.#open.connection.request(encodeRequest(this.#open, spec)).then(
      () => this.#restartLater(controller),
      (error) => {
        if (signal.aborted) return
        log.debug({ server, err: error }, 'change stream ended')
        const isUnknown = error instanceof ServerError && error.error.value.code === methodNotFound
        if (!isUnknown) this.#restartLater(controller)
      },
    )
  }

  #receive(method: string, params: Buffer | undefined): void {
    // The stream is open again, but changes during the interruption were not reported.
    if (this.#isInterrupted && method === 'notifications/subscriptions/acknowledged') {
      this.#isInterrupted = false
      this.#options.missed()
    }
    this.#options.onStreamNotification(method, params)
  }

  /** Subscribes again after a pause: the server may end the stream at any time, and does not remember subscriptions. */
  #restartLater(ended: AbortController): void {
    const { clock } = this.#options
    if (this.#isOver || ended !== this.#current) return
    this.#isInterrupted = true
    if (clock.monotonic() - this.#startedAt >= stableStreamMs) this.#pauseMs = firstRenewalMs
    this.#timer = clock.after(this.#pauseMs, () => this.#start())
    this.#pauseMs = Math.min(this.#pauseMs * 2, maxRenewalMs)
  }
}

const replacedRequest = new Error('replaced by a new subscriptions/listen request')

/** The lists for which the server announces changes. All other lists are refreshed periodically. */
function listsOf({ handshake }: InitializedConnection): Record<string, boolean> {
  const changes = (name: string) => asRecord(handshake.capabilities[name]).listChanged === true
  const changing = ['tools', 'prompts', 'resources'].filter(changes)
  return Object.fromEntries(changing.map((name) => [`${name}ListChanged`, true]))
}
