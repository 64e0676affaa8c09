import type { Readable, Writable } from 'node:stream'
import type { LoadedConfig } from '../config/load.ts'
import type { ConfigSource } from '../config/locate.ts'
import type { Access } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Chat } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import type { ExposureSetting } from '../core/exposure.ts'
import type { Log } from '../core/log.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { Why } from '../policy/explanation.ts'
import type { HttpServer } from '../serve/http/server.ts'
import type { ProgramAccess } from '../serve/program-access.ts'
import type { Tool } from '../tools/define-tool.ts'
import type { ReloadStatus } from './reload.ts'
import type { WorkerProcess } from './workers/worker.ts'

export interface GatewayOptions {
  readonly log: Log
  readonly clock?: Clock
  /** Loads the current configuration for a reload. Without this function, a reload applies the first one again. */
  readonly load?: () => Promise<LoadedConfig>
  /** Whether to reload automatically when a configuration file changes. If not set, only `reload` reloads. */
  readonly watch?: boolean
  /** Where `load` reads the configuration from, so that it can be edited. Without it, the admin API cannot edit it. */
  readonly source?: ConfigSource | undefined
  /** Services that the primary process provides; set if this process is a worker. */
  readonly shared?: WorkerProcess | undefined
  /** Tools created with `defineTool`. They run in this process and are served under the server name `native`. */
  readonly tools?: readonly Tool[]
  /** Writes to standard output, for the sink `stdout`. Absent if standard output is the connection to a client. */
  readonly print?: (text: string) => void
}

export interface StdioCaller {
  readonly agent?: string | undefined
  readonly expose?: ExposureSetting | undefined
  /** The name of an endpoint for a group of tools. */
  readonly endpoint?: string | undefined
}

/** A running Toolway: `Access` for calls, and the endpoints that clients connect to. */
export interface Gateway extends Access, ProgramAccess, AsyncDisposable {
  /** Chat with the models and tools in the current configuration. */
  readonly chat: Chat
  /** The current configuration; a reload replaces it. */
  readonly loaded: LoadedConfig
  /** The local user as a caller. No credential is needed. */
  readonly local: Caller
  localAs(agent: string | undefined): Caller
  /** The bearer token for HTTP clients; undefined if none is required. */
  readonly token: string | undefined
  /**
   * Says whether an agent may use a tool, and which rule decides. `tool` can be spelled in any way that a call accepts;
   * errors suggest similar names. With `authenticated: false`, rejects if callers without a credential may not act as
   * the agent.
   */
  why(agent: string, tool: string, options?: { readonly authenticated?: boolean }): Promise<Why>
  /** All servers and their health, regardless of policy. Intended for the operator. */
  servers(): readonly ServerSummary[]
  /** Refreshes all servers' lists. Settles when each refresh has succeeded or failed. */
  refresh(): Promise<void>
  /** Number of generations: the current one and older ones with calls in progress. */
  generations(): number
  reloadStatus(): ReloadStatus
  /** Reloads in all replicas. An invalid configuration changes nothing. Never rejects; the status shows failures. */
  reload(): Promise<ReloadStatus>
  listen(): Promise<HttpServer>
  /** Serves one client over stdio, until its input ends. The caller has `expose` instead of its agent's mode. */
  stdio(input: Readable, output: Writable, as?: StdioCaller): Promise<void>
}
