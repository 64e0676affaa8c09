import { isSampled } from '../../core/read-trace-context.ts'
import type { TraceContext } from '../../core/trace-context.ts'

/** Which traces are recorded. */
export interface Sampling {
  /** Whoever has begun a trace decides for all; otherwise each decides for itself. */
  readonly parentBased: boolean
  /** The share of the others that is recorded, from 0 to 1. */
  readonly ratio: number
}

export const everything: Sampling = { parentBased: true, ratio: 1 }

/** Whether a call is recorded that belongs to this trace. */
export function samples({ parentBased, ratio }: Sampling, traceId: string, parent: TraceContext | undefined): boolean {
  if (parent && parentBased) return isSampled(parent)
  // By its id, so that all who see the trace come to the same decision.
  return ratio >= 1 || Number.parseInt(traceId.slice(-13), 16) < ratio * 16 ** 13
}
