/** What others know and the page shows. Whatever is not handed in is not on the page. */
export interface Readings {
  /** Calls in flight and waiting for a place, in all and by server. */
  load?(): Load & { readonly servers: Readonly<Record<string, Load>> }
  servers?(): Iterable<ServerReading>
  cache?(): { readonly entries: number; readonly bytes: number; readonly evicted: number }
  /** Conversations with clients that are open. */
  sessions?(): number
  reloads?(): ReloadReading
  audit?(): AuditReading
  /** What replicas share. */
  stores?(): Iterable<StoreReading>
  /** What the tools cost a model's context, and what they would if all of them were shown (B8). */
  tokens?(): { readonly direct: number; readonly exposed: number; readonly saved: number }
}

export interface Load {
  readonly inFlight: number
  readonly queued: number
}

export interface StoreReading {
  readonly name: string
  readonly up: boolean
  /** What has been written here and is not there yet: how many records, where that is known, and for how long. */
  readonly behind?: { readonly records: number | undefined; readonly seconds: number }
}

export interface ServerReading {
  readonly name: string
  readonly health: 'healthy' | 'degraded' | 'unhealthy' | 'needs-auth' | 'starting' | 'stale' | 'disabled'
  readonly breaker: 'closed' | 'half-open' | 'open'
  /** Lines to it that are open. */
  readonly connections: number
  /** How often its process was started again. */
  readonly restarts: number
}

export interface ReloadReading {
  readonly attempts: number
  readonly successes: number
  readonly last_success_at: string | null
  /** Newest first. */
  readonly history: readonly { readonly error?: string }[]
}

export interface AuditReading {
  readonly recording: boolean
  /** How often it has stopped. */
  readonly outages: number
}
