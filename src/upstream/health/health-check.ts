import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { encodeRequest } from '../requests/encode-request.ts'
import { statusOf } from '../transports/transport-errors.ts'

/** Periodic health check for a server's open connections. It never opens a connection. */
export interface HealthCheck extends Disposable {
  /** A problem that the last round of checks found although the server is responding. */
  readonly degradation: string | undefined
  opened(): void
}

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

interface Watch {
  /** How many messages the connection had received when it was last checked. */
  received: number
  /** Consecutive checks without a response. */
  missed: number
  running: boolean
  degradation: string | undefined
}

export function createHealthCheck(options: HealthCheckOptions): HealthCheck {
  const { server, intervalMs, timeoutMs, clock, log } = options
  let watched = new Map<InitializedConnection, Watch>()
  let timer: Disposable | undefined
  let over = false
  /** Whether the server answers pings; unknown until it has answered one. Some servers never answer any. */
  let knowsPing: boolean | undefined

  return {
    get degradation() {
      for (const { degradation } of watched.values()) if (degradation !== undefined) return degradation
      return undefined
    },
    opened() {
      if (!timer) schedule()
    },
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
    },
  }

  function schedule(): void {
    timer = over || intervalMs === 0 ? undefined : clock.after(intervalMs, round)
  }

  function round(): void {
    timer = undefined
    const open = options
      .connections()
      .flatMap((managed) => (managed.current ? [[managed, managed.current] as const] : []))
    watched = new Map(open.map(([, current]) => [current, watched.get(current) ?? fresh()]))
    for (const [managed, current] of open) void look(managed, current)
    if (open.length > 0) schedule()
  }

  async function look(managed: ManagedConnection, open: InitializedConnection): Promise<void> {
    const watch = watched.get(open) as Watch
    if (watch.running) return
    const { connection } = open
    // A message since the last round proves that the server is alive.
    if (connection.received !== watch.received) return record(open, undefined)
    watch.running = true
    try {
      const ms = await ask(open).catch((error) => askDifferently(open, error))
      // If the timeout was exceeded, this process was suspended while the response was waiting to be read.
      const isSlow = ms > timeoutMs / 2 && ms <= timeoutMs
      record(open, isSlow ? `Slow: a health check took ${ms} ms.` : undefined)
    } catch (error) {
      if (managed.current !== open) return
      if (connection.received !== watch.received) record(open, undefined)
      // The server responds, but with an error status. That does not count as a missed check: calls may still succeed.
      else if (statusOf(error) !== undefined && connection.transport.usable) record(open, (error as Error).message)
      // If this process was suspended, do not count the check as missed; the next round decides.
      else if (!(error instanceof ToolwayError && error.details.late))
        missed(managed, open, watch, ToolwayError.from(error))
    } finally {
      watch.running = false
    }
  }

  async function ask(open: InitializedConnection, method = probeMethod(open)): Promise<number> {
    const start = clock.monotonic()
    using limit = deadline(clock, timeoutMs, silent)
    try {
      await open.connection.request(
        encodeRequest(open, { method, capabilities: {}, signal: limit.signal, repeatable: true }),
      )
    } catch (error) {
      if (!(error instanceof ServerError)) throw error
    }
    if (method === 'ping') knowsPing = true
    return clock.monotonic() - start
  }

  function probeMethod(open: InitializedConnection): string {
    if (open.handshake.era === 'modern') return 'server/discover'
    return knowsPing === false ? (listOf(open) ?? 'ping') : 'ping'
  }

  /** Requests a list instead of a ping, because a server that has never answered a ping may not support it. */
  async function askDifferently(open: InitializedConnection, error: unknown): Promise<number> {
    const list = listOf(open)
    const unsure = open.handshake.era === 'legacy' && knowsPing === undefined && list !== undefined
    if (!unsure || !open.connection.transport.usable || statusOf(error) !== undefined) throw error
    const ms = await ask(open, list)
    knowsPing = false
    return ms
  }

  function record(open: InitializedConnection, degradation: string | undefined): void {
    watched.set(open, { received: open.connection.received, missed: 0, running: false, degradation })
    options.healthMayHaveChanged()
  }

  /**
   * Handles a check that got no response. Many servers do one thing at a time, so a server that is busy with a call
   * gets as much time as that call. It counts as hung only if calls were also cancelled without a response.
   */
  function missed(managed: ManagedConnection, open: InitializedConnection, watch: Watch, error: ToolwayError): void {
    watch.missed++
    if (!managed.inUse || (watch.missed > 1 && open.connection.cancelledSinceReceived > 0)) managed.replace(error)
    else {
      log.debug({ server, missed: watch.missed }, 'no response to a health check while a call is running')
      watch.degradation = 'No response to a health check while a call is running.'
      options.healthMayHaveChanged()
    }
  }

  function silent(late: boolean): ToolwayError {
    const sentence = `${server} did not answer a health check within ${timeoutMs / 1000} s (health.timeout).`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server, late: late || undefined })
  }
}

const listOf = ({ handshake }: InitializedConnection): string | undefined =>
  ['tools', 'prompts', 'resources'].find((kind) => handshake.capabilities[kind] !== undefined)?.concat('/list')

const fresh = (): Watch => ({ received: 0, missed: 0, running: false, degradation: undefined })
