import type { Clock } from '../../core/clock.ts'
import { deadline, waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { unsentError } from '../transports/transport-errors.ts'
import type { InitializedConnection } from './handshake.ts'
import type { ReconnectBackoff } from './reconnect.ts'

/** A connection that opens on first use, closes when idle, and reconnects. Callers share one attempt to open it. */
export interface ManagedConnection extends AsyncDisposable {
  /** The open connection, if any. Reading it neither connects nor counts as use. */
  readonly current: InitializedConnection | undefined
  readonly openedAt: number | undefined
  readonly opening: boolean
  readonly ended: boolean
  open(signal: AbortSignal): Promise<InitializedConnection>
  /** Reconnects in the background. If that fails, the next call may still try at once. */
  reopen(): Promise<InitializedConnection>
  /** Replaces a connection that no longer responds. The server may have executed the calls that are pending on it. */
  replace(error: ToolwayError): void
  /** Closes the connection or cancels the attempt to open it. Resolves when that is done; the next use reconnects. */
  interrupt(error: ToolwayError): Promise<void>
  use<T>(work: (open: InitializedConnection) => Promise<T>, signal: AbortSignal): Promise<T>
  /** Keeps the connection from being closed as idle, until the returned object is disposed of. */
  hold(): Disposable
  /** Open sessions that used this connection and may have state on it. It is not closed as idle until they end. */
  readonly sessions: Set<string>
  readonly inUse: boolean
  readonly busy: boolean
}

export interface ManagedConnectionOptions {
  readonly server: string
  connect(signal: AbortSignal): Promise<InitializedConnection>
  readonly backoff: ReconnectBackoff
  readonly connectWithinMs: number
  /** How long the connection may be idle before it is closed; undefined if it is never closed as idle. */
  readonly idleMs: number | undefined
  /** Waits until the server may start; the time does not count as part of connecting. */
  awaitStart?(signal: AbortSignal): Promise<Disposable> | undefined
  opening?(): void
  opened(open: InitializedConnection): void
  /** Called when the connection is closed; without an error if Toolway closed it. */
  closed(error?: ToolwayError): void
  failed(error: ToolwayError): void
  /** Called when a connection broke or was replaced. */
  broke?(open: InitializedConnection, error: ToolwayError): void
  /** Called when a connection is closed because nobody used it. */
  idle?(open: InitializedConnection): void
  readonly clock: Clock
  readonly log: Log
}

/** How long a call waits for a server that could not be reached at the last attempt. */
const maxWaitMs = 5_000
/** How long callers are told to wait during a connection attempt, whose duration is unknown. */
const firstHintMs = 1_000

export interface ConnectionState {
  /**
   * Who uses it: all callers with the same capabilities (`shared`), one caller (`session`), one call (`call`), or nobody
   * yet (`spare`).
   */
  readonly scope: 'shared' | 'session' | 'call' | 'spare'
  readonly pid: number | undefined
  readonly openedAt: number | undefined
  /** The principal for which it was opened, if it has one. */
  readonly principal: string | undefined
  readonly sessions: number
  readonly inUse: boolean
}

export function createManagedConnection(options: ManagedConnectionOptions): ManagedConnection {
  const { server, backoff, connectWithinMs, clock, log } = options
  const disposal = new AbortController()
  /** Broken connections that still have pending requests. */
  const retired = new Set<InitializedConnection>()
  /** When each connection was opened, by the wall clock (`at`) and by the monotonic clock (`since`). */
  const openings = new WeakMap<InitializedConnection, { readonly at: number; readonly since: number }>()
  let current: InitializedConnection | undefined
  let opening: Promise<InitializedConnection> | undefined
  let interruption = new AbortController()
  const uses = { call: 0, hold: 0 }
  let lastUse = 0
  let idleTimer: Disposable | undefined
  let closing: Promise<void> = Promise.resolve()

  const managed: ManagedConnection = {
    get current() {
      return current
    },
    get openedAt() {
      return current && openings.get(current)?.at
    },
    get opening() {
      return opening !== undefined
    },
    get ended() {
      return disposal.signal.aborted
    },
    sessions: new Set(),
    open: async (signal) => usable() ?? (await reached(signal)),
    reopen: async () => usable() ?? (await opened(options.failed)),
    replace(error) {
      if (!current) return
      log.warn({ server, err: error }, 'server does not respond; replacing the connection')
      const replaced = current
      replaced.connection.abandon(error)
      void close()
      options.broke?.(replaced, error)
      options.closed(error)
      failed(error)
    },
    async interrupt(error) {
      interruption.abort(error)
      interruption = new AbortController()
      await opening?.catch(() => {})
      if (current) {
        current.connection.abandon(error)
        void close()
        options.closed()
      }
      await ended(closing)
    },
    get inUse() {
      return uses.call > 0
    },
    get busy() {
      return uses.call > 0 || uses.hold > 0
    },
    hold: () => counted('hold'),
    async use(work, signal) {
      using _ = counted('call')
      const open = usable() ?? (await reached(signal))
      try {
        return await work(open)
      } catch (error) {
        // Reconnect and resend at most once here; all other retries belong to the pipeline.
        if (open.connection.transport.usable || !mayBeResent(error) || signal.aborted) throw error
        return await work(usable() ?? (await reached(signal)))
      }
    },
    async [Symbol.asyncDispose]() {
      disposal.abort(unsentError(server, `Toolway is closing its connection to ${server}.`))
      await opening?.catch(() => {})
      if (current) options.closed()
      await ended(close())
    },
  }
  return managed

  async function ended(closed: Promise<void>): Promise<void> {
    await Promise.all([closed, ...[...retired].map(dispose)])
  }

  /** Closes a connection. Never rejects, so that the pool closes the other connections too. */
  async function dispose(open: InitializedConnection): Promise<void> {
    try {
      await open.connection[Symbol.asyncDispose]()
    } catch (error) {
      log.warn({ server, err: error }, 'could not close a connection')
    }
  }

  function counted(kind: keyof typeof uses): Disposable {
    uses[kind]++
    return {
      [Symbol.dispose]() {
        uses[kind]--
        lastUse = clock.monotonic()
      },
    }
  }

  /** The current connection, if it is usable. If it is broken, it is retired first. */
  function usable(): InitializedConnection | undefined {
    if (current && !current.connection.transport.usable) {
      // The pending requests may still be answered, so close this connection and report its end later.
      retired.add(current)
      current = undefined
      idleTimer?.[Symbol.dispose]()
      options.closed()
    }
    return current
  }

  /** Waits for an open connection, but fails fast while the server is known to be down. */
  async function reached(signal: AbortSignal): Promise<InitializedConnection> {
    backoff.called()
    const opening = opened()
    const { failure } = backoff
    if (!failure) return await waitFor(opening, signal)
    using patience = deadline(clock, maxWaitMs, () => refused(failure, firstHintMs), signal)
    return await waitFor(opening, patience.signal)
  }

  /** One attempt to connect, shared by all waiters. */
  function opened(whenFailed = failed): Promise<InitializedConnection> {
    const { failure, pauseMs, probing } = backoff
    // Always try after AUTH_REQUIRED: somebody may have signed in since, and checking that does not cost a request.
    if (failure && failure.code !== 'AUTH_REQUIRED' && !opening && (pauseMs > 0 || probing)) {
      return Promise.reject(refused(failure, Math.max(pauseMs, probing ? firstHintMs : 0)))
    }
    if (opening) return opening
    opening = attempt(whenFailed).finally(() => {
      opening = undefined
    })
    options.opening?.()
    return opening
  }

  async function attempt(whenFailed: (error: ToolwayError) => void): Promise<InitializedConnection> {
    const wanted = AbortSignal.any([disposal.signal, interruption.signal])
    using _ = backoff.attempt()
    try {
      const turn = options.awaitStart?.(wanted)
      using _turn = turn && (await turn)
      using limit = deadline(clock, connectWithinMs, tooSlow, wanted)
      // Wait until the previous process has ended, because it may still hold a lock.
      await waitFor(closing, limit.signal)
      const open = await options.connect(limit.signal)
      open.connection.onClosed = (error) => lost(open, error)
      current = open
      backoff.succeeded()
      lastUse = clock.monotonic()
      openings.set(open, { at: clock.now(), since: lastUse })
      watchIdle(options.idleMs)
      options.opened(open)
      return open
    } catch (thrown) {
      const error = unavailable(thrown)
      // If Toolway itself stopped the attempt, the error says nothing about the server.
      if (wanted.aborted) throw error
      whenFailed(error)
      throw error
    }
  }

  function failed(error: ToolwayError): void {
    backoff.failed(error)
    options.failed(error)
  }

  function lost(open: InitializedConnection, error: ToolwayError): void {
    options.broke?.(open, error)
    if (open.connection.transport.kind === 'stdio')
      backoff.crashed(error, clock.monotonic() - (openings.get(open)?.since ?? 0))
    if (retired.delete(open)) void dispose(open)
    if (current === open) {
      log.warn({ server, err: error }, 'connection lost; the next call reconnects')
      void close()
      options.closed(error)
    }
    // This failure exceeded the restart limit.
    if (backoff.failure === error) options.failed(error)
  }

  function watchIdle(ms: number | undefined): void {
    if (ms === undefined) return
    idleTimer = clock.after(ms, () => {
      const rest = (options.idleMs as number) - (clock.monotonic() - lastUse)
      const hasTasks = (current?.connection.tasksUntil ?? 0) > clock.monotonic()
      if (managed.busy || managed.sessions.size > 0 || hasTasks) return watchIdle(options.idleMs)
      if (rest > 0) return watchIdle(rest)
      log.debug({ server }, 'closed an idle connection; the next call reconnects')
      if (current) options.idle?.(current)
      void close()
      options.closed()
    })
  }

  /** Closes the connection after any earlier one has closed, so that disposal can wait for a process that is ending. */
  function close(): Promise<void> {
    const open = current
    current = undefined
    idleTimer?.[Symbol.dispose]()
    if (open) closing = closing.then(() => dispose(open))
    return closing
  }

  function refused(error: ToolwayError, retryAfterMs: number): ToolwayError {
    const why = backoff.exhausted ? 'has reached its restart limit' : 'is unhealthy'
    const sentence = `${server} ${why}; next attempt in ${Math.ceil(retryAfterMs / 1000)} s. ${error.message}`
    return new ToolwayError('SERVER_UNHEALTHY', sentence, { server, retryAfterMs, cause: error })
  }

  /** The error for a failed connection attempt; `unsent`, because nothing is sent until the connection is open. */
  function unavailable(thrown: unknown): ToolwayError {
    const ours = thrown instanceof ToolwayError
    if (ours && thrown.code === 'AUTH_REQUIRED') return thrown
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return new ToolwayError('SERVER_UNAVAILABLE', ours ? why : `Could not connect to ${server}: ${why}.`, {
      ...(ours ? thrown.details : { server, cause: thrown }),
      unsent: true,
    })
  }

  function tooSlow(): ToolwayError {
    const sentence = `${server} did not finish its handshake within ${connectWithinMs / 1000} s (mcpServers.${server}.startTimeout). Check that it is running, and see its log.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server })
  }
}

/** Whether a request may be sent again: it was not sent, or its session was lost and it is safe to repeat (F12). */
const mayBeResent = (error: unknown): boolean =>
  error instanceof ToolwayError && (error.details.unsent === true || error.details.resendable === true)

/** Describes an open connection, for the dashboard. */
export function stateOf(
  managed: ManagedConnection,
  scope: ConnectionState['scope'],
  openedFor: string | undefined,
): ConnectionState {
  const { current, openedAt, sessions, inUse } = managed
  const principal = openedFor ?? current?.principal
  return { scope, pid: current?.connection.transport.pid, openedAt, principal, sessions: sessions.size, inUse }
}

/**
 * Maximum number of connections with a single client each. A quarter is the bound for one caller, whose clients or
 * sessions might otherwise take over a server.
 */
export const maxOwned = { stdio: 256, http: 4_096, sse: 4_096 } as const
/** The maximum number of shared connections; there is one for each client profile. */
export const maxShared = 32

/** Connections by key, least recently used first. One more than `max` closes another one that nobody uses. */
export class BoundedConnections extends Map<string, ManagedConnection> {
  readonly #max: number
  readonly #mayClose: (managed: ManagedConnection) => boolean
  readonly #close: (managed: ManagedConnection) => void

  constructor(
    max: number,
    mayClose: (managed: ManagedConnection) => boolean,
    close: (managed: ManagedConnection) => void,
  ) {
    super()
    this.#max = max
    this.#mayClose = mayClose
    this.#close = close
  }

  /** Adds a connection, or marks it as the most recently used one. */
  keep(key: string, managed: ManagedConnection): void {
    this.delete(key)
    this.set(key, managed)
    if (this.size > this.#max) this.closeUnused((other) => other !== managed)
  }

  /** Whether these are fewer than `max`. If not, closes one of them, if possible. */
  hasRoom(max: number, isAmong: (managed: ManagedConnection) => boolean): boolean {
    return [...this.values()].filter(isAmong).length < max || this.closeUnused(isAmong)
  }

  /** Closes the least recently used of these connections, if possible one without a session. False if all are in use. */
  closeUnused(isAmong: (managed: ManagedConnection) => boolean): boolean {
    const unused = [...this].filter(([, managed]) => isAmong(managed) && !managed.busy && this.#mayClose(managed))
    const least = unused.find(([, { sessions }]) => sessions.size === 0) ?? unused[0]
    if (least) this.drop(...least)
    return least !== undefined
  }

  drop(key: string, managed: ManagedConnection): void {
    this.delete(key)
    this.#close(managed)
  }
}
