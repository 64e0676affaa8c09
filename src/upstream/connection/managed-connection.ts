import type { Call } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, endWith } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { InFlight } from '../../lib/in-flight.ts'
import { unsentError } from '../transports/transport-errors.ts'
import type { InitializedConnection } from './handshake.ts'
import type { ReconnectBackoff } from './reconnect.ts'

/** What all connections to one server have in common. */
export interface ConnectionSettings {
  readonly server: string
  readonly backoff: ReconnectBackoff
  readonly connectWithinMs: number
  /** How long a connection may be idle before it is closed; undefined if it is never closed as idle. */
  readonly idleMs: number | undefined
  readonly clock: Clock
  readonly log: Log
}

/** How one connection is opened, and what is called when something happens to it. */
export interface ConnectionEvents {
  connect(signal: AbortSignal): Promise<InitializedConnection>
  /** Waits until the server may start; the time does not count as part of connecting. */
  awaitStart?(signal: AbortSignal): Promise<Disposable> | undefined
  opening?(): void
  opened(open: InitializedConnection): void
  /** Called when the connection is closed; without an error if Toolway closed it. */
  closed(error?: ToolwayError): void
  /** Called when the connection could not be opened, or stopped responding. */
  failed(error: ToolwayError): void
  /** Called when the connection broke or was replaced. */
  broke?(open: InitializedConnection, error: ToolwayError): void
  /** Called when the connection is closed because nobody used it. */
  idle?(open: InitializedConnection): void
}

/** What uses a connection: a call, or a fetch of lists. */
export type ConnectionUser = Pick<Call, 'signal'> & Partial<Pick<Call, 'peer'>>

/** How long a call waits for a server that could not be reached at the last attempt. */
const maxReachMs = 5_000
/** How long callers are told to wait during a connection attempt, whose duration is unknown. */
const firstHintMs = 1_000

/** A connection that opens on first use, closes when idle, and reconnects. Callers share one attempt to open it. */
export class ManagedConnection implements AsyncDisposable {
  /** Open sessions that used this connection and may have state on it. It is not closed as idle until they end. */
  readonly sessions = new Set<string>()
  /** The calls on this connection, including those that are waiting for it to open. */
  readonly users = new InFlight<number, ConnectionUser>()
  #uses = 0
  lastUse: number
  readonly #settings: ConnectionSettings
  readonly #events: ConnectionEvents
  readonly #disposal = new AbortController()
  #interruption = new AbortController()
  #current: InitializedConnection | undefined
  #opening: Promise<InitializedConnection> | undefined
  #closing: Promise<void> = Promise.resolve()
  /** Broken connections that still have pending requests. */
  readonly #retired = new Set<InitializedConnection>()
  /** When each connection was opened, by the wall clock (`at`) and by the monotonic clock (`since`). */
  readonly #openings = new WeakMap<InitializedConnection, { readonly at: number; readonly since: number }>()
  #holds = 0
  #idleTimer: Disposable | undefined

  constructor(settings: ConnectionSettings, events: ConnectionEvents) {
    this.#settings = settings
    this.#events = events
    this.lastUse = settings.clock.monotonic()
  }

  /** The open connection, if any. Reading it neither connects nor counts as use. */
  get current(): InitializedConnection | undefined {
    return this.#current
  }

  get openedAt(): number | undefined {
    return this.#current && this.#openings.get(this.#current)?.at
  }

  get opening(): boolean {
    return this.#opening !== undefined
  }

  get ended(): boolean {
    return this.#disposal.signal.aborted
  }

  get inUse(): boolean {
    return this.users.size > 0
  }

  get busy(): boolean {
    return this.inUse || this.#holds > 0
  }

  async open(signal: AbortSignal): Promise<InitializedConnection> {
    return this.#usable() ?? (await this.#reach(signal))
  }

  /** Reconnects in the background. If that fails, the next call may still try at once. */
  async reopen(): Promise<InitializedConnection> {
    return this.#usable() ?? (await this.#connect(this.#events.failed))
  }

