import type { Observer } from '../../core/observer.ts'
import { isSampled } from '../../core/read-trace-context.ts'
import type { Tracing } from '../../core/tracing.ts'
import { type CallSpansOptions, createCallSpans } from './call-spans.ts'
import type { Exporter } from './exporter.ts'
import type { Sampling } from './sampling.ts'
import { createTracing } from './tracing.ts'

/** Gives calls their places in traces, and tells of them when they are over. */
export interface Tracer extends Tracing, Observer {}

export interface TracerOptions extends CallSpansOptions {
  readonly sampling: Sampling
  readonly exporter: Pick<Exporter, 'push'>
}

export function createTracer(options: TracerOptions): Tracer {
  const { sampling, servers, exporter } = options
  const spansOf = createCallSpans(options)
  return {
    ...createTracing(sampling, (server) => servers.has(server)),
    ended(observed) {
      const { trace } = observed.trail
      if (trace && isSampled(trace)) exporter.push(spansOf(observed))
    },
  }
}
