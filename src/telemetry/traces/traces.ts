import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Observer, Tracing } from '../../core/observer.ts'
import { isSampled } from '../../core/trace-context.ts'
import { basicAuthOf } from '../../lib/url.ts'
import {
  type CallSpansOptions,
  createCallSpans,
  createTracing,
  serverFacts,
  type TracedServer,
  type TraceSampling,
  type TraceSettings,
} from './call-spans.ts'
import { createExporter, type Exporter } from './exporter.ts'
import { createOtlpClient, createTraceEncoder } from './otlp-client.ts'

export type Traces = ReturnType<typeof openTraces>

export interface TracesOptions {
  readonly settings: TraceSettings
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

interface GenerationOptions {
  redact(text: string): string
  /** The servers that calls are sent to. All other sources run in this process. */
  readonly servers: ReadonlyMap<string, TracedServer>
}

/** Exports this gateway's traces (F16). Disposing sends the remaining spans within a limited time. */
export function openTraces({ settings, version, clock, log }: TracesOptions) {
  const url = new URL(settings.url)
  // Credentials in the URL become the Authorization header.
  const authorization = basicAuthOf(url)
  const headers = { ...(authorization === undefined ? {} : { authorization }), ...lowerCase(settings.headers) }
  const exporter = createExporter({
    post: createOtlpClient({ url, headers, delivery: settings.delivery, clock }),
    encode: encoderOf(settings.resource, version),
    // Log only the origin, because the rest of the URL may hold a key.
    receiver: url.origin,
    clock,
    log,
  })
  return {
    settings,
    /** Creates the tracer, which observes the calls under one configuration. */
    tracer({ redact, servers }: GenerationOptions): Tracer {
      const facts = new Map([...servers].map(([name, server]) => [name, serverFacts(server)]))
      return createTracer({ redact, servers: facts, sampling: settings.sampling, exporter, clock })
    },
    stats: exporter.stats,
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  }
}

/** Headers with lower-case names, so that no two of them differ only in case. */
const lowerCase = (headers: TraceSettings['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

const encoderOf = (resource: TraceSettings['resource'], version: string) =>
  createTraceEncoder(
    {
      'service.version': version,
      'service.instance.id': randomUUID(),
      'telemetry.sdk.name': 'toolway',
      'telemetry.sdk.language': 'nodejs',
      'telemetry.sdk.version': version,
      ...resource,
    },
    version,
  )

interface Tracer extends Tracing, Observer {}

interface TracerOptions extends CallSpansOptions {
  readonly sampling: TraceSampling
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
