/** `needs-auth`: a user must sign in. `starting`: the first connection or listing in this run is in progress. */
export type Health = 'healthy' | 'degraded' | 'unhealthy' | 'needs-auth' | 'starting' | 'stale' | 'disabled'

/** Whether a server in this state needs attention. The one definition for menus, pages, inboxes and the doctor. */
export const isUnhealthy = (health: Health): boolean =>
  health === 'unhealthy' || health === 'needs-auth' || health === 'degraded'

/** Whether a server in this state has not answered since its gateway started. */
export const isSilent = (health: Health): boolean => health === 'stale' || health === 'starting'

/** What a server sent beyond a limit or in an invalid form. docs/operations/limits.md lists them. */
export const serverFindingKinds = [
  'too-many-entries',
  'too-many-pages',
  'large-list',
  'large-definition',
  'long-text',
  'malformed-definition',
  'malformed-member',
  'repeated-cursor',
  'long-cursor',
  'malformed-cursor',
  'large-handshake',
  'malformed-handshake',
  'large-message',
  'deep-nesting',
  'too-many-blocks',
  'too-many-values',
  'flood',
  'unusable-response',
  'stray-output',
] as const

export type ServerFindingKind = (typeof serverFindingKinds)[number]

/** Something that a server sent and that Toolway shortened, left out or refused. */
export interface ServerFinding {
  readonly kind: ServerFindingKind
  /** The MCP method whose result it is about, such as `tools/list`, if known. */
  readonly method?: string
  /** A sentence with the numbers and names. */
  readonly message: string
  /** How many entries, texts or results were shortened, left out or refused, if known. */
  readonly count?: number
  /** The limit that was exceeded, and the setting that changes it; a limit without a setting is fixed. */
  readonly limit?: number
  readonly setting?: string
}

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
  /** What Toolway shortened, left out or refused; absent if nothing. */
  readonly findings?: readonly ServerFinding[]
}

export interface ServerSummary {
  readonly name: string
  readonly status: SourceStatus
  readonly tools: number
}
