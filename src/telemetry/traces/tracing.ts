import type { Call } from '../../core/call.ts'
import { flagsOf, isSampled, readTraceContext, traceIdOf } from '../../core/read-trace-context.ts'
import type { TraceContext } from '../../core/trace-context.ts'
import type { Tracing } from '../../core/tracing.ts'
import { spanId, traceId } from './ids.ts'
import { type Sampling, samples } from './sampling.ts'

/** Gives calls their places in traces. `isForwarded` says whether a source is somebody else, who must know his. */
export const createTracing = (sampling: Sampling, isForwarded: (server: string) => boolean): Tracing => ({
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
const random = 2

function behind(parent: TraceContext | undefined, trace: string, sampled: 0 | 1): TraceContext {
  const flags = sampled | (parent ? flagsOf(parent) & random : 0)
  return { ...parent, traceparent: `00-${trace}-${spanId()}-0${flags}` }
}
