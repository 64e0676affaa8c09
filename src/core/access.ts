import type { Call, Caller, Capabilities, Handler } from './call.ts'
import type { Definition, Entry, Kind } from './entry.ts'
import type { ErrorCode, ToolwayError } from './errors.ts'
import type { Result } from './result.ts'
import type { Health, ServerSummary } from './source-status.ts'
import type { Wait } from './waiting.ts'

/** The only way in for inbound protocols, meta-tools, chat, code and the command line: nothing bypasses policy. */
export interface Access {
  readonly handle: Handler
  /** Completes an argument of the entry, under the same decision as a call. */
  readonly complete: Handler
  /** Forwards a request about something that a call of this entry started, under the same decision as a call. */
  relay(method: string, call: Call): Promise<Result>
  /**
   * The agent that a credential acts as (G7). Throws INVALID_AGENT_ID if it may not act as the one it asks for. Without
   * a request and a fallback, a caller can still name an agent in the arguments of a meta-tool.
   */
  agentOf(credential: Pick<Caller, 'agents'>, asked: string | undefined): string
  /** Records a request that was rejected before it became a call. */
  rejected(who: {
    readonly address?: string
    readonly principal?: string
    readonly asked?: string
    /** What was wrong: the refused Host or Origin, why a message could not be read. */
    readonly detail?: string
    readonly malformed?: true
    readonly code: ErrorCode
  }): void
  view(caller: Caller): View
  offers(caller: Caller): Offers
  /** Follows changes of a resource found in the caller's view, until disposed of. */
  subscribe(caller: Caller, served: Served, updated: () => void): Promise<AsyncDisposable>
  /** Forwards a client notification (roots changed) to servers that have a connection for this caller alone. */
  notifyServers(caller: Caller, method: string): void
  /** Closes what was kept for the caller's session. */
  sessionEnded(caller: Caller): void
  /** Reports, debounced, which kinds of lists changed. */
  onChange(listener: (kinds: ReadonlySet<Kind>) => void): Disposable
}

export interface View {
  /** Waits for starting servers up to the list deadline; `brief`: up to that for remembered servers. Never rejects. */
  ready(brief?: 'brief'): Promise<void>
  /** Waits for one server as a call to it would. Does nothing for unknown servers. */
  started(server: string, wait?: Wait): Promise<void>
  /** Servers missing from the lists, because they are starting or could not be listed. */
  missing(): readonly MissingServer[]
  /** Every entry of a kind that the caller may use, in a stable order. */
  list(kind: Kind): readonly Served[]
  /** The tools listed in an exposure mode; defaults to the caller's own. */
  shown(exposure?: Exposure): readonly Served[]
  /** One page of what a client is shown (for tools, by exposure mode), already serialized. */
  page(kind: Kind, cursor?: string): Page
  /**
   * Finds an entry by any of its spellings. Waits for servers that may have it and are still starting. Throws
   * TOOL_NOT_FOUND or SERVER_NOT_FOUND, with near misses.
   */
  resolve(kind: Kind, spelling: string, wait?: Wait): Promise<Served>
  /** Finds an entry by its server and its own name; waits and throws like `resolve`. */
  find(kind: Kind, server: string, name: string, wait?: Wait): Promise<Served>
  /** The best tools for a task, which may have several steps; without the meta-tools. */
  search(query: string, options: { limit: number; server?: string }): SearchResult
  /** The sources whose entries the caller may use; without the meta-tools. */
  servers(): readonly ServerSummary[]
  /** Why the caller sees nothing (of a kind) of an existing server; undefined if denials are hidden. */
  refusal(server: string, kind?: Kind): ToolwayError | undefined
  /** The same for the audit record only, if denials are hidden. */
  concealed?(server: string): ToolwayError | undefined
}

/** A server missing from the lists, as reported in `_meta["dev.toolway/missing"]` (V2). */
export interface MissingServer {
  readonly server: string
  readonly status: Health
  readonly reason: string
}

/** How an agent sees tools: all, the meta-tools only, both, or those of code mode (B3). */
export type Exposure = 'direct' | 'meta' | 'both' | 'code'

export interface Offers {
  /** Capabilities that exist because some server has them (tasks, extensions). */
  readonly capabilities: Capabilities
  /** The servers' instructions for the model, joined and bounded; may be empty. */
  readonly instructions: string
}

export interface Served {
  readonly name: string
  readonly entry: Entry
  /** The source's definition under the served name, with our `_meta` added. */
  readonly definition: Definition
  /** For a resource found by its URI, as the source spells it. */
  readonly uri?: string
}

export interface SearchResult {
  /** Best first, at most `limit`. */
  readonly tools: readonly Served[]
  readonly total: number
}

export interface Page {
  readonly items: Buffer
  readonly count: number
  readonly nextCursor?: string
}
