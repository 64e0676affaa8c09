import type { TraceContext } from './trace-context.ts'

/** What happened to a call, for audit, metrics, traces and the dashboard. It never affects what the call does. */
export interface Trail {
  cache?: 'hit' | 'miss' | 'joined'
  findings?: readonly string[]
  /** In the order in which they began. */
  readonly steps: TrailStep[]
  readonly trace?: TraceContext
}

export interface TrailStep {
  readonly name: 'approve' | 'queue' | 'attempt'
  /** `performance.now()`. */
  readonly start: number
  end?: number
  error?: string
  /** Set if the step is a span of its own, under which remote work belongs. */
  readonly trace?: TraceContext
}
