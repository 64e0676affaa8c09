import type { CallView } from './schemas/calls.ts'
import type { ServerView } from './schemas/catalog.ts'
import type { Overview, ReloadEvent } from './schemas/figures.ts'

/**
 * The types of the admin API, which the dashboard imports. Times are milliseconds since the epoch, durations
 * milliseconds. Requests other than GET that authenticate with the cookie need the header `Toolway-Admin: 1`.
 */
export type * from './schemas/calls.ts'
export type * from './schemas/catalog.ts'
export type * from './schemas/figures.ts'

/** The events of GET events: `event:` is the kind, `data:` the value. The stream starts with one of each. */
export interface AdminEvents {
  /** Once a second. */
  readonly overview: Overview
  /** Calls that began or ended, a few times a second, newest last; under load some are dropped. */
  readonly calls: readonly CallView[]
  /** All servers, whenever one has changed. */
  readonly servers: readonly ServerView[]
  /** The latest reload, if any; admins only. */
  readonly reload: ReloadEvent
}

/**
 * The server-sent events of POST chat, one per `data:`. The stream starts with `start` and ends with `end` or `error`;
 * closing it cancels the answer.
 */
export type ChatStreamEvent =
  /** In the audit log, this id is the parent of the calls that the answer makes. */
  | { readonly kind: 'start'; readonly id: string; readonly model: string }
  | { readonly kind: 'stage'; readonly stage: ChatStageName; readonly round: number }
  | {
      readonly kind: 'call'
      readonly call: string
      readonly name: string
      readonly server: string
      readonly arguments: unknown
    }
  | {
      readonly kind: 'result'
      readonly call: string
      readonly isError: boolean
      readonly durationMs: number
      readonly text: string
    }
  | { readonly kind: 'text' | 'thinking'; readonly text: string }
  | {
      readonly kind: 'end'
      readonly reason: string
      readonly model: string
      readonly usage: { readonly promptTokens: number; readonly completionTokens: number }
      /** Fallbacks that were used, one sentence each. */
      readonly notes: readonly string[]
    }
  | { readonly kind: 'error'; readonly code: string; readonly message: string }

export type ChatStageName = 'discover' | 'select' | 'call' | 'execute' | 'interpret' | 'answer'
