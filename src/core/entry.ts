import type { Call, Caller, Handler } from './call.ts'
import type { Result } from './result.ts'
import type { ServerSummary } from './source-status.ts'

export type Kind = 'tool' | 'resource' | 'template' | 'prompt'

/** One callable thing, wherever it comes from. */
export interface Entry {
  readonly kind: Kind
  /** The name of its source: an MCP server, or `native`, `toolway`, `sink`. */
  readonly server: string
  /** As its source spells it: a tool's or prompt's name, a URI, a URI template. */
  readonly name: string
  /**
   * Other names that it goes by. It is one entry all the same: audit and limits know it by `name`, and a rule that is
   * about any of its names is about it.
   */
  readonly aliases?: readonly string[]
  /** As its source described it, without hidden characters. */
  readonly definition: Definition
  /** With them, where there were any: what is pinned and scanned. */
  readonly verbatim?: Definition
  /** Its input schema with `Numeral`s, where that has numbers that a double cannot hold: arguments are checked by it. */
  readonly exactSchema?: Readonly<Record<string, unknown>>
  readonly traits: Traits
  /** Its description for callers that see these servers, where it tells of them; `name` is the one it is listed by. */
  descriptionFor?(servers: readonly ServerSummary[], name: string): string
  /** It refuses arguments that do not fit by itself, and says more about them than a schema could. */
  readonly checksItself?: true
  readonly run: Handler
  /** Completes one of its arguments, for prompts and templates whose source can. */
  readonly complete?: Handler
  /** Follows changes of a resource, named as its source spells it, until disposed of. */
  subscribe?(caller: Caller, uri: string, updated: () => void): Promise<AsyncDisposable>
  /** Passes on a request about something that a call has started, such as a task; the params are `input.rest`. */
  relay?(method: string, call: Call): Promise<Result>
}

export interface Definition {
  readonly description?: string
  readonly inputSchema?: Readonly<Record<string, unknown>>
  readonly _meta?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** What the operator knows about an entry; a server's own annotations count only where they are trusted. */
export interface Traits {
  readonly readOnly: boolean
  readonly idempotent: boolean
  readonly timeoutMs: number
  /** The setting that the timeout comes from, for the error that names it. */
  readonly timeoutKey?: string | undefined
  /** How long a call may take in all while its server reports progress, and the setting for that. */
  readonly maxTimeout?: { readonly ms: number; readonly key: string } | undefined
  /** It does nothing but run other calls, each of which meets every decision and limit itself. */
  readonly carries?: true
}
