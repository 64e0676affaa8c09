import type { Entry } from '../../core/entry.ts'
import type { Observed } from '../../core/observer.ts'
import {
  type Counter,
  counterFamily,
  type Histogram,
  histogramFamily,
  type MetricFamily,
  observe,
  readFamily,
} from './family.ts'
import { type Labels, toolError } from './labels.ts'

export interface ToolMetrics {
  readonly families: readonly MetricFamily[]
  count(observed: Observed, bucket: number): void
}

interface Held {
  readonly tool: string
  readonly server: string
  readonly calls: Counter
  /** Undefined for native tools. */
  readonly duration: Histogram | undefined
  hits?: Counter
  misses?: Counter
  joined?: Counter
  readonly errors: Map<string, Counter>
  readonly failures: Map<string, Counter>
}

/**
 * Metrics of tool calls (F15). A call costs a few additions: the series are cached by entry, and label texts are built
 * only for the first call of an entry.
 */
export function toolMetrics(labels: Labels, isNative: (server: string) => boolean): ToolMetrics {
  const native = counterFamily({
    name: 'toolway_tool_native_calls_total',
    help: 'Calls of tools that run inside Toolway, however they ended.',
    labels: ['tool'],
  })
  const forwarded = counterFamily({
    name: 'toolway_tool_forwarded_calls_total',
    help: 'Calls of tools of MCP servers, however they ended: refused and cached ones, too.',
    labels: ['server', 'tool'],
  })
  const duration = histogramFamily({
    name: 'toolway_tool_forwarded_duration_seconds',
    help: 'How long calls of tools of MCP servers took, without those that were refused or answered from the cache.',
    labels: ['server', 'tool'],
    // Each series takes 19 lines, and every server may have its own `other`.
    most: 300,
  })
  const hits = counterFamily({
    name: 'toolway_tool_cache_hits_total',
    help: 'Calls that were answered from the cache.',
    labels: ['tool'],
  })
  const misses = counterFamily({
    name: 'toolway_tool_cache_misses_total',
    help: 'Calls that might have been answered from the cache and were not in it.',
    labels: ['tool'],
  })
  const joined = counterFamily({
    name: 'toolway_tool_cache_joined_total',
    help: 'Calls that waited for the answer to an equal one under way.',
    labels: ['tool'],
  })
  const errors = counterFamily({
    name: 'toolway_tool_errors_total',
    help: 'Calls that failed, by error code; tool_error where the tool itself said so. Refusals are no errors.',
    labels: ['tool', 'error'],
  })
  const failures = counterFamily({
    name: 'toolway_server_errors_total',
    help: 'The same by server.',
    labels: ['server', 'error'],
  })
  const all = { hits: 0, misses: 0 }
  const hitRate = readFamily({
    name: 'toolway_tool_cache_hit_rate',
    help: 'Hits per hits and misses since the start; NaN before the first of either.',
    type: 'gauge',
    read: () => [[[], all.hits / (all.hits + all.misses)]],
  })

  const known = new WeakMap<Entry, Held>()
  const hold = (entry: Entry): Held => {
    const tool = labels.tool(`${entry.server}.${entry.name}`)
    const server = labels.server(entry.server)
    const ours = isNative(entry.server)
    const held: Held = {
      ...{ tool, server, errors: new Map(), failures: new Map() },
      calls: ours ? native.of(tool) : forwarded.of(server, tool),
      duration: ours ? undefined : duration.of(server, tool),
    }
    known.set(entry, held)
    return held
  }

  const countCache = (held: Held, cache: NonNullable<Observed['trail']['cache']>): void => {
    if (cache === 'joined') {
      held.joined ??= joined.of(held.tool)
      held.joined.value++
    } else if (cache === 'hit') {
      held.hits ??= hits.of(held.tool)
      held.hits.value++
      all.hits++
    } else {
      held.misses ??= misses.of(held.tool)
      held.misses.value++
      all.misses++
    }
  }

  const countError = ({ errors: byCode, failures: ofServer, tool, server }: Held, code: string): void => {
    const error = labels.error(code)
    const one = byCode.get(error) ?? errors.of(tool, error)
    const another = ofServer.get(error) ?? failures.of(server, error)
    byCode.set(error, one)
    ofServer.set(error, another)
    one.value++
    another.value++
  }

  return {
    families: [native, forwarded, duration, hits, misses, joined, hitRate, errors, failures],
    count({ call, ms, outcome, trail }, bucket) {
      const held = known.get(call.entry) ?? hold(call.entry)
      held.calls.value++
      if (trail.cache !== undefined) countCache(held, trail.cache)
      if (outcome.kind === 'denied') return
      if (outcome.kind !== 'answered')
        countError(held, outcome.kind === 'failed' ? (outcome.code ?? 'INTERNAL') : toolError)
      if (held.duration !== undefined && trail.cache !== 'hit') observe(held.duration, bucket, ms / 1000)
    },
  }
}
