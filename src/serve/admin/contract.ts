/**
 * The words of the admin API: what `/admin/api` answers with and the dashboard reads. Types alone, so that the
 * dashboard can share them; times are milliseconds since the epoch, durations milliseconds. Whatever is not a GET needs
 * the header `Toolway-Admin: 1` when the credential is the cookie, and a body, where there is one, is JSON.
 */

export type { ChatStage, ChatStreamEvent as ChatTold, ChatView } from './chat-contract.ts'

export type Health = 'healthy' | 'degraded' | 'unhealthy' | 'needs-auth' | 'starting' | 'stale' | 'disabled'
export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * GET session: who is asking, and what they may do; 401 where a credential is needed. POST session { token } answers
 * the same and sets the cookie; DELETE session ends it and answers 204.
 */
export interface SessionView {
  readonly principal: string
  readonly agent: string
  readonly authenticated: boolean
  /** Without it everything is read-only and only what the agent may use is shown. */
  readonly admin: boolean
  /** The agents that it may act as, and so may try tools as; `*` is all of them. */
  readonly agents: readonly string[] | '*'
}

/** GET overview. Who is no admin sees the calls and the servers of their own agent. */
export interface Overview {
  readonly version: string
  readonly startedAt: number
  readonly endpoint: string
  /** Whose figures these are, where several workers serve together. */
  readonly worker?: { readonly number: number; readonly of: number }
  /** Of the last minute. */
  readonly calls: Figures
  readonly inFlight: number
  readonly queued: number
  readonly sessions: number
  readonly cache: {
    readonly hits: number
    readonly misses: number
    readonly joined: number
    readonly hitRate: number | null
  }
  readonly tokens: TokenAccount
  readonly servers: Readonly<Record<Health, number>>
  readonly tools: number
  /** Those that are not closed. */
  readonly breakers: readonly { readonly server: string; readonly state: BreakerState; readonly since: number }[]
  readonly reload: ReloadView
}

/** What exposure modes cost a model's context, and what was saved (B8). */
export interface TokenAccount {
  readonly direct: number
  readonly exposed: number
  readonly saved: number
}

/** Counts and times of a stretch of time. Percentiles are null where nothing was called. */
export interface Figures {
  readonly calls: number
  readonly errors: number
  readonly denials: number
  readonly perSecond: number
  readonly averageMs: number | null
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
}

/** GET series?from=&to=: the last hour if neither is given; the charts' points, oldest first; gaps are points with no calls. */
export interface Series {
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly points: readonly (Figures & {
    readonly at: number
    readonly cacheHits: number
    readonly cacheMisses: number
  })[]
}

/** GET stats?by=agent|server|operation|tool (G9). */
export interface Stats {
  readonly by: 'agent' | 'server' | 'operation' | 'tool'
  readonly since: number
  readonly rows: readonly (Figures & { readonly name: string })[]
}

/**
 * GET servers answers an array of these. POST servers/NAME/restart, …/enable, …/disable and …/refresh have no body and
 * answer how the server is afterwards.
 */
export interface ServerView {
  readonly name: string
  readonly description: string
  readonly health: Health
  readonly reason: string
  readonly since: number
  readonly transport: 'stdio' | 'http' | 'sse' | 'in-process'
  readonly era: 'legacy' | 'modern' | null
  readonly protocolVersion: string | null
  readonly breaker: BreakerState
  readonly tools: number
  readonly latencyMs: number | null
  readonly lastError: string | null
  readonly process: { readonly pid: number; readonly startedAt: number; readonly restarts: number } | null
  readonly calls: Figures
  /** Whether POST servers/NAME/disable has turned it off until the next start. */
  readonly paused: boolean
}

/** GET servers/NAME adds what it said last. */
/** Where to sign in to a server. */
export interface SignInView {
  readonly url: string
}

export interface ServerDetail extends ServerView {
  /** The end of what it wrote to stderr, redacted; empty for servers that are not processes of ours. */
  readonly stderr: readonly string[]
}

/** GET tools?query=&server=&cursor=&limit=: in the order in which they are served. */
export interface ToolPage {
  readonly tools: readonly ToolView[]
  readonly total: number
  readonly nextCursor: string | null
}

export interface ToolView {
  /** As it is served. */
  readonly name: string
  readonly server: string
  readonly tool: string
  readonly title: string | null
  readonly description: string
  readonly access: 'read' | 'write' | 'destructive'
  readonly tokens: number
  readonly pin: 'new' | 'pinned' | 'changed' | 'quarantined' | 'off'
  readonly flags: readonly string[]
}

/** GET tools/NAME. */
export interface ToolDetail extends ToolView {
  readonly definition: Readonly<Record<string, unknown>>
  readonly agents: readonly Permission[]
  readonly calls: Figures
}

export interface Permission {
  readonly agent: string
  readonly allowed: boolean
  readonly rule: string
}

