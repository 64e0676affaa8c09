import type { ChatEnd, ChatEvent } from '../core/chat-events.ts'
import type { ApprovalView, CallView } from './calls/schema.ts'
import type { InboxView } from './inbox/schema.ts'
import type { Overview, ReloadEvent } from './overview/schema.ts'
import type { PolicyReplay } from './policy/schema.ts'
import type { ServerView, TryResult } from './tools/schema.ts'

/**
 * The admin API's types, which the dashboard imports. Times are in milliseconds since the epoch, durations in
 * milliseconds. Requests other than GET that authenticate with the cookie need the header `Toolway-Admin: 1`.
 */
export type * from './calls/schema.ts'
export type * from './config/schema.ts'
export type * from './endpoints/schema.ts'
export type * from './inbox/schema.ts'
export type * from './keys/schema.ts'
export type * from './overview/schema.ts'
export type * from './pins/schema.ts'
export type * from './playground/schema.ts'
export type * from './policy/schema.ts'
export type * from './skills/schema.ts'
export type * from './tools/schema.ts'

/** Events on the GET events stream: `event:` is a key below, `data:` its value. The stream starts with one of each. */
export interface AdminEvents {
  /** The gateway's current state. Sent once a second. */
  readonly overview: Overview
  /** Calls that began or ended, newest last. Sent a few times a second; under load, some calls are dropped. */
  readonly calls: readonly CallView[]
  /** All servers. Sent whenever one of them has changed. */
  readonly servers: readonly ServerView[]
  /** All approvals that wait and that the user may see. Sent whenever they have changed. */
  readonly approvals: readonly ApprovalView[]
  /** The latest reload, if there was one. Sent to admins only. */
  readonly reload: ReloadEvent
  /** What needs a person. Sent to admins only, at the start and whenever it has changed. */
  readonly inbox: InboxView
}

/** Events on the POST policy/replay stream: `end` or `error` last. Closing the stream cancels the replay. */
export type ReplayStreamEvent =
  | { readonly kind: 'progress'; readonly records: number }
  | { readonly kind: 'end'; readonly replay: PolicyReplay }
  | { readonly kind: 'error'; readonly code: string; readonly message: string }

/** Events on the POST chat stream: `start` first, `end` or `error` last. Closing the stream cancels the answer. */
export type ChatStreamEvent =
  /** `id` identifies the answer. In the audit log, it is the parent of the calls made for the answer. */
  | { readonly kind: 'start'; readonly id: string; readonly model: string }
  | Exclude<ChatEvent, ChatEnd>
  | Omit<ChatEnd, 'handed'>
  | { readonly kind: 'error'; readonly code: string; readonly message: string }

/** Events on the POST playground stream: `start` first, `end` or `error` last. Closing the stream cancels the call. */
export type PlaygroundEvent =
  /** `call` is the id of the call, for GET calls/ID. */
  | { readonly kind: 'start'; readonly call: string }
  | {
      readonly kind: 'progress'
      readonly progress: number | null
      readonly total: number | null
      readonly message: string | null
    }
  /** A request from the server, such as elicitation/create. POST playground/ID/answer answers it. */
  | {
      readonly kind: 'ask'
      readonly id: string
      readonly method: string
      readonly params: unknown
      readonly from: 'server' | 'toolway'
    }
  /** The server no longer waits for the answer to this request. */
  | { readonly kind: 'withdrawn'; readonly id: string }
  | { readonly kind: 'end'; readonly outcome: TryResult }
  | { readonly kind: 'error'; readonly code: string; readonly message: string }

export type ChatUsage = ChatEnd['usage']

export type { ChatStage as ChatStageName } from '../core/chat-events.ts'
