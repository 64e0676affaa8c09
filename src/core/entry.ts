import type { Json } from '../json/json.ts'
import type { Call, Caller, Handler } from './call.ts'
import type { Result } from './result.ts'
import type { ServerSummary } from './source-status.ts'

export type Kind = 'tool' | 'resource' | 'template' | 'prompt' | 'skill'

export interface Entry {
  readonly kind: Kind
  /** The source of the entry: the name of an MCP server, or `native`, `toolway` or `sink`. */
  readonly server: string
  /** The name of a tool or prompt, a URI (a skill's is that of its `SKILL.md`), or a URI template, as the source spells it. */
  readonly name: string
  /** Other names of the same entry. Audit and limits use `name`; a policy rule for any of the names applies. */
  readonly aliases?: readonly string[]
  /** The source's definition without hidden characters. */
  readonly definition: Definition
  /** The original definition, if it had hidden characters, is overridden, or has more text. Pinning and scanning use it. */
  readonly verbatim?: Definition
  /** The input schema with `ExactNumber`s, if it has numbers that a double cannot hold. Validation uses it. */
  readonly exactSchema?: Readonly<Record<string, unknown>>
  readonly traits: Traits
  /** What the operator has changed (V15). `name` and `verbatim` stay the source's, which rules, pins and audit use. */
  readonly override?: EntryOverride | undefined
  /** The description for a caller that sees these servers, if it depends on the servers. `name` is the listed name. */
  descriptionFor?(servers: readonly ServerSummary[], name: string): string
  /** Set if the entry validates its own arguments, with better messages than those of schema validation. */
  readonly checksItself?: true
  /** Runs a call: `upstream/requests/forwarded-entries.ts` for servers' entries, `tools/tool-source.ts` for our own. */
  readonly run: Handler
  readonly complete?: Handler
  /** Calls `updated` on every change until the returned object is disposed of. `uri` is in the source's spelling. */
  subscribe?(caller: Caller, uri: string, updated: () => void): Promise<AsyncDisposable>
  /** Forwards a request, with params in `input.rest`, about something that an earlier call started, such as a task. */
  relay?(method: string, call: Call): Promise<Result>
}

export interface EntryOverride {
  /** The name that callers see, if it is not the source's. */
  readonly name?: string | undefined
  /** Whether the entry is in no list and no search, although it can be called. */
  readonly hidden: boolean
  readonly tags: readonly string[]
  /** Throws INVALID_ARGUMENTS if the caller sets an argument that it may not set. */
  check(args: Readonly<Record<string, unknown>>): void
  /** The arguments that the source gets. */
  complete(args: Json<Record<string, unknown>>): Json<Record<string, unknown>>
}

/** The name of an entry on its server, as callers see it. */
export const seenName = ({ name, override }: Pick<Entry, 'name' | 'override'>): string => override?.name ?? name

export interface Definition {
  readonly description?: string
  readonly inputSchema?: Readonly<Record<string, unknown>>
  readonly _meta?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** Properties set by the operator. A server's annotations are used only if the operator trusts them. */
export interface Traits {
  readonly readOnly: boolean
  readonly idempotent: boolean
  readonly timeoutMs: number
  readonly timeoutKey?: string | undefined
  /** The time limit for a call even if the server keeps reporting progress, and the setting that defines it. */
  readonly maxTimeout?: { readonly ms: number; readonly key: string } | undefined
  /** Set if the entry only makes other calls, each of which is itself subject to all decisions and limits. */
  readonly carries?: true
  /** Set if an entry that carries calls also does work of its own, so that it counts as a call for limits (F8). */
  readonly counted?: true
}