/** POST tools/NAME/call { arguments, agent? }: what the tool answered, or how the call was refused. */
export interface TryResult {
  readonly call: string
  readonly ms: number
  readonly result: Readonly<Record<string, unknown>> | null
  readonly error: { readonly code: string; readonly message: string; readonly rule?: string } | null
}

/**
 * GET calls?agent=&server=&name=&operation=&outcome=&text=&limit= answers an array of these, newest first; the `calls`
 * events of the stream hold them, too. Who is no admin sees those of their own agent.
 */
export interface CallView {
  readonly id: string
  readonly parent: string | null
  readonly at: number
  /** Null while it runs. */
  readonly ms: number | null
  readonly agent: string
  readonly principal: string
  readonly operation: string
  readonly server: string
  readonly name: string
  readonly outcome: 'running' | 'answered' | 'tool_error' | 'denied' | 'failed'
  readonly code: string | null
  readonly cache: 'hit' | 'miss' | 'joined' | null
}

/** GET calls/ID: its timeline and its record. */
export interface CallDetail extends CallView {
  readonly steps: readonly {
    readonly name: string
    /** After the call began. */
    readonly startMs: number
    readonly ms: number | null
    readonly error: string | null
  }[]
  readonly children: readonly CallView[]
  /** The two audit records, as they are on disk; null while they are not there yet. */
  readonly audit: { readonly begin: AuditRow | null; readonly end: AuditRow | null }
}

export type AuditRow = Readonly<Record<string, unknown>>

/**
 * GET audit?agent=&principal=&server=&tool=&operation=&decision=&reason=&code=&call=&parent=&from=&to=&text=&cursor=&limit=:
 * newest first, one row for each operation; names may have `*` in them.
 */
export interface AuditPage {
  readonly rows: readonly AuditRow[]
  readonly nextCursor: string | null
  /** Where PostgreSQL is configured: whether the records of all replicas were asked, or only those of this one. */
  readonly source?: 'postgres' | 'local'
  /** What PostgreSQL does not have yet of this replica; null where nobody knows how much that is. */
  readonly behind?: { readonly records: number | null; readonly seconds: number }
}

/** GET audit/chain; POST audit/chain/verify checks it anew and answers at once, with `checking`. */
export interface ChainView {
  readonly state: 'unknown' | 'checking' | 'intact' | 'broken'
  readonly checkedAt: number | null
  readonly records: number | null
  readonly problems: readonly string[]
}

/** GET agents answers an array of these. */
export interface AgentView {
  readonly name: string
  readonly inherits: string | null
  readonly expose: string
  readonly isDefault: boolean
  /** How many tools it may use. */
  readonly tools: number
  readonly tokens: TokenAccount
  readonly perMinute: number | null
  readonly concurrency: number | null
  readonly calls: Figures
}

/** GET agents/matrix?query=&server=&cursor=&limit=: may each agent use each tool. */
export interface Matrix {
  readonly agents: readonly string[]
  readonly rows: readonly { readonly server: string; readonly tool: string; readonly allowed: readonly boolean[] }[]
  readonly total: number
  readonly nextCursor: string | null
}

/** GET why?agent=&tool=: the tool in any of its spellings. */
export interface WhyView {
  readonly agent: string
  readonly server: string
  readonly tool: string
  readonly allowed: boolean
  readonly rule: string
  readonly sentence: string
  readonly considered: readonly { readonly rule: string; readonly text: string }[]
}

/** GET config. */
export interface ConfigView {
  readonly files: readonly { readonly path: string; readonly dialect: string }[]
  /** The whole configuration in force, secrets replaced. */
  readonly config: Readonly<Record<string, unknown>>
  readonly warnings: readonly string[]
  readonly reload: ReloadView
  readonly history: readonly ReloadEvent[]
}

export interface ReloadView {
  readonly attempts: number
  readonly successes: number
  readonly lastAt: number | null
  readonly lastError: string | null
}

/** One attempt to take over a changed configuration; POST config/reload makes one. */
export interface ReloadEvent {
  readonly at: number
  readonly ok: boolean
  readonly error: string | null
  /** What it changed, in words: `server memory added`, `limits.perMinute: 60 → 120`. */
  readonly changes: readonly string[]
}

/**
 * GET events: one stream of server-sent events; `event:` is the kind, `data:` the value. It begins with all of them:
 * nothing has to be fetched beside it.
 */
export interface AdminEvents {
  /** Once a second. */
  readonly overview: Overview
  /** Calls that began or ended, a few times a second, newest last; under load not every one is shown. */
  readonly calls: readonly CallView[]
  /** All of them, whenever one has changed. */
  readonly servers: readonly ServerView[]
  /** The latest, where there is one; for admins alone. */
  readonly reload: ReloadEvent
}

/** Every refusal of the API, with the HTTP status that fits. */
export interface AdminError {
  readonly error: { readonly code: string; readonly message: string }
}
