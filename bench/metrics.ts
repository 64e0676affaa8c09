/**
 * `node bench/metrics.ts`: what watching a call costs: counting it for Prometheus, for the statistics, and keeping it
 * among the recent ones. The target for counting is 1 µs, and nothing left for the garbage collector.
 */
import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../src/core/clock.ts'
import type { Entry } from '../src/core/entry.ts'
import type { Observed, Observer } from '../src/core/observer.ts'
import type { CallOutcome } from '../src/core/outcome.ts'
import { textResult } from '../src/core/result.ts'
import { Json } from '../src/json/json.ts'
import { createRecentCalls } from '../src/telemetry/calls/call-records.ts'
import { createMetrics } from '../src/telemetry/metrics/metrics.ts'
import { createStats } from '../src/telemetry/stats/stats.ts'

const targetNs = 1000
const say = (line: string) => process.stdout.write(line + '\n')
const microseconds = (ns: number) => `${(ns / 1000).toFixed(3)} µs`

const entries = Array.from(
  { length: 10_000 },
  (_, number): Entry => ({
    kind: 'tool',
    server: `server${number % 100}`,
    name: `tool_${number}`,
    definition: {},
    traits: { readOnly: true, idempotent: false, timeoutMs: 30_000 },
    run: async () => textResult(''),
  }),
)

/** Most calls are answered, some from the cache; one in twenty fails, one in fifty is denied. */
const outcomeOf = (number: number): CallOutcome => {
  if (number % 50 === 0) return { kind: 'denied', code: 'RATE_LIMITED' }
  return number % 20 === 0 ? { kind: 'failed', code: 'TIMEOUT' } : { kind: 'answered' }
}

const callsOf = (tools: number, agents: number, count: number): Observed[] =>
  Array.from({ length: count }, (_, number) => ({
    call: {
      id: `01890a5d-ac96-774b-bcce-${String(number).padStart(12, '0')}`,
      caller: {
        agent: `agent${(number * 7) % agents}`,
        agents: '*',
        principal: 'bench',
        authenticated: true,
        admin: false,
        session: 'bench',
        capabilities: {},
      },
      entry: entries[(number * 31) % tools] as Entry,
      input: { arguments: Json.of({}), meta: {} },
      signal: AbortSignal.abort(),
      peer: { rounds: false, logLevel: undefined, notify() {}, ask: () => Promise.reject(new Error('nobody')) },
    },
    operation: 'call_tool',
    at: systemClock.now(),
    end: 0,
    start: performance.now(),
    ms: ((number * 37) % 2000) / 10,
    outcome: outcomeOf(number),
    trail: number % 4 === 0 ? { cache: number % 8 === 0 ? 'hit' : 'miss', steps: [] } : { steps: [] },
  }))

function watch(observer: Observer, calls: readonly Observed[]): void {
  for (const observed of calls) {
    observer.began?.(observed.call, observed.operation)
    observer.ended(observed)
  }
}

let collections = 0
new PerformanceObserver((list) => {
  collections += list.getEntries().length
}).observe({ entryTypes: ['gc'] })

/** The best of a few rounds: whatever else the machine does only ever adds. */
async function report(name: string, observer: Observer, calls: readonly Observed[], target?: number): Promise<void> {
  const rounds = 10
  const times = 20
  // Everything is met for the first time once.
  for (let round = 0; round < times; round++) watch(observer, calls)
  await setTimeout(10)
  collections = 0
  let ns = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const start = process.hrtime.bigint()
    for (let time = 0; time < times; time++) watch(observer, calls)
    ns = Math.min(ns, Number(process.hrtime.bigint() - start) / (times * calls.length))
  }
  await setTimeout(10)
  const judged = target === undefined ? '' : `; target ${microseconds(target)} ${ns < target ? 'met' : 'missed'}`
  const watched = (rounds * times * calls.length).toLocaleString('en')
  say(`${name}: ${microseconds(ns)} per call, ${collections} garbage collections in ${watched} calls${judged}`)
}

const redact = (text: string) => text
const loads = {
  '100 tools, 10 agents': callsOf(100, 10, 10_000),
  '10,000 tools, 1,000 agents': callsOf(10_000, 1_000, 10_000),
}
for (const [what, calls] of Object.entries(loads)) {
  using metrics = createMetrics({ version: 'bench', clock: systemClock, redact, readings: {} })
  await report(`metrics, ${what}`, metrics.observer, calls, targetNs)
  metrics.text()
  const start = performance.now()
  const page = metrics.text()
  say(`  a page of ${Math.round(page.length / 1024)} KiB in ${(performance.now() - start).toFixed(1)} ms`)

  const stats = createStats({ clock: systemClock, redact })
  await report(`statistics, ${what}`, stats.observer, calls, targetNs)
  const recent = createRecentCalls({ clock: systemClock, redact })
  await report(`recent calls, ${what}`, recent.observer, calls)
  using _ = recent.subscribe(() => {})
  await report(`recent calls while somebody follows, ${what}`, recent.observer, calls)
}
