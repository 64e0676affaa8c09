import type { ServerConfig } from '../config/schema.ts'
import type { Call, Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Decide } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import type { SourceStatus } from '../core/source-status.ts'
import type { DescriptorStore } from '../core/stores.ts'
import type { Seal } from '../lib/seal.ts'
import type { Connector } from './connection/connect.ts'
import type { StartQueue } from './connection/reconnect.ts'
import type { ListLimits } from './listing/list-reader.ts'

export interface UpstreamServerOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly defaults: ServerDefaults
  readonly policy?: ServerPolicy
  readonly host: ServerHost
  readonly connect: Connector
  readonly clock: Clock
  readonly log: Log
}

/** Settings that apply unless the server's own configuration has others. */
export interface ServerDefaults {
  readonly timeoutMs: number
  /** Upper bound for a call's duration if its server reports progress; 10 minutes by default. */
  readonly maxTimeoutMs?: number
  readonly refreshMs: number
  readonly discovery: 'startup' | 'runtime' | 'hybrid'
  readonly listLimits?: ListLimits
  /** Interval and timeout for health checks. If absent, there are no health checks. */
  readonly health?: { readonly interval: number; readonly timeout: number }
}

export interface ServerPolicy {
  /** Whether the policy allows an entry; called again if a new connection lists a different definition of it. */
  readonly decide?: Decide
  /** Whether the policy allows a caller to use any of these entries; true if not given. */
  mayUseSome?(caller: Caller, entries: readonly Entry[]): boolean
  /** Whether a changed definition can make the policy deny a call; false by default. */
  readonly judgesDefinitions?: () => boolean
  /** Whether a text from the server, such as its title, may become part of our own tools' descriptions; yes by default. */
  isHarmless?(text: string): boolean
}

/** What the gateway does for its servers. */
export interface ServerHost {
  readonly store: DescriptorStore
  readonly seal: Seal
  /** Converts this server's URIs in the result of a call to those that its caller uses. */
  servedUris(call: Call): (uri: string) => string
  /** Removes secrets from text. */
  redact?(text: string): string
  readonly breaker?: () => BreakerCondition
  /** The queue for the first start of each process. Without it, the server starts at once. */
  readonly starts?: StartQueue
  /** Whether the server was paused under the previous configuration: a new configuration does not resume it. */
  readonly paused?: boolean
}

export interface BreakerCondition {
  readonly state: SourceStatus['breaker']
  readonly reason?: string
  readonly retryAfterMs?: number
}
