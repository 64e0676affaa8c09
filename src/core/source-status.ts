/**
 * `needs-auth`: it is there, and somebody has to sign in before it can be used. `starting`: its first connection or
 * listing in this run is under way.
 */
export type Health = 'healthy' | 'degraded' | 'unhealthy' | 'needs-auth' | 'starting' | 'stale' | 'disabled'

export interface SourceStatus {
  readonly health: Health
  /** Why, in a sentence; empty when there is nothing to say. */
  readonly reason: string
  /** Since when, in milliseconds since the epoch. */
  readonly since: number
  readonly description: string
  readonly transport: 'stdio' | 'http' | 'sse' | 'in-process'
  readonly era?: 'legacy' | 'modern'
  readonly protocolVersion?: string
  readonly lastError?: string
  /** Mean time of its recent calls. */
  readonly latencyMs?: number
  readonly breaker: 'closed' | 'open' | 'half-open'
  /** Only the breaker holds calls back: the server is reachable, and what it offers is current. */
  readonly heldBack?: true
}

/** A source in one line: what it is called, how it is, how many tools it has. */
export interface ServerSummary {
  readonly name: string
  readonly status: SourceStatus
  readonly tools: number
}
