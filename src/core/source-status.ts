/** `needs-auth`: a user must sign in. `starting`: the first connection or listing in this run is in progress. */
export type Health = 'healthy' | 'degraded' | 'unhealthy' | 'needs-auth' | 'starting' | 'stale' | 'disabled'

export interface SourceStatus {
  readonly health: Health
  /** The reason for this health as a sentence; may be empty. */
  readonly reason: string
  /** When this health state began, in milliseconds since the epoch. */
  readonly since: number
  readonly description: string
  readonly transport: 'stdio' | 'http' | 'sse' | 'in-process'
  readonly era?: 'legacy' | 'modern'
  readonly protocolVersion?: string
  readonly lastError?: string
  readonly latencyMs?: number
  readonly breaker: 'closed' | 'open' | 'half-open'
  /** Set if only the circuit breaker blocks calls: the server is reachable and its listing is current. */
  readonly heldBack?: true
}

export interface ServerSummary {
  readonly name: string
  readonly status: SourceStatus
  readonly tools: number
}