  async use<T>(user: ConnectionUser, work: (open: InitializedConnection) => Promise<T>): Promise<T> {
    const { signal } = user
    const use = ++this.#uses
    this.users.set(use, user)
    try {
      const open = this.#usable() ?? (await this.#reach(signal))
      try {
        return await work(open)
      } catch (error) {
        // Reconnect and resend at most once here; all other retries belong to the pipeline.
        if (open.connection.transport.usable || !mayBeResent(error) || signal.aborted) throw error
        return await work(this.#usable() ?? (await this.#reach(signal)))
      }
    } finally {
      this.users.take(use)
      this.lastUse = this.#settings.clock.monotonic()
    }
  }

  /** Keeps the connection from being closed as idle, until the returned object is disposed of. */
  hold(): Disposable {
    this.#holds++
    return {
      [Symbol.dispose]: () => {
        this.#holds--
        this.lastUse = this.#settings.clock.monotonic()
      },
    }
  }

  /** Replaces a connection that no longer responds. The server may have executed the calls that are pending on it. */
  replace(error: ToolwayError): void {
    const replaced = this.#current
    if (!replaced) return
    const { server, log } = this.#settings
    log.warn({ server, err: error }, 'server does not respond; replacing the connection')
    replaced.connection.abandon(error)
    void this.#close()
    this.#events.broke?.(replaced, error)
    this.#events.closed(error)
    this.#fail(error)
  }

  /** Closes the connection or cancels the attempt to open it. Resolves when that is done; the next use reconnects. */
  async interrupt(error: ToolwayError): Promise<void> {
    this.#interruption.abort(error)
    this.#interruption = new AbortController()
    await this.#opening?.catch(() => {})
    if (this.#current) {
      this.#current.connection.abandon(error)
      void this.#close()
      this.#events.closed()
    }
    await this.#closed()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { server } = this.#settings
    this.#disposal.abort(unsentError(server, `Toolway is closing its connection to ${server}.`))
    await this.#opening?.catch(() => {})
    if (this.#current) this.#events.closed()
    void this.#close()
    await this.#closed()
  }

  /** The current connection, if it is usable. If it is broken, it is retired first. */
  #usable(): InitializedConnection | undefined {
    if (this.#current && !this.#current.connection.transport.usable) {
      // The pending requests may still be answered, so close this connection and report its end later.
      this.#retired.add(this.#current)
      this.#current = undefined
      this.#idleTimer?.[Symbol.dispose]()
      this.#events.closed()
    }
    return this.#current
  }

  /** Waits for an open connection, but fails fast while the server is known to be down. */
  async #reach(signal: AbortSignal): Promise<InitializedConnection> {
    const { backoff, clock } = this.#settings
    backoff.called()
    const opening = this.#connect()
    const { failure } = backoff
    if (!failure) return await endWith(signal, opening)
    using patience = deadline(clock, maxReachMs, () => this.#unhealthy(failure, firstHintMs), signal)
    return await endWith(patience.signal, opening)
  }

  /** One attempt to connect, shared by all waiters. */
  #connect(onFailure = (error: ToolwayError) => this.#fail(error)): Promise<InitializedConnection> {
    if (this.#opening) return this.#opening
    const { failure, pauseMs, probing } = this.#settings.backoff
    // Always try after AUTH_REQUIRED: somebody may have signed in since, and checking that does not cost a request.
    if (failure && failure.code !== 'AUTH_REQUIRED' && (pauseMs > 0 || probing)) {
      return Promise.reject(this.#unhealthy(failure, Math.max(pauseMs, probing ? firstHintMs : 0)))
    }
    this.#opening = this.#attempt(onFailure).finally(() => {
      this.#opening = undefined
    })
    this.#events.opening?.()
    return this.#opening
  }

