import type { Call, Caller, Handler } from './call.ts'
import type { Result } from './result.ts'
import type { ServerSummary } from './source-status.ts'

export type Kind = 'tool' | 'resource' | 'template' | 'prompt'

export interface Entry {
  readonly kind: Kind
  /** The source: an MCP server, or `native`, `toolway`, `sink`. */
  readonly server: string
  /** As its source spells it: the name of a tool or prompt, a URI, a URI template. */
  readonly name: string
  /** Other names of the same entry. Audit and limits use `name`; a rule for any of the names applies. */
  readonly aliases?: readonly string[]
  /** The source's definition without hidden characters. */
  readonly definition: Definition
  /** The definition with hidden characters, if it had any; pinned and scanned. */
  readonly verbatim?: Definition
  /** The input schema with `Numeral`s, if it has numbers that a double cannot hold; used for validation. */
  readonly exactSchema?: Readonly<Record<string, unknown>>
  readonly traits: Traits
  /** For descriptions that mention servers: the description for a caller that sees these; `name` is the listed name. */
  descriptionFor?(servers: readonly ServerSummary[], name: string): string
  /** The entry validates its own arguments, with better messages than a schema gives. */
  readonly checksItself?: true
  readonly run: Handler
  readonly complete?: Handler
  /** Follows changes of a resource, named as its source spells it, until disposed of. */
  subscribe?(caller: Caller, uri: string, updated: () => void): Promise<AsyncDisposable>
  /** Forwards a request about something that a call started, such as a task; the params are `input.rest`. */
  relay?(method: string, call: Call): Promise<Result>
}

export interface Definition {
  readonly description?: string
  readonly inputSchema?: Readonly<Record<string, unknown>>
  readonly _meta?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** Properties set by the operator; a server's annotations count only if they are trusted. */
export interface Traits {
  readonly readOnly: boolean
  readonly idempotent: boolean
  readonly timeoutMs: number
  readonly timeoutKey?: string | undefined
  /** The total limit while the server reports progress, and its setting. */
  readonly maxTimeout?: { readonly ms: number; readonly key: string } | undefined
  /** Only makes other calls, each of which passes all decisions and limits itself. */
  readonly carries?: true
}
