import type { TraceContext } from './trace-context.ts'

/**
 * What happens to a call on its way, for whoever watches: metrics, traces, the dashboard. Layers write it, nobody on
 * the way reads it, so that watching can never change what a call does.
 */
export interface Trail {
  /** How the cache dealt with it, where it was asked. */
  cache?: 'hit' | 'miss' | 'joined'
  /** What a scan found in its result, by kind. */
  findings?: readonly string[]
  /** Stretches of time within the call, in the order in which they began. */
  readonly steps: TrailStep[]
  /** The place of the call itself in a trace, where it has one. */
  readonly trace?: TraceContext
}

/** One stretch of time: waiting for a person, for a place, for a server. */
export interface TrailStep {
  readonly name: 'approve' | 'queue' | 'attempt'
  /** By the clock's monotonic time, in milliseconds. */
  readonly start: number
  end?: number
  /** The code of what ended it badly. */
  error?: string
  /** Its own place in a trace, where what happens elsewhere belongs to it. */
  readonly trace?: TraceContext
}
