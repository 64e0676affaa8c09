import type { Clock } from '../../core/clock.ts'
import type { Observer } from '../../core/observer.ts'
import { callMetrics } from './call-metrics.ts'
import { bucketOf, counterFamily, type MetricFamily, type ReadFamilyOptions, readFamily } from './family.ts'
import { createLabels, safeRedact } from './labels.ts'
import { type ExpositionPage, pageOf } from './page.ts'
import { processFamilies } from './process.ts'
import { type Readings, readingFamilies } from './readings.ts'
import { toolMetrics } from './tool-metrics.ts'

export interface MetricsOptions {
  readonly version: string
  readonly clock: Clock
  redact(text: string): string
  /** True for tools that run inside the gateway; servers cannot have these names. */
  isNative?(server: string): boolean
  readonly readings: Readings
}

/** Prometheus metrics (F15). */
export interface Metrics extends Disposable {
  readonly observer: Observer
  /** Counts a request rejected before it became a call. */
  rejected(code: string): void
  page(accept?: string): ExpositionPage
  text(): string
}

const ownSources: ReadonlySet<string> = new Set(['native', 'toolway', 'sink'])

export function createMetrics(options: MetricsOptions): Metrics {
  const { version, clock, redact, isNative = (server) => ownSources.has(server) } = options
  const labels = createLabels(safeRedact(redact))
  const calls = callMetrics(labels)
  const tools = toolMetrics(labels, isNative)
  const running = processFamilies(version, clock.now())
  const unread = counterFamily({
    name: 'toolway_metrics_unread_total',
    help: 'Values that were missing from this page because reading them failed.',
  })
  const failures = unread.of()

  /** A failed reading must not break the page. */
  const readCarefully = (family: ReadFamilyOptions): MetricFamily =>
    readFamily({
      ...family,
      read() {
        try {
          return family.read()
        } catch {
          failures.value++
          return []
        }
      },
    })
  const read = [...readingFamilies(options.readings, labels), ...running.families].map(readCarefully)
  const families = [...tools.families, ...calls.families, ...read, unread]

  return {
    observer: {
      ended(observed) {
        const bucket = bucketOf(observed.ms / 1000)
        calls.count(observed, bucket)
        if (observed.call.entry.kind === 'tool' && observed.operation === 'call_tool') tools.count(observed, bucket)
      },
    },
    rejected: calls.countDenial,
    page: (accept) => pageOf(families, accept),
    text: () => pageOf(families).body,
    [Symbol.dispose]: () => running[Symbol.dispose](),
  }
}
