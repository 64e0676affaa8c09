import { randomFillSync } from 'node:crypto'
import type { Call } from '../../core/call.ts'
import { flagsOf, isSampled, readTraceContext, type TraceContext, traceIdOf } from '../../core/trace-context.ts'
import type { Tracing } from '../../core/tracing.ts'

/** Gives calls their places in traces. `isForwarded` says whether a source is somebody else, who must know his. */
export const createTracing = (sampling: TraceSampling, isForwarded: (server: string) => boolean): Tracing => ({
  enter(call) {
    const parent = parentOf(call)
    const trace = parent ? traceIdOf(parent) : traceId()
    if (samples(sampling, trace, parent)) return behind(parent, trace, 1)
    // Nothing is recorded of it here: whoever comes next stands where its caller does.
    if (!parent) return behind(parent, trace, 0)
    return isSampled(parent) ? { ...parent, traceparent: `${parent.traceparent.slice(0, 53)}00` } : parent
  },
  attempt({ trace, entry }) {
    if (!trace || !isSampled(trace) || !isForwarded(entry.server)) return undefined
    const { traceparent } = trace
    return { ...trace, traceparent: `${traceparent.slice(0, 36)}${spanId()}${traceparent.slice(52)}` }
  },
})

/** Who a call was made by: one of our own calls, or whatever its client says. */
export const parentOf = ({ trace, input }: Call): TraceContext | undefined => trace ?? readTraceContext(input.meta)

/** The bits of the flags that we know: sampled, and that the id of the trace is random throughout. */
const randomFlag = 2

function behind(parent: TraceContext | undefined, trace: string, sampled: 0 | 1): TraceContext {
  const flags = sampled | (parent ? flagsOf(parent) & randomFlag : 0)
  return { ...parent, traceparent: `00-${trace}-${spanId()}-0${flags}` }
}

/** Which traces are recorded. */
export interface TraceSampling {
  /** Whoever has begun a trace decides for all; otherwise each decides for itself. */
  readonly parentBased: boolean
  /** The share of the others that is recorded, from 0 to 1. */
  readonly ratio: number
}

export const everything: TraceSampling = { parentBased: true, ratio: 1 }

/** Whether a call is recorded that belongs to this trace. */
function samples({ parentBased, ratio }: TraceSampling, traceId: string, parent: TraceContext | undefined): boolean {
  if (parent && parentBased) return isSampled(parent)
  // By its id, so that all who see the trace come to the same decision.
  return ratio >= 1 || Number.parseInt(traceId.slice(-13), 16) < ratio * 16 ** 13
}

/** Where traces go, and which. */
export interface TraceSettings {
  readonly url: string
  /** They may hold credentials. */
  readonly headers: Readonly<Record<string, string>>
  /** Who we are, in attributes. */
  readonly resource: Readonly<Record<string, string>>
  readonly sampling: TraceSampling
}

/** Filled with many ids' worth of chance at a time: asking for little at a time costs more than the ids. */
const pool = Buffer.alloc(8_192)
let used = pool.length

function random(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString('hex', used - bytes, used)
}

/** A new trace's id, in hex. */
const traceId = (): string => random(16)

/** A new span's id, in hex. */
export const spanId = (): string => random(8)