  async #attempt(onFailure: (error: ToolwayError) => void): Promise<InitializedConnection> {
    const { backoff, connectWithinMs, clock } = this.#settings
    const wanted = AbortSignal.any([this.#disposal.signal, this.#interruption.signal])
    using _ = backoff.attempt()
    try {
      const turn = this.#events.awaitStart?.(wanted)
      using _turn = turn && (await turn)
      using limit = deadline(clock, connectWithinMs, () => this.#tooSlow(), wanted)
      // Wait until the previous process has ended, because it may still hold a lock.
      await endWith(limit.signal, this.#closing)
      const open = await this.#events.connect(limit.signal)
      this.#begin(open)
      return open
    } catch (thrown) {
      const error = this.#unavailable(thrown)
      // If Toolway itself stopped the attempt, the error says nothing about the server.
      if (!wanted.aborted) onFailure(error)
      throw error
    }
  }

  #begin(open: InitializedConnection): void {
    const { backoff, clock } = this.#settings
    open.connection.onClosed = (error) => this.#lost(open, error)
    this.#current = open
    backoff.succeeded()
    this.lastUse = clock.monotonic()
    this.#openings.set(open, { at: clock.now(), since: this.lastUse })
    this.#watchIdle(this.#settings.idleMs)
    this.#events.opened(open)
  }

  #fail(error: ToolwayError): void {
    this.#settings.backoff.failed(error)
    this.#events.failed(error)
  }

  #lost(open: InitializedConnection, error: ToolwayError): void {
    const { server, backoff, clock, log } = this.#settings
    this.#events.broke?.(open, error)
    if (open.connection.transport.kind === 'stdio')
      backoff.crashed(error, clock.monotonic() - (this.#openings.get(open)?.since ?? 0))
    if (this.#retired.delete(open)) void this.#dispose(open)
    if (this.#current === open) {
      log.warn({ server, err: error }, 'connection lost; the next call reconnects')
      void this.#close()
      this.#events.closed(error)
    }
    // This failure exceeded the restart limit.
    if (backoff.failure === error) this.#events.failed(error)
  }

  #watchIdle(ms: number | undefined): void {
    if (ms === undefined) return
    const { server, idleMs = ms, clock, log } = this.#settings
    this.#idleTimer = clock.after(ms, () => {
      const rest = idleMs - (clock.monotonic() - this.lastUse)
      const hasTasks = (this.#current?.connection.tasksUntil ?? 0) > clock.monotonic()
      if (this.busy || this.sessions.size > 0 || hasTasks) return this.#watchIdle(idleMs)
      if (rest > 0) return this.#watchIdle(rest)
      log.debug({ server }, 'closed an idle connection; the next call reconnects')
      if (this.#current) this.#events.idle?.(this.#current)
      void this.#close()
      this.#events.closed()
    })
  }

  /** Closes the connection after any earlier one has closed, so that disposal can wait for a process that is ending. */
  #close(): Promise<void> {
    const open = this.#current
    this.#current = undefined
    this.#idleTimer?.[Symbol.dispose]()
    if (open) this.#closing = this.#closing.then(() => this.#dispose(open))
    return this.#closing
  }

  async #closed(): Promise<void> {
    await Promise.all([this.#closing, ...[...this.#retired].map((open) => this.#dispose(open))])
  }

  /** Closes a connection. Never rejects, so that the pool closes the other connections too. */
  async #dispose(open: InitializedConnection): Promise<void> {
    const { server, log } = this.#settings
    try {
      await open.connection[Symbol.asyncDispose]()
    } catch (error) {
      log.warn({ server, err: error }, 'could not close a connection')
    }
  }

  #unhealthy(error: ToolwayError, retryAfterMs: number): ToolwayError {
    const { server, backoff } = this.#settings
    const why = backoff.exhausted ? 'has reached its restart limit' : 'is unhealthy'
    const sentence = `${server} ${why}; next attempt in ${Math.ceil(retryAfterMs / 1000)} s. ${error.message}`
    return new ToolwayError('SERVER_UNHEALTHY', sentence, { server, retryAfterMs, cause: error })
  }

  /** The error for a failed connection attempt; `unsent`, because nothing is sent until the connection is open. */
  #unavailable(thrown: unknown): ToolwayError {
    const { server } = this.#settings
    const ours = thrown instanceof ToolwayError
    if (ours && thrown.code === 'AUTH_REQUIRED') return thrown
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return new ToolwayError('SERVER_UNAVAILABLE', ours ? why : `Could not connect to ${server}: ${why}.`, {
      ...(ours ? thrown.details : { server, cause: thrown }),
      unsent: true,
    })
  }

  #tooSlow(): ToolwayError {
    const { server, connectWithinMs } = this.#settings
    const sentence = `${server} did not finish its handshake within ${connectWithinMs / 1000} s (mcpServers.${server}.startTimeout). Check that it is running, and see its log.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server })
  }
}

/** Whether a request may be sent again: it was not sent, or its session was lost and it is safe to repeat (F12). */
const mayBeResent = (error: unknown): boolean =>
  error instanceof ToolwayError && (error.details.unsent === true || error.details.resendable === true)
