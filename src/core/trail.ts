import type { TraceContext } from './trace-context.ts'

/** What happened to a call, for metrics, traces and the dashboard. Interceptors write it and never read it. */
export interface Trail {
  cache?: 'hit' | 'miss' | 'joined'
  /** Kinds of findings of the result scan. */
  findings?: readonly string[]
  /** In the order in which they began. */
  readonly steps: TrailStep[]
  readonly trace?: TraceContext
}

/** A timed step: waiting for a person, for a slot, for a server. */
export interface TrailStep {
  readonly name: 'approve' | 'queue' | 'attempt'
  /** `performance.now()`. */
  readonly start: number
  end?: number
  error?: string
  /** Set if the step is a span of its own, under which remote work belongs. */
  readonly trace?: TraceContext
}
