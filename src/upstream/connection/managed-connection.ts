import type { Clock } from '../../core/clock.ts'
import { deadline, waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { InitializedConnection } from './handshake.ts'
import type { ReconnectBackoff } from './reconnect.ts'

/** The way to one server: opened on first use, by one attempt for all who wait, closed when idle, opened again. */
export interface ManagedConnection extends AsyncDisposable {
  /** The open line, if there is one; never opens it and does not count as use. */
  readonly current: InitializedConnection | undefined
  /** When what is open was opened. */
  readonly openedAt: number | undefined
  /** Whether an attempt to open it is under way. */
  readonly opening: boolean
  /** Whether it has been closed for good. */
  readonly ended: boolean
  open(signal: AbortSignal): Promise<InitializedConnection>
  /** Opens it again of our own accord: where that fails, the next call may still try. */
  reopen(): Promise<InitializedConnection>
  /** Gives up what is open, because it does not answer any more; what is under way on it may have run. */
  replace(error: ToolwayError): void
  /** Ends what is open or being opened, because somebody wants it so; the next use opens it anew. Settles at its end. */
  interrupt(error: ToolwayError): Promise<void>
  use<T>(work: (open: InitializedConnection) => Promise<T>, signal: AbortSignal): Promise<T>
  /** Keeps it from being closed as idle. */
  hold(): Disposable
  /** Open sessions that have used it: the server may keep something for them, so it is not idle while there are any. */
  readonly sessions: Set<string>
  /** Whether somebody uses it now. */
  readonly inUse: boolean
  /** Whether somebody uses or holds it. */
  readonly busy: boolean
}

export interface ManagedConnectionOptions {
  readonly server: string
  connect(signal: AbortSignal): Promise<InitializedConnection>
  readonly backoff: ReconnectBackoff
  readonly connectWithinMs: number
  /** Undefined: it stays open. */
  readonly idleMs: number | undefined
  /** An attempt to open it begins. */
  opening?(): void
  opened(open: InitializedConnection): void
  /** The line is down; no error when we closed it ourselves. */
  closed(error?: ToolwayError): void
  failed(error: ToolwayError): void
  /** What was open has ended by itself, or had to be given up. */
  broke?(): void
  readonly clock: Clock
  readonly log: Log
}

/** How long one waits for a server that could not be reached the last time. */
const patienceMs = 5_000
/** When to come back, where an attempt is under way and nobody knows how long it takes. */
const firstHintMs = 1_000

export function createManagedConnection(options: ManagedConnectionOptions): ManagedConnection {
  const { server, backoff, connectWithinMs, clock, log } = options
  const disposal = new AbortController()
  /** Down, but not done with what was under way. */
  const retired = new Set<InitializedConnection>()
  /** When each was opened, by the wall clock and by the monotonic one. */
  const openings = new WeakMap<InitializedConnection, { readonly at: number; readonly since: number }>()
  let current: InitializedConnection | undefined
  let opening: Promise<InitializedConnection> | undefined
  let interruption = new AbortController()
  let inUse = 0
  let held = 0
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
      const open = current
      if (!open) return
      log.warn({ server, error: error.message }, 'a server does not answer any more; its line is replaced')
      open.connection.abandon(error)
      void close()
      options.broke?.()
      options.closed(error)
      failed(error)
    },
    async interrupt(error) {
      interruption.abort(error)
      interruption = new AbortController()
      await opening?.catch(() => {})
      const open = current
      if (open) {
        open.connection.abandon(error)
        void close()
        options.closed()
      }
      await Promise.all([closing, ...[...retired].map((open) => open.connection[Symbol.asyncDispose]())])
    },
    get inUse() {
      return inUse > 0
    },
    get busy() {
      return inUse > 0 || held > 0
    },
    hold() {
      held++
      return {
        [Symbol.dispose]() {
          held--
          lastUse = clock.monotonic()
        },
      }
    },
    async use(work, signal) {
      using _ = used()
      const open = usable() ?? (await reached(signal))
      try {
        return await work(open)
      } catch (error) {
        // One new connection and one resend at most; every other retry is the pipeline's.
        if (open.connection.transport.usable || !mayBeResent(error) || signal.aborted) throw error
        return await work(usable() ?? (await reached(signal)))
      }
    },
    async [Symbol.asyncDispose]() {
      const sentence = `Toolway is closing its line to ${server}.`
      disposal.abort(new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, unsent: true }))
      await opening?.catch(() => {})
      if (current) options.closed()
      await Promise.all([close(), ...[...retired].map((open) => open.connection[Symbol.asyncDispose]())])
    },
  }
  return managed

  function used(): Disposable {
    inUse++
    return {
      [Symbol.dispose]() {
        inUse--
        lastUse = clock.monotonic()
      },
    }
  }

  /** The open line; one that is down already makes room for a new one before anybody is told. */
  function usable(): InitializedConnection | undefined {
    if (current && !current.connection.transport.usable) {
      // What is under way on it may still be answered: it ends by itself, and tells.
      retired.add(current)
      current = undefined
      idleTimer?.[Symbol.dispose]()
      options.closed()
    }
    return current
  }

  /** Who comes while the server is known to be down is not kept waiting for an attempt that will hardly succeed. */
  async function reached(signal: AbortSignal): Promise<InitializedConnection> {
    const opening = opened()
    const { failure } = backoff
    if (!failure) return await waitFor(opening, signal)
    using patience = deadline(clock, patienceMs, () => refused(failure, firstHintMs), signal)
    return await waitFor(opening, patience.signal)
  }

  /** One attempt for all: whoever needs the line while it is being opened waits for the same one. */
  function opened(whenFailed = failed): Promise<InitializedConnection> {
    const { failure, pauseMs, probing } = backoff
    // Who lacks a grant may have got one: that is seen without asking anybody.
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
    using limit = deadline(clock, connectWithinMs, tooSlow, wanted)
    using _ = backoff.attempt()
    try {
      // What the one before still holds (a lock, a profile) is free only once it has ended.
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
      // That we have closed it ourselves says nothing about the server.
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
    options.broke?.()
    if (open.connection.transport.kind === 'stdio')
      backoff.crashed(error, clock.monotonic() - (openings.get(open)?.since ?? 0))
    if (retired.delete(open)) void open.connection[Symbol.asyncDispose]()
    if (current === open) {
      log.warn({ server, error: error.message }, 'lost the line to a server; the next call opens it again')
      void close()
      options.closed(error)
    }
    // It was one crash too many.
    if (backoff.failure === error) options.failed(error)
  }

  function watchIdle(ms: number | undefined): void {
    if (ms === undefined) return
    idleTimer = clock.after(ms, () => {
      const rest = (options.idleMs as number) - (clock.monotonic() - lastUse)
      if (managed.busy || managed.sessions.size > 0) return watchIdle(options.idleMs)
      if (rest > 0) return watchIdle(rest)
      log.debug({ server }, 'closed an idle server; the next call wakes it')
      void close()
      options.closed()
    })
  }

  /** Closings queue up, so that a disposal also waits for a process that is still ending. */
  function close(): Promise<void> {
    const open = current
    current = undefined
    idleTimer?.[Symbol.dispose]()
    closing = closing.then(() => open?.connection[Symbol.asyncDispose]()).catch(() => {})
    return closing
  }

  function refused(error: ToolwayError, retryAfterMs: number): ToolwayError {
    const when = `${Math.ceil(retryAfterMs / 1000)} s`
    const why = backoff.exhausted
      ? 'has used up its restarts and is left alone; it is tried again in'
      : 'is unhealthy and is not tried again for'
    const sentence = `${server} ${why} ${when}. ${error.message}`
    return new ToolwayError('SERVER_UNHEALTHY', sentence, { server, retryAfterMs, cause: error })
  }

  /** Nothing of a caller's is sent before the line is open, whatever it was that failed. */
  function unavailable(thrown: unknown): ToolwayError {
    const ours = thrown instanceof ToolwayError
    if (ours && thrown.code === 'AUTH_REQUIRED') return thrown
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return new ToolwayError('SERVER_UNAVAILABLE', ours ? why : `Could not open a line to ${server}: ${why}.`, {
      ...(ours ? thrown.details : { server, cause: thrown }),
      unsent: true,
    })
  }

  function tooSlow(): ToolwayError {
    const sentence = `${server} did not finish its handshake within ${connectWithinMs / 1000} s (mcpServers.${server}.startTimeout). Check that it runs and look into its log.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server })
  }
}

/** Nothing of the request reached the server, or its session was forgotten and running it twice does no harm (F12). */
const mayBeResent = (error: unknown): boolean =>
  error instanceof ToolwayError && (error.details.unsent === true || error.details.resendable === true)
