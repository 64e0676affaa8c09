import type { Operation } from './audit.ts'
import type { Call, Caller, Capabilities, Handler } from './call.ts'
import type { ChatRequest } from './chat.ts'
import type { Definition, Entry, Kind } from './entry.ts'
import type { ErrorCode, ToolwayError } from './errors.ts'
import type { Exposure } from './exposure.ts'
import type { ArgumentRestorer } from './portable/portable-tool.ts'
import type { Result } from './result.ts'
import type { Health, ServerSummary } from './source-status.ts'
import type { Wait } from './waiting.ts'

/**
 * The only way for protocols, meta-tools, chat, programs and the CLI to reach entries. None can bypass the policy.
 * `runtime/gateway.ts` (`createAccess`) implements it.
 */
export interface Access {
  readonly handle: Handler
  /** Suggests values for one of the entry's arguments, if the policy allows the caller to call the entry. */
  readonly complete: Handler
  /** Forwards a request about something an earlier call started, such as a task, if the policy allows the entry. */
  relay(method: string, call: Call): Promise<Result>
  /**
   * Answers a chat, if the policy allows the caller to use `toolway.chat`. The answer is audited as one operation; the
   * calls that the model makes are audited on their own.
   */
  answerChat(request: ChatRequest, answer: () => Promise<void>): Promise<void>
  /**
   * The agent that a credential acts as (G7). Throws INVALID_AGENT_ID if it may not act as `asked`. If no agent is
   * asked for and no fallback is configured, the caller can still name an agent in a meta-tool's arguments.
   */
  agentOf(credential: Pick<Caller, 'agents'>, asked: string | undefined): string
  /** Records a request that was rejected before it became a call. */
  rejected(who: {
    readonly address?: string
    readonly principal?: string
    readonly asked?: string
    /** What was wrong: the refused Host or Origin, what was asked for, or why a message could not be read. */
    readonly detail?: string
    readonly malformed?: true
    readonly code: ErrorCode
  }): void
  view(caller: Caller): View
  offers(caller: Caller): Offers
  /** Calls `updated` whenever a resource in the caller's view changes, until the returned object is disposed of. */
  subscribe(caller: Caller, served: Served, updated: () => void): Promise<AsyncDisposable>
  /** Forwards a client notification (such as "roots changed") to servers with a connection for this caller alone. */
  notifyServers(caller: Caller, method: string): void
  /** Closes the server connections that only the caller's session uses. */
  sessionEnded(caller: Caller): void
  /** Calls the listener with the kinds of lists that changed: for all callers, or for one session. Calls are debounced. */
  onChange(listener: ListChangeListener): Disposable
}

export type ListChangeListener = (kinds: ReadonlySet<Kind>, session?: string) => void

export interface View {
  /** Makes servers in mode `runtime` list again for a new conversation. `ready` waits for that, except with `brief`. */
  conversationStarted?(): void
  /**
   * Waits for servers that are still starting, up to the list deadline. With `brief`, all servers get the shorter
   * deadline that otherwise applies to servers whose entries are already known. Never rejects.
   */
  ready(brief?: 'brief'): Promise<void>
  /** Waits for one server, as long as a call to it would wait. Does nothing if the server is unknown. */
  started(server: string, wait?: Wait): Promise<void>
  /** Servers missing from a list, that of tools by default, because they are starting or could not be listed. */
  missing(kind?: Kind): readonly MissingServer[]
  /** How long a client may cache this list: the shortest time that one of its servers allows; undefined if none says. */
  listTtlMs(kind: Kind): number | undefined
  /** All entries of this kind that the caller may use, in a stable order. */
  list(kind: Kind): readonly Served[]
  /** The tools listed in an exposure mode; the default is the caller's own mode. */
  shown(exposure?: Exposure): readonly Served[]
  /** The caller's own mode. With `auto`, it is chosen now, and stays for the session. */
  exposure(): Exposure
  /** One page of a list as clients see it, already serialized. Tools are listed by exposure mode. */
  page(kind: Kind, cursor?: string): Page
  /** The entry with this spelling if it is known and the only one; `resolve` says why there is none. */
  known(kind: Kind, spelling: string): Served | undefined
  /**
   * Finds an entry by any of its spellings. Waits for servers that may have the entry and are still starting. Throws
   * TOOL_NOT_FOUND or SERVER_NOT_FOUND, with similar names as suggestions.
   */
  resolve(kind: Kind, spelling: string, options?: LookupOptions): Promise<Served>
  /** Finds an entry by its server and its own name; waits and throws like `resolve`. */
  find(kind: Kind, server: string, name: string, options?: LookupOptions): Promise<Served>
  /** An entry's own name, given any spelling of it; undefined if the spelling does not name this server. */
  ownName?(kind: Kind, server: string, spelling: string): string | undefined
  /** The tools that best match a task, which may have several steps. Meta-tools are left out. */
  search(query: string, options: { limit: number; server?: string }): Promise<ToolMatches>
  /** The sources with at least one entry that the caller may use, except for the meta-tools. */
  servers(): readonly ServerSummary[]
  /** Why the caller sees no entries (of this kind) from an existing server; undefined if denials are hidden. */
  refusal(server: string, kind?: Kind): ToolwayError | undefined
  /** If denials are hidden: the reason that `refusal` would have returned, for the audit record only. */
  concealed?(server: string): ToolwayError | undefined
}

export interface LookupOptions extends Wait {
  /** What the entry is looked up for, as recorded if the lookup fails. Default: to call, read or get it. */
  readonly operation?: Operation
  /** The id of the operation that it is looked up for, as recorded if the lookup fails. */
  readonly parent?: string | undefined
}

/** A server missing from the lists, as reported in `_meta["dev.toolway/missing"]` (V2). */
export interface MissingServer {
  readonly server: string
  readonly status: Health
  readonly reason: string
}

export interface Offers {
  /** Capabilities that at least one server has (tasks, extensions). */
  readonly capabilities: Capabilities
  /** The servers' instructions for the model, joined and limited in length; may be empty. */
  readonly instructions: string
}

export interface Served {
  readonly name: string
  readonly entry: Entry
  /** The source's definition under the served name, with our `_meta` added. */
  readonly definition: Definition
  /** The URI as the source spells it; set for a resource that was found by its URI. */
  readonly uri?: string
  /** Set if the caller sees a portable form of the tool (W8). */
  readonly isPortable?: true
  /** Converts arguments for the definition into those for the entry's, if the two differ in shape. */
  readonly restore?: ArgumentRestorer | undefined
}

export interface ToolMatches {
  /** The best matches, best first, at most `limit`. */
  readonly tools: readonly Served[]
  readonly total: number
}

export interface Page {
  readonly items: Buffer
  readonly count: number
  readonly nextCursor?: string
}
