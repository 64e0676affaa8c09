import { randomFillSync } from 'node:crypto'
import type { Call } from '../../core/call.ts'
import type { Tracing } from '../../core/observer.ts'
import {
  flagsOf,
  isSampled,
  readBaggage,
  readTraceContext,
  type TraceContext,
  traceIdOf,
} from '../../core/trace-context.ts'
import type { OtlpDelivery } from './otlp-client.ts'

/** Decides which calls are traced, and creates their contexts. `isForwarded` is false for in-process sources. */
export const createTracing = (sampling: TraceSampling, isForwarded: (server: string) => boolean): Tracing => ({
  enter(call) {
    const parent = parentOf(call)
    const trace = parent ? traceIdOf(parent) : traceId()
    const sampled = samples(sampling, trace, parent)
    if (!parent) return { ...behind(parent, trace, sampled ? 1 : 0), ...readBaggage(call.input.meta) }
    if (sampled) return behind(parent, trace, 1)
    // The call itself is not recorded, so the server gets the caller's context as its parent.
    return isSampled(parent) ? { ...parent, traceparent: `${parent.traceparent.slice(0, 53)}00` } : parent
  },
  attempt({ trace, entry }) {
    if (!trace || !isSampled(trace) || !isForwarded(entry.server)) return undefined
    const { traceparent } = trace
    return { ...trace, traceparent: `${traceparent.slice(0, 36)}${spanId()}${traceparent.slice(52)}` }
  },
})

/** The parent span's context: from one of Toolway's own calls, or from the client. */
export const parentOf = ({ trace, input }: Call): TraceContext | undefined => trace ?? readTraceContext(input.meta)

/** The trace flag that marks the whole trace ID as random. */
const randomFlag = 2

function behind(parent: TraceContext | undefined, trace: string, sampled: 0 | 1): TraceContext {
  const flags = sampled | (parent ? flagsOf(parent) & randomFlag : 0)
  return { ...parent, traceparent: `00-${trace}-${spanId()}-0${flags}` }
}

export interface TraceSampling {
  readonly parentBased: boolean
  /** The share of traces that are recorded, from 0 to 1, if no parent decides. */
  readonly ratio: number
}

export const everything: TraceSampling = { parentBased: true, ratio: 1 }

function samples({ parentBased, ratio }: TraceSampling, traceId: string, parent: TraceContext | undefined): boolean {
  if (parent && parentBased) return isSampled(parent)
  // Decide by the trace ID, so that every participant makes the same decision.
  return ratio >= 1 || Number.parseInt(traceId.slice(-13), 16) < ratio * 16 ** 13
}

export interface TraceSettings {
  readonly url: string
  /** The headers, which may hold credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly resource: Readonly<Record<string, string>>
  readonly sampling: TraceSampling
  readonly delivery: OtlpDelivery
}

/** Random bytes for many IDs. They are requested together, because small requests for random bytes are slow. */
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

const traceId = (): string => random(16)

export const spanId = (): string => random(8)
