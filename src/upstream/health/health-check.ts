import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { encodeRequest } from '../requests/encode-request.ts'
import { statusOf } from '../transports/transport-errors.ts'

export interface HealthCheckOptions {
  readonly server: string
  /** The time between two checks; 0 disables them. */
  readonly intervalMs: number
  readonly timeoutMs: number
  connections(): readonly ManagedConnection[]
  healthMayHaveChanged(): void
  readonly clock: Clock
  readonly log: Log
}

interface ConnectionWatch {
  /** How many messages the connection had received when it was last checked. */
  received: number
  /** Consecutive checks without a response. */
  missed: number
  running: boolean
  degradation: string | undefined
}

/** Periodic health check for a server's open connections. It never opens a connection. */
export class HealthCheck implements Disposable {
  readonly #options: HealthCheckOptions
  #watched = new Map<InitializedConnection, ConnectionWatch>()
  #timer: Disposable | undefined
  #isOver = false
  /** Whether the server answers pings; unknown until it has answered one. Some servers never answer any. */
  #answersPing: boolean | undefined

  constructor(options: HealthCheckOptions) {
    this.#options = options
  }

  /** A problem that the last round of checks found although the server is responding. */
  get degradation(): string | undefined {
    for (const { degradation } of this.#watched.values()) if (degradation !== undefined) return degradation
    return undefined
  }

  opened(): void {
    if (!this.#timer) this.#schedule()
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#timer?.[Symbol.dispose]()
  }

  #schedule(): void {
    const { intervalMs, clock } = this.#options
    this.#timer = this.#isOver || intervalMs === 0 ? undefined : clock.after(intervalMs, () => this.#round())
  }

  #round(): void {
    this.#timer = undefined
    const connections = this.#options.connections()
    const open = connections.flatMap((managed) => (managed.current ? [[managed, managed.current] as const] : []))
    this.#watched = new Map(open.map(([, current]) => [current, this.#watched.get(current) ?? fresh()]))
    for (const [managed, current] of open) void this.#check(managed, current)
    if (open.length > 0) this.#schedule()
  }

  async #check(managed: ManagedConnection, open: InitializedConnection): Promise<void> {
    const { timeoutMs } = this.#options
    const watch = this.#watched.get(open) as ConnectionWatch
    if (watch.running) return
    const { connection } = open
    // A message since the last round proves that the server is alive.
    if (connection.received !== watch.received) return this.#record(open, undefined)
    watch.running = true
    try {
      const ms = await this.#ask(open).catch((error) => this.#askDifferently(open, error))
      // If the timeout was exceeded, this process was suspended while the response was waiting to be read.
      const isSlow = ms > timeoutMs / 2 && ms <= timeoutMs
      this.#record(open, isSlow ? `Slow: a health check took ${ms} ms.` : undefined)
    } catch (error) {
      if (managed.current !== open) return
      if (connection.received !== watch.received) this.#record(open, undefined)
      // The server responds, but with an error status. That does not count as a missed check: calls may still succeed.
      else if (statusOf(error) !== undefined && connection.transport.usable)
        this.#record(open, (error as Error).message)
      // If this process was suspended, do not count the check as missed; the next round decides.
      else if (!(error instanceof ToolwayError && error.details.late))
        this.#onMissed(managed, open, watch, ToolwayError.from(error))
    } finally {
      watch.running = false
    }
  }

  async #ask(open: InitializedConnection, method = this.#probeMethod(open)): Promise<number> {
    const { server, timeoutMs, clock } = this.#options
    const start = clock.monotonic()
    using limit = deadline(clock, timeoutMs, (late) => {
      const sentence = `${server} did not answer a health check within ${timeoutMs / 1000} s (health.timeout).`
      return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, late: late || undefined })
    })
    const spec = { method, capabilities: {}, signal: limit.signal, repeatable: true }
    try {
      await open.connection.request(encodeRequest(open, spec))
    } catch (error) {
      if (!(error instanceof ServerError)) throw error
    }
    if (method === 'ping') this.#answersPing = true
    return clock.monotonic() - start
  }

  #probeMethod(open: InitializedConnection): string {
    if (open.handshake.era === 'modern') return 'server/discover'
    return this.#answersPing === false ? (listMethod(open) ?? 'ping') : 'ping'
  }

  /** Requests a list instead of a ping, because a server that has never answered a ping may not support it. */
  async #askDifferently(open: InitializedConnection, error: unknown): Promise<number> {
    const list = listMethod(open)
    const isUnsure = open.handshake.era === 'legacy' && this.#answersPing === undefined && list !== undefined
    if (!isUnsure || !open.connection.transport.usable || statusOf(error) !== undefined) throw error
    const ms = await this.#ask(open, list)
    this.#answersPing = false
    return ms
  }

  #record(open: InitializedConnection, degradation: string | undefined): void {
    this.#watched.set(open, { received: open.connection.received, missed: 0, running: false, degradation })
    this.#options.healthMayHaveChanged()
  }

  /**
   * Handles a check that got no response. Many servers do one thing at a time, so a server that is busy with a call
   * gets as much time as that call. It counts as hung only if calls were also cancelled without a response.
   */
  #onMissed(
    managed: ManagedConnection,
    open: InitializedConnection,
    watch: ConnectionWatch,
    error: ToolwayError,
  ): void {
    const { server, log } = this.#options
    watch.missed++
    if (!managed.inUse || (watch.missed > 1 && open.connection.cancelledSinceReceived > 0)) managed.replace(error)
    else {
      log.debug({ server, missed: watch.missed }, 'no response to a health check while a call is running')
      watch.degradation = 'No response to a health check while a call is running.'
      this.#options.healthMayHaveChanged()
    }
  }
}

const listMethod = ({ handshake }: InitializedConnection): string | undefined =>
  ['tools', 'prompts', 'resources'].find((kind) => handshake.capabilities[kind] !== undefined)?.concat('/list')

const fresh = (): ConnectionWatch => ({ received: 0, missed: 0, running: false, degradation: undefined })
