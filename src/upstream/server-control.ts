import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import type { ConnectionPool } from './connection/connection-pool.ts'
import type { ConnectionState } from './connection/pooled-connection.ts'
import type { OutputLine } from './transports/stderr.ts'
import { unsentError } from './transports/transport-errors.ts'

/**
 * Something that happened to a server's processes and connections. `started`: a process or connection was opened;
 * `lost`: it ended without being asked to, or stopped responding; `failed`: none could be opened; `idle`: Toolway closed
 * it because nobody used it; the others are an operator's actions.
 */
export interface ServerEvent {
  readonly at: number
  readonly kind: 'started' | 'lost' | 'failed' | 'idle' | 'restarted' | 'paused' | 'resumed'
  readonly pid?: number | undefined
  /** Why it happened, as a sentence; undefined if the kind says it all. */
  readonly reason?: string | undefined
  /** How many times in a row it happened for the same reason, of which `at` is the last. */
  readonly times: number
}

const maxEvents = 100
const maxEventReason = 500

/** The last events of one server in this process. An event that only repeats the last one is counted, not added. */
export class ServerHistory {
  readonly #clock: Pick<Clock, 'now'>
  readonly #events: ServerEvent[] = []

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  record(kind: ServerEvent['kind'], { pid, reason }: Pick<ServerEvent, 'pid' | 'reason'> = {}): void {
    const event = { at: this.#clock.now(), kind, pid, reason: reason?.slice(0, maxEventReason), times: 1 }
    const last = this.#events.at(-1)
    const repeats = kind === 'failed' && last?.kind === kind && last.reason === event.reason
    if (repeats) this.#events.pop()
    this.#events.push(repeats ? { ...event, times: last.times + 1 } : event)
    if (this.#events.length > maxEvents) this.#events.shift()
  }

  /** Newest first. */
  events(): readonly ServerEvent[] {
    return this.#events.toReversed()
  }
}

/** What a server does when an operator acts on it. */
interface ControlledServer {
  readonly pool: ConnectionPool
  readonly history: ServerHistory
  stderr(): readonly OutputLine[]
  /** Called when the listing or the health changed. */
  changed(): void
  /** Connects if the server is configured to connect eagerly. */
  begin(): void
  /** Called when the server is no longer paused, and after a restart. */
  resumed(): void
  /** Connects and fetches the listing. Never rejects. */
  open(): Promise<unknown>
}

interface ServerProcessState {
  readonly pid: number
  readonly startedAt: number
  /** How many times an earlier process or connection crashed, was abandoned, or was closed by an operator. */
  readonly restarts: number
}

/** Operator actions on a running server, and details that only operators may see. */
export class ServerControl {
  readonly #name: string
  readonly #server: ControlledServer
  /** Whether the server is paused: it offers nothing and rejects calls until it is resumed or restarted. */
  paused: boolean

  constructor(name: string, isPaused: boolean, server: ControlledServer) {
    this.#name = name
    this.paused = isPaused
    this.#server = server
  }

  /** Pauses the server and closes its processes and connections; resolves when they have ended. */
  async pause(): Promise<void> {
    const { pool, history } = this.#server
    this.paused = true
    history.record('paused')
    this.#server.changed()
    await pool.interrupt(turnedOff(this.#name))
  }

  resume(): void {
    this.paused = false
    this.#server.history.record('resumed')
    this.#server.changed()
    this.#server.begin()
    this.#server.resumed()
  }

  /** Closes all processes and connections and reconnects, even if the server is paused. The status shows the result. */
  async restart(): Promise<void> {
    const { pool, history } = this.#server
    history.record('restarted')
    await pool.interrupt(unsentError(this.#name, `An operator is restarting ${this.#name}.`))
    this.paused = false
    this.#server.resumed()
    await this.#server.open()
    this.#server.changed()
  }

  /** The server's process; if there are several, the one started last. */
  get process(): ServerProcessState | undefined {
    const { all, breaks: restarts } = this.#server.pool
    const running = all.flatMap(({ current, openedAt: startedAt }) => {
      const pid = current?.connection.transport.pid
      return pid === undefined || startedAt === undefined ? [] : { pid, startedAt, restarts }
    })
    return running.sort((one, other) => one.startedAt - other.startedAt).at(-1)
  }

  /** How many times a connection broke, was abandoned, or was closed by an operator. */
  get restarts(): number {
    return this.#server.pool.breaks
  }

  get connections(): number {
    return this.#server.pool.all.filter(({ current }) => current).length
  }

  /** The last lines that the server's processes, including those that have ended, wrote to stderr; redacted. */
  stderr(): readonly OutputLine[] {
    return this.#server.stderr()
  }

  /** What happened to the server's processes and connections, newest first. */
  events(): readonly ServerEvent[] {
    return this.#server.history.events()
  }

  /** The open connections, at most `limit`. */
  describe(limit: number): readonly ConnectionState[] {
    return this.#server.pool.describe(limit)
  }
}

/** The error for calls to a paused server. It must not open the breaker: the server is not at fault. */
export function turnedOff(server: string): ToolwayError {
  const sentence = `An operator has paused ${server}: ask them to enable it, or use another server.`
  return new ToolwayError('SERVER_DISABLED', sentence, { server })
}
