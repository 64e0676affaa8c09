import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Observer } from '../../core/observer.ts'
import { isSampled } from '../../core/trace-context.ts'
import type { Tracing } from '../../core/tracing.ts'
import { basicAuthOf } from '../../lib/basic-auth.ts'
import { type CallSpansOptions, createCallSpans, serverFacts, type TracedServer } from './call-spans.ts'
import { createExporter, type Exporter, type ExporterStats } from './exporter.ts'
import { createOtlpClient } from './otlp-client.ts'
import { createTracing, type TraceSampling, type TraceSettings } from './tracing.ts'

/** The traces of this gateway on their way to a receiver (F16). Disposing of it sends what is left, within a bounded time. */
export interface Traces extends AsyncDisposable {
  readonly settings: TraceSettings
  /** Watches the calls of one configuration. */
  tracer(options: TracerOptionsOfGeneration): Tracer
  stats(): ExporterStats
}

/** The calls of one configuration. */
export interface TracerOptionsOfGeneration {
  /** Takes secrets out of a name. */
  redact(text: string): string
  /** The servers that calls are sent to; what is not among them runs in this process. */
  readonly servers: ReadonlyMap<string, TracedServer>
}

export interface TracesOptions {
  readonly settings: TraceSettings
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

export function openTraces({ settings, version, clock, log }: TracesOptions): Traces {
  const { url, authorization } = addressOf(settings.url)
  const headers = { ...authorization, ...lowerCase(settings.headers) }
  const exporter = createExporter({
    post: createOtlpClient({ url, headers, clock }),
    envelope: envelopeOf(settings.resource, version),
    // The rest of an address may hold a key.
    receiver: url.origin,
    clock,
    log,
  })
  return {
    settings,
    tracer({ redact, servers }) {
      const facts = new Map([...servers].map(([name, server]) => [name, serverFacts(server)]))
      return createTracer({ redact, servers: facts, sampling: settings.sampling, exporter, clock })
    },
    stats: exporter.stats,
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  }
}

/** Credentials in an address become the usual header. */
function addressOf(written: string): { url: URL; authorization: Record<string, string> } {
  const url = new URL(written)
  const authorization = basicAuthOf(url)
  return { url, authorization: authorization === undefined ? {} : { authorization } }
}

/** So that a header that is given in another spelling is no second one. */
const lowerCase = (headers: TraceSettings['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/** What a batch says once about all its spans: who tells of them. */
function envelopeOf(resource: TraceSettings['resource'], version: string): { head: string; tail: string } {
  const all = {
    'service.version': version,
    'service.instance.id': randomUUID(),
    'telemetry.sdk.name': 'toolway',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
    ...resource,
  }
  const attributes = Object.entries(all).map(([key, stringValue]) => ({ key, value: { stringValue } }))
  const scope = JSON.stringify({ name: 'toolway', version })
  return {
    head: `{"resourceSpans":[{"resource":${JSON.stringify({ attributes })},"scopeSpans":[{"scope":${scope},"spans":[`,
    tail: ']}]}]}',
  }
}

/** Gives calls their places in traces, and tells of them when they are over. */
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
