import { errorKinds } from '../../core/errors.ts'
import type { CallOutcome, Observed } from '../../core/observer.ts'
import {
  type Counter,
  type CounterFamily,
  counterFamily,
  histogramFamily,
  type MetricFamily,
  observe,
} from './family.ts'
import type { Labels } from './labels.ts'

export interface CallMetrics {
  readonly families: readonly MetricFamily[]
  count(observed: Observed, bucket: number): void
  /** Counts a request rejected before it became a call. */
  countDenial(code: string): void
}

type ByOutcome = Readonly<Record<CallOutcome['kind'], Counter>>

/** Metrics by agent, operation and error code (F15). */
export function callMetrics(labels: Labels): CallMetrics {
  const agents = counterFamily({
    name: 'toolway_agent_calls_total',
    help: 'Operations by agent and outcome: answered, tool_error, denied, failed.',
    labels: ['agent', 'outcome'],
  })
  const operations = counterFamily({
    name: 'toolway_operations_total',
    help: 'Operations by kind and outcome: answered, tool_error, denied, failed.',
    labels: ['operation', 'outcome'],
  })
  const duration = histogramFamily({
    name: 'toolway_operation_duration_seconds',
    help: 'How long operations took as callers see it, cached ones too; without those that were refused.',
    labels: ['operation'],
  })
  const denials = counterFamily({
    name: 'toolway_denials_total',
    help: 'Operations and callers that were refused, by error code.',
    labels: ['code'],
  })
  const limited = counterFamily({
    name: 'toolway_rate_limited_total',
    help: 'Operations that a rate limit refused, by agent; they are among the denials, too.',
    labels: ['agent'],
  })

  const findings = counterFamily({
    name: 'toolway_result_findings_total',
    help: 'Results in which a scan found something, by kind; where scan.results is on.',
    labels: ['kind'],
  })

  const byAgent = byLabel(labels.agent, (agent) => ({
    outcomes: byOutcome(agents, agent),
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
    count({ call, operation, ms, outcome, trail }, bucket) {
      for (const found of trail.findings ?? []) findings.of(found).value++
      const { kind, code = 'DENIED_BY_POLICY' } = outcome
      const agent = byAgent(call.caller.agent)
      const kindOf = byOperation(operation)
      agent.outcomes[kind].value++
      kindOf.outcomes[kind].value++
      if (kind !== 'denied') return observe(kindOf.duration, bucket, ms / 1000)
      byCode(code).value++
      if (code === 'RATE_LIMITED') agent.limited.value++
    },
    countDenial(code) {
      byCode(code).value++
    },
  }
}

/** Creates all series at once: `rate()` misses the first failure of a series that starts with it. */
const byOutcome = (family: CounterFamily, name: string): ByOutcome => ({
  answered: family.of(name, 'answered'),
  tool_error: family.of(name, 'tool_error'),
  denied: family.of(name, 'denied'),
  failed: family.of(name, 'failed'),
})

/** Caches by label; bounded by the number of labels. */
function byLabel<Held>(labelOf: (name: string) => string, make: (label: string) => Held): (name: string) => Held {
  const known = new Map<string, Held>()
  return (name) => {
    const label = labelOf(name)
    const before = known.get(label)
    if (before !== undefined) return before
    const held = make(label)
    known.set(label, held)
    return held
  }
}
