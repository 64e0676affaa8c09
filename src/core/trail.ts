import type { ApprovalRecord } from './approval.ts'
import type { TraceContext } from './trace-context.ts'

/** What happened during a call, for audit, metrics, traces and the dashboard. It never affects the call. */
export interface Trail {
  cache?: 'hit' | 'miss' | 'joined'
  /** The lookup in the cache, if there was one, as given by `performance.now()`. */
  lookup?: { readonly start: number; readonly end: number }
  /** When the policy had decided and the start was recorded. A number, because every call has one. */
  decided?: number
  findings?: readonly string[]
  /** A person's answer, if the call needed approval. */
  approval?: ApprovalRecord
  /** The steps, in the order in which they began. */
  readonly steps: TrailStep[]
  readonly trace?: TraceContext
}

export interface TrailStep {
  readonly name: 'approve' | 'queue' | 'attempt'
  /** When the step began, as given by `performance.now()`. */
  readonly start: number
  end?: number
  error?: string
  /** The step's trace context, if the step has its own span. Spans for remote work become children of that span. */
  readonly trace?: TraceContext
}
