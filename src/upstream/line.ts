import type { Clock } from '../core/clock.ts'
import { deadline, waitFor } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Backoff } from './backoff.ts'
import type { OpenLine } from './introduction.ts'

/** The way to one server: opened on first use, by one attempt for all who wait, closed when idle, opened again. */
export interface Line extends AsyncDisposable {
  /** The open line, if there is one; never opens it and does not count as use. */
  readonly current: OpenLine | undefined
  /** Whether it has been closed for good. */
  readonly ended: boolean
  open(signal: AbortSignal): Promise<OpenLine>
  /** Opens it again of our own accord: where that fails, the next call may still try. */
  reopen(): Promise<OpenLine>
  use<T>(work: (open: OpenLine) => Promise<T>, signal: AbortSignal): Promise<T>
  /** Keeps it from being closed as idle. */
  hold(): Disposable
  /** Whether somebody uses it now. */
  readonly inUse: boolean
  /** Whether somebody uses or holds it. */
  readonly busy: boolean
}

export interface LineOptions {
  readonly server: string
  connect(signal: AbortSignal): Promise<OpenLine>
  readonly backoff: Backoff
  /** Undefined: it stays open. */
  readonly idleMs: number | undefined
  opened(open: OpenLine): void
  /** The line is down; no error when we closed it ourselves. */
  closed(error?: ToolwayError): void
  failed(error: ToolwayError): void
  readonly clock: Clock
  readonly log: Log
}

/** A first start may have to download a package. */
const connectWithinMs = 120_000

export function createLine(options: LineOptions): Line {
  const { server, backoff, clock, log } = options
  const disposal = new AbortController()
  /** Down, but not done with what was under way. */
  const retired = new Set<OpenLine>()
  let current: OpenLine | undefined
  let opening: Promise<OpenLine> | undefined
  let inUse = 0
  let held = 0
  let lastUse = 0
  let idleTimer: Disposable | undefined
  let closing: Promise<void> = Promise.resolve()

  const line: Line = {
    get current() {
      return current
    },
    get ended() {
      return disposal.signal.aborted
    },
    open: async (signal) => usable() ?? (await waitFor(opened(), signal)),
    reopen: async () => usable() ?? (await opened(() => {})),
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
          lastUse = clock.now()
        },
      }
    },
    async use(work, signal) {
      using _ = used()
      const open = usable() ?? (await waitFor(opened(), signal))
      try {
        return await work(open)
      } catch (error) {
        if (open.connection.transport.usable || !neverSent(error) || signal.aborted) throw error
        return await work(usable() ?? (await waitFor(opened(), signal)))
      }
    },
    async [Symbol.asyncDispose]() {
      disposal.abort(new ToolwayError('SERVER_UNAVAILABLE', `Toolway is closing its line to ${server}.`, { server }))
      await opening?.catch(() => {})
      if (current) options.closed()
      await Promise.all([close(), ...[...retired].map((open) => open.connection[Symbol.asyncDispose]())])
    },
  }
  return line

  function used(): Disposable {
    inUse++
    return {
      [Symbol.dispose]() {
        inUse--
        lastUse = clock.now()
      },
    }
  }

  /** The open line; one that is down already makes room for a new one before anybody is told. */
  function usable(): OpenLine | undefined {
    if (current && !current.connection.transport.usable) {
      // What is under way on it may still be answered: it ends by itself, and tells.
      retired.add(current)
      current = undefined
      idleTimer?.[Symbol.dispose]()
      options.closed()
    }
    return current
  }

  /** One attempt for all: whoever needs the line while it is being opened waits for the same one. */
  function opened(failed = backoff.failed): Promise<OpenLine> {
    const { failure, pauseMs } = backoff
    if (failure && pauseMs > 0 && !opening) return Promise.reject(refused(failure, pauseMs))
    opening ??= attempt(failed).finally(() => {
      opening = undefined
    })
    return opening
  }

  async function attempt(failed: (error: ToolwayError) => void): Promise<OpenLine> {
    using limit = deadline(clock, connectWithinMs, tooSlow, disposal.signal)
    try {
      disposal.signal.throwIfAborted()
      const open = await options.connect(limit.signal)
      open.connection.onClosed = (error) => lost(open, error)
      current = open
      backoff.succeeded()
      lastUse = clock.now()
      watchIdle(options.idleMs)
      options.opened(open)
      return open
    } catch (thrown) {
      const error = unavailable(thrown)
      // That we have closed it ourselves says nothing about the server.
      if (disposal.signal.aborted) throw error
      failed(error)
      options.failed(error)
      throw error
    }
  }

  function lost(open: OpenLine, error: ToolwayError): void {
    if (retired.delete(open)) void open.connection[Symbol.asyncDispose]()
    if (current !== open) return
    log.warn({ server, error: error.message }, 'lost the line to a server; the next call opens it again')
    void close()
    options.closed(error)
  }

  function watchIdle(ms: number | undefined): void {
    if (ms === undefined) return
    idleTimer = clock.after(ms, () => {
      const rest = (options.idleMs as number) - (clock.now() - lastUse)
      if (line.busy) return watchIdle(options.idleMs)
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
    const sentence = `${server} is unhealthy and is not tried again for ${Math.ceil(retryAfterMs / 1000)} s. ${error.message}`
    return new ToolwayError('SERVER_UNHEALTHY', sentence, { server, retryAfterMs, cause: error })
  }

  function unavailable(thrown: unknown): ToolwayError {
    if (thrown instanceof ToolwayError) return thrown
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return new ToolwayError('SERVER_UNAVAILABLE', `Could not open a line to ${server}: ${why}.`, {
      server,
      cause: thrown,
    })
  }

  function tooSlow(): ToolwayError {
    const sentence = `${server} did not finish its handshake within ${connectWithinMs / 1000} s. Run its command by hand to see why.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server })
  }
}

/** Nothing of the call reached the server, so that it may be sent again whatever it does (F12). */
const neverSent = (error: unknown): boolean => error instanceof ToolwayError && error.code === 'SERVER_UNAVAILABLE'
