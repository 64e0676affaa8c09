import type { Call, Caller, Capabilities, Handler } from './call.ts'
import type { Definition, Entry, Kind } from './entry.ts'
import type { ErrorCode, ToolwayError } from './errors.ts'
import type { Result } from './result.ts'
import type { Health, ServerSummary } from './source-status.ts'
import type { Wait } from './waiting.ts'

/** All that doors, meta-tools, chat, code and the command line hold. There is no other way in, so nothing gets round it. */
export interface Access {
  /** Runs a call through the whole pipeline. */
  readonly handle: Handler
  /** Completes an argument of the call's entry, under the same decision as a call. */
  readonly complete: Handler
  /** Passes on a request about something that a call of this entry has started, under the same decision as a call. */
  relay(method: string, call: Call): Promise<Result>
  /**
   * The agent that a credential acts as (G7). Throws INVALID_AGENT_ID where it may not be the one it asks for; one
   * that asks for none and has none to fall back on can still name one in the arguments of a meta-tool.
   */
  agentOf(credential: Pick<Caller, 'agents'>, asked: string | undefined): string
  /** Somebody was turned away at a door, before anything became a call. */
  rejected(who: {
    readonly address?: string
    readonly principal?: string
    /** The agent that it asked to be. */
    readonly asked?: string
    /** What was wrong: the Host or Origin that was refused, why a message could not be read. */
    readonly detail?: string
    /** The request broke the protocol. */
    readonly malformed?: true
    readonly code: ErrorCode
  }): void
  /** What this caller may see and use. */
  view(caller: Caller): View
  /** What the servers behind the gateway offer this caller beside entries. */
  offers(caller: Caller): Offers
  /** Follows changes of a resource that the caller's view has found, until disposed of. */
  subscribe(caller: Caller, served: Served, updated: () => void): Promise<AsyncDisposable>
  /** A notification of the caller's client for the servers that have a line for it alone (roots changed). */
  notifyServers(caller: Caller, method: string): void
  /** The caller's session is over: what was kept for it alone is closed. */
  sessionEnded(caller: Caller): void
  /** Tells, debounced, which kinds of lists have changed. */
  onChange(listener: (kinds: ReadonlySet<Kind>) => void): Disposable
}

export interface View {
  /**
   * Waits for servers that are still starting, no longer than the list deadline from now; `brief`: no longer than for
   * servers of which something is remembered. Never rejects.
   */
  ready(brief?: 'brief'): Promise<void>
  /** Waits for one server as a call to it would. Does nothing for a name that is no server of this caller's. */
  started(server: string, wait?: Wait): Promise<void>
  /** The servers that the lists lack, because they are still starting or could not be listed. */
  missing(): readonly MissingServer[]
  /** Every entry of a kind that the caller may use, in a stable order. */
  list(kind: Kind): readonly Served[]
  /** The tools that a client is shown in an exposure mode; in the caller's own, if none is named. */
  shown(exposure?: Exposure): readonly Served[]
  /** One page of what a client is shown (the exposure mode decides on tools), as prepared bytes. */
  page(kind: Kind, cursor?: string): Page
  /**
   * Finds an entry by any of its spellings; throws TOOL_NOT_FOUND or SERVER_NOT_FOUND, naming near misses. Waits for
   * servers that may have it and are still starting.
   */
  resolve(kind: Kind, spelling: string, wait?: Wait): Promise<Served>
  /** Finds an entry by its server and its own name; waits and throws as `resolve` does. */
  find(kind: Kind, server: string, name: string, wait?: Wait): Promise<Served>
  /** The best tools for a task, which may have several steps. The meta-tools are not among them. */
  search(query: string, options: { limit: number; server?: string }): SearchResult
  /** The sources whose entries the caller may use; the meta-tools are not among them. */
  servers(): readonly ServerSummary[]
  /** Why the caller sees nothing (of a kind) of a server that is there; undefined where that is hidden from callers. */
  refusal(server: string, kind?: Kind): ToolwayError | undefined
  /** The same for the record alone, where it is hidden. */
  concealed?(server: string): ToolwayError | undefined
}

/** A server whose entries are not in the lists, as list results tell in `_meta["dev.toolway/missing"]` (V2). */
export interface MissingServer {
  readonly server: string
  readonly status: Health
  readonly reason: string
}

/** How an agent sees tools: all of them, the meta-tools only, both, or what code mode needs (B3). */
export type Exposure = 'direct' | 'meta' | 'both' | 'code'

export interface Offers {
  /** Server capabilities that exist because some server has them (tasks, extensions). */
  readonly capabilities: Capabilities
  /** What the servers want a model to know, joined and bounded; empty if none wants anything. */
  readonly instructions: string
}

/** An entry as callers see it. */
export interface Served {
  readonly name: string
  readonly entry: Entry
  /** The source's definition under the served name, with our `_meta` added. */
  readonly definition: Definition
  /** For a resource found by its URI: that URI, as the source spells it. */
  readonly uri?: string
}

/** What a search has found. */
export interface SearchResult {
  /** Best first, no more than were asked for. */
  readonly tools: readonly Served[]
  /** How many tools there are that fit at all. */
  readonly total: number
}

export interface Page {
  /** A JSON array of definitions. */
  readonly items: Buffer
  /** How many there are on it. */
  readonly count: number
  readonly nextCursor?: string
}
