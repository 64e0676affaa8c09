import { ToolwayError } from '../core/errors.ts'
import type { Connector } from './connection/connect.ts'
import type { ConnectionPool } from './connection/connection-pool.ts'
import type { ConnectionState } from './connection/connection-table.ts'
import type { ServerEvent, ServerHistory } from './health/server-history.ts'
import type { OutputLine } from './transports/stderr.ts'
import { unsentError } from './transports/transport-errors.ts'

/** Operator actions on a running server, and details that only operators may see. */
export interface ServerControl {
  /** Whether the server is paused: it offers nothing and rejects calls until it is resumed or restarted. */
  readonly paused: boolean
  /** Pauses the server and closes its processes and connections; resolves when they have ended. */
  pause(): Promise<void>
  resume(): void
  /** Closes all processes and connections and reconnects, even if the server is paused. The status shows the result. */
  restart(): Promise<void>
  /** The server's process; if there are several, the one started last. */
  readonly process: ServerProcess | undefined
  /** How many times a connection broke, was abandoned, or was closed by an operator. */
  readonly restarts: number
  readonly connections: number
  /** The last lines that the server's processes, including those that have ended, wrote to stderr; redacted. */
  stderr(): readonly OutputLine[]
  /** What happened to the server's processes and connections, newest first. */
  events(): readonly ServerEvent[]
  /** The open connections, at most `limit`. */
  describe(limit: number): readonly ConnectionState[]
}

export interface ServerControlOptions {
  readonly server: string
  readonly paused: boolean
  readonly connect: Connector
  readonly history: ServerHistory
  pool(): ConnectionPool
  /** Called when the listing or the health changed. */
  changed(): void
  /** Connects if the server is configured to connect eagerly. */
  begin(): void
  /** Called when the server is no longer paused, and after a restart. */
  resumed(): void
  /** Connects and fetches the listing. Never rejects. */
  open(): Promise<unknown>
}

export interface PausableControl extends ServerControl {
  unlessPaused<T>(work: () => Promise<T>): Promise<T>
}

export function createServerControl(options: ServerControlOptions): PausableControl {
  const { server, pool, history, changed } = options
  let { paused } = options
  return {
    get paused() {
      return paused
    },
    async pause() {
      paused = true
      history.record('paused')
      changed()
      await pool().interrupt(turnedOff(server))
    },
    resume() {
      paused = false
      history.record('resumed')
      changed()
      options.begin()
      options.resumed()
    },
    async restart() {
      history.record('restarted')
      await pool().interrupt(unsentError(server, `An operator is restarting ${server}.`))
      paused = false
      options.resumed()
      await options.open()
      changed()
    },
    get process() {
      return processOf(pool())
    },
    get restarts() {
      return pool().breaks
    },
    get connections() {
      return pool().all.filter(({ current }) => current).length
    },
    events: history.events,
    describe: (limit) => pool().describe(limit),
    stderr: () => options.connect.stderr?.() ?? [],
    unlessPaused: (work) => (paused ? Promise.reject(turnedOff(server)) : work()),
  }
}

/** The error for calls to a paused server. It must not open the breaker: the server is not at fault. */
export function turnedOff(server: string): ToolwayError {
  const sentence = `An operator has paused ${server}: ask them to enable it, or use another server.`
  return new ToolwayError('SERVER_DISABLED', sentence, { server })
}

interface ServerProcess {
  readonly pid: number
  readonly startedAt: number
  /** How many times an earlier process or connection crashed, was abandoned, or was closed by an operator. */
  readonly restarts: number
}

function processOf({ all, breaks }: Pick<ConnectionPool, 'all' | 'breaks'>): ServerProcess | undefined {
  let latest: ServerProcess | undefined
  for (const { current, openedAt } of all) {
    const pid = current?.connection.transport.pid
    if (pid === undefined || openedAt === undefined || openedAt < (latest?.startedAt ?? 0)) continue
    latest = { pid, startedAt: openedAt, restarts: breaks }
  }
  return latest
}
