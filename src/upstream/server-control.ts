import { ToolwayError } from '../core/errors.ts'
import type { Connector } from './connection/connect.ts'
import type { ConnectionPool } from './connection/connection-pool.ts'

/** What an operator can do with a server while it runs, and what only they may see of it. */
export interface ServerControl {
  /** Turned off: it offers nothing and refuses calls until it is resumed or restarted. */
  readonly paused: boolean
  /** Turns it off and ends its processes and connections; settles when they have ended. */
  pause(): Promise<void>
  resume(): void
  /** Ends its processes and connections and opens it anew, turned off or not. The status tells how that went. */
  restart(): Promise<void>
  /** The process that runs for it; of several the one that was started last. */
  readonly process: ServerProcess | undefined
  /** How often what was open to it has ended by itself, was given up, or was ended by an operator. */
  readonly restarts: number
  /** Lines to it that are open now. */
  readonly connections: number
  /** The last lines that its processes wrote to stderr, without secrets; those of ended ones, too. */
  stderr(): readonly string[]
}

export interface ServerControlOptions {
  readonly server: string
  readonly paused: boolean
  readonly connect: Connector
  pool(): ConnectionPool
  /** What it offers, or how it is, is not what it was. */
  changed(): void
  /** Opens it where the configuration wants it to be open without a call. */
  begin(): void
  /** Opens it, and asks what it offers. Never rejects. */
  open(): Promise<unknown>
}

export interface PausableControl extends ServerControl {
  /** Does something that needs the server, or rejects where it is turned off. */
  unlessPaused<T>(work: () => Promise<T>): Promise<T>
}

export function createServerControl(options: ServerControlOptions): PausableControl {
  const { server, pool, changed } = options
  let { paused } = options
  return {
    get paused() {
      return paused
    },
    async pause() {
      paused = true
      changed()
      await pool().interrupt(turnedOff(server))
    },
    resume() {
      paused = false
      changed()
      options.begin()
    },
    async restart() {
      await pool().interrupt(restarted(server))
      paused = false
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
    stderr: () => options.connect.stderr?.() ?? [],
    unlessPaused: (work) => (paused ? Promise.reject(turnedOff(server)) : work()),
  }
}

/** No fault of the server, so that no breaker opens because of it, and nothing that trying again would mend. */
function turnedOff(server: string): ToolwayError {
  const sentence = `An operator has turned ${server} off: ask them to enable it, or use another server.`
  return new ToolwayError('SERVER_UNHEALTHY', sentence, { server })
}

const restarted = (server: string): ToolwayError =>
  new ToolwayError('SERVER_UNAVAILABLE', `An operator is restarting ${server}.`, { server, unsent: true })

/** A process that runs for a server. */
interface ServerProcess {
  readonly pid: number
  readonly startedAt: number
  /** How often one before it has ended by itself, was given up, or was ended by an operator. */
  readonly restarts: number
}

/** The process of the line that was opened last; none while the server sleeps, or where it runs elsewhere. */
function processOf({ all, breaks }: Pick<ConnectionPool, 'all' | 'breaks'>): ServerProcess | undefined {
  let latest: ServerProcess | undefined
  for (const { current, openedAt } of all) {
    const pid = current?.connection.transport.pid
    if (pid === undefined || openedAt === undefined || openedAt < (latest?.startedAt ?? 0)) continue
    latest = { pid, startedAt: openedAt, restarts: breaks }
  }
  return latest
}
