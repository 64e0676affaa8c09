import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import { errorKinds } from '../../core/errors.ts'
import { type Observed, type Observer, statisticsOperation } from '../../core/observer.ts'
import type { CallOutcome } from '../../core/outcome.ts'
import { builtInSources } from '../../core/source.ts'
import {
  bucketOf,
  type Counter,
  type CounterFamily,
  counterFamily,
  createLabels,
  type ExpositionPage,
  type Histogram,
  histogramFamily,
  type Labels,
  type MetricFamily,
  observe,
  pageOf,
  type ReadFamilyOptions,
  readFamily,
  safeRedact,
  toolError,
} from './family.ts'
import { processFamilies, type Readings, readingFamilies } from './readings.ts'

export interface MetricsOptions {
  readonly version: string
  readonly clock: Clock
  redact(text: string): string
  readonly readings: Readings
}

/** Prometheus metrics (F15). */
export interface Metrics extends Disposable {
  readonly observer: Observer
  /** Counts a request that was rejected before it became a call. */
  rejected(code: string): void
  page(accept?: string): ExpositionPage
  text(): string
}

export function createMetrics(options: MetricsOptions): Metrics {
  const { version, clock, redact } = options
  const labels = createLabels(safeRedact(redact))
  const calls = callMetrics(labels)
  const tools = new ToolMetrics(labels)
  const running = processFamilies(version, clock.now())
  const unread = counterFamily({
    name: 'toolway_metrics_unread_total',
    help: 'Metrics missing from this page because they could not be read.',
  })
  const failures = unread.of()

  /** A family whose values may fail to be read. Such a failure must not break the page. */
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

/** Metrics by agent, operation and error code (F15). */
function callMetrics(labels: Labels) {
  const agents = counterFamily({
    name: 'toolway_agent_calls_total',
    help: 'Operations by agent, kind and outcome (answered, tool_error, denied, failed). Meta-tools are kinds of their own.',
    labels: ['agent', 'operation', 'outcome'],
    maxSeries: 600,
  })
  const operations = counterFamily({
    name: 'toolway_operations_total',
    help: 'Operations by kind and outcome (answered, tool_error, denied, failed).',
    labels: ['operation', 'outcome'],
  })
  const duration = histogramFamily({
    name: 'toolway_operation_duration_seconds',
    help: 'Duration of operations, including cached and excluding refused ones, without waiting for people.',
    labels: ['operation'],
  })
  const denials = counterFamily({
    name: 'toolway_denials_total',
    help: 'Refused operations and callers, by error code.',
    labels: ['code'],
  })
  const limited = counterFamily({
    name: 'toolway_rate_limited_total',
    help: 'Operations refused by a rate limit, by agent. They also count as denials.',
    labels: ['agent'],
  })
  const findings = counterFamily({
    name: 'toolway_result_findings_total',
    help: 'Results with scan findings, by kind (if scan.results is on).',
    labels: ['kind'],
  })

  const byAgent = byLabel(labels.agent, (agent) => ({
    operations: byLabel(labels.operation, (operation) => byOutcome(agents, agent, operation)),
    limited: limited.of(agent),
  }))
  const byOperation = byLabel(labels.operation, (operation) => ({
    outcomes: byOutcome(operations, operation),
    duration: duration.of(operation),
  }))
  const byCode = byLabel(labels.error, (code) => denials.of(code))
  for (const [code, kind] of Object.entries(errorKinds)) if ('denial' in kind) byCode(code)

  return {
    families: [operations, duration, agents, denials, limited, findings],
    count({ call, operation, ms, outcome, trail }: Observed, bucket: number) {
      for (const found of trail.findings ?? []) findings.of(found).value++
      const { kind, code = 'DENIED_BY_POLICY' } = outcome
      const agent = byAgent(call.caller.agent)
      const performed = statisticsOperation(operation, call.entry.server, call.entry.name)
      const kindOf = byOperation(performed)
      agent.operations(performed)[kind].value++
      kindOf.outcomes[kind].value++
      if (kind !== 'denied') return observe(kindOf.duration, bucket, ms / 1000)
      byCode(code).value++
      if (code === 'RATE_LIMITED') agent.limited.value++
    },
    countDenial(code: string): void {
      byCode(code).value++
    },
  }
}

/** The counters of one series for all outcomes, starting at zero: `rate()` would miss a failure that starts a series. */
const byOutcome = (family: CounterFamily, ...names: string[]): Readonly<Record<CallOutcome['kind'], Counter>> => ({
  answered: family.of(...names, 'answered'),
  tool_error: family.of(...names, 'tool_error'),
  denied: family.of(...names, 'denied'),
  failed: family.of(...names, 'failed'),
})

/** Caches series by label. The number of labels limits the size of the cache. */
function byLabel<Series>(labelOf: (name: string) => string, create: (label: string) => Series) {
  const known = new Map<string, Series>()
  return (name: string): Series => {
    const label = labelOf(name)
    const before = known.get(label)
    if (before !== undefined) return before
    const series = create(label)
    known.set(label, series)
    return series
  }
}

type CacheOutcome = NonNullable<Observed['trail']['cache']>

interface EntrySeries {
  readonly tool: string
  readonly server: string
  readonly calls: Counter
  /** The histogram of durations. Undefined for native tools. */
  readonly duration: Histogram | undefined
  readonly cache: Partial<Record<CacheOutcome, Counter>>
  /** For each error code, the tool's counter and, unless the error is a refusal, its server's counter. */
  readonly errors: Map<string, readonly Counter[]>
}

/** The families of metrics for tool calls (F15). */
function toolFamilies() {
  const native = counterFamily({
    name: 'toolway_tool_native_calls_total',
    help: 'Calls to native tools, with any outcome.',
    labels: ['tool'],
  })
  const forwarded = counterFamily({
    name: 'toolway_tool_forwarded_calls_total',
    help: "Calls to MCP servers' tools, with any outcome, including refused and cached calls.",
    labels: ['server', 'tool'],
  })
  const duration = histogramFamily({
    name: 'toolway_tool_forwarded_duration_seconds',
    help: "Duration of calls to MCP servers' tools, except refused and cached calls, without waiting for people.",
    labels: ['server', 'tool'],
    // The number of series is limited because each one takes 19 lines, and every server may have its own `other`.
    maxSeries: 300,
  })
  const hits = counterFamily({
    name: 'toolway_tool_cache_hits_total',
    help: 'Calls answered from the cache.',
    labels: ['tool'],
  })
  const misses = counterFamily({
    name: 'toolway_tool_cache_misses_total',
    help: 'Cacheable calls whose result was not in the cache.',
    labels: ['tool'],
  })
  const joined = counterFamily({
    name: 'toolway_tool_cache_joined_total',
    help: 'Calls that shared the result of an identical call in progress.',
    labels: ['tool'],
  })
  const errors = counterFamily({
    name: 'toolway_tool_errors_total',
    help: 'Failed and refused calls by tool and error code (tool_error if the tool reported the error).',
    labels: ['tool', 'error'],
  })
  const failures = counterFamily({
    name: 'toolway_server_errors_total',
    help: 'Failed calls by server and error code, excluding refusals.',
    labels: ['server', 'error'],
  })
  return { native, forwarded, duration, cache: { hit: hits, miss: misses, joined }, errors, failures }
}

/** Metrics for tool calls. Series are cached by entry, so that a call costs only a few additions. */
class ToolMetrics {
  readonly families: readonly MetricFamily[]
  readonly #labels: Labels
  readonly #of = toolFamilies()
  readonly #total = { hit: 0, miss: 0, joined: 0 }
  readonly #known = new WeakMap<Entry, EntrySeries>()

  constructor(labels: Labels) {
    this.#labels = labels
    const total = this.#total
    const hitRate = readFamily({
      name: 'toolway_tool_cache_hit_rate',
      help: 'Share of cache hits among hits and misses since the start. NaN before the first of either.',
      type: 'gauge',
      read: () => [[[], total.hit / (total.hit + total.miss)]],
    })
    const { native, forwarded, duration, cache, errors, failures } = this.#of
    this.families = [native, forwarded, duration, cache.hit, cache.miss, cache.joined, hitRate, errors, failures]
  }

  count({ call, ms, outcome, trail }: Observed, bucket: number): void {
    const series = this.#known.get(call.entry) ?? this.#seriesOf(call.entry)
    series.calls.value++
    if (trail.cache !== undefined) this.#countCache(series, trail.cache)
    if (outcome.kind !== 'answered') this.#countError(series, outcome)
    if (outcome.kind === 'denied') return
    if (series.duration !== undefined && trail.cache !== 'hit') observe(series.duration, bucket, ms / 1000)
  }

  #seriesOf(entry: Entry): EntrySeries {
    const tool = this.#labels.tool(`${entry.server}.${entry.name}`)
    const server = this.#labels.server(entry.server)
    const isBuiltIn = builtInSources.includes(entry.server)
    const series: EntrySeries = {
      ...{ tool, server, cache: {}, errors: new Map() },
      calls: isBuiltIn ? this.#of.native.of(tool) : this.#of.forwarded.of(server, tool),
      duration: isBuiltIn ? undefined : this.#of.duration.of(server, tool),
    }
    this.#known.set(entry, series)
    return series
  }

  #countCache(series: EntrySeries, outcome: CacheOutcome): void {
    series.cache[outcome] ??= this.#of.cache[outcome].of(series.tool)
    series.cache[outcome].value++
    this.#total[outcome]++
  }

  #countError({ errors: known, tool, server }: EntrySeries, { kind, code = 'INTERNAL' }: CallOutcome): void {
    const error = this.#labels.error(kind === 'tool_error' ? toolError : code)
    const { errors, failures } = this.#of
    // A refusal says nothing about the server.
    const counters = known.get(error) ?? [
      errors.of(tool, error),
      ...(kind === 'denied' ? [] : [failures.of(server, error)]),
    ]
    known.set(error, counters)
    for (const counter of counters) counter.value++
  }
}
