import { type CallChoices, type CallFilter, type CallPageQuery, mapChoices } from '../../core/call-query.ts'
import type { Clock } from '../../core/clock.ts'
import type { HistoryFilter, HistoryStore, StoredCall, TallySum } from '../../core/history.ts'
import { addPacked, createLatencies } from '../../lib/latency-histogram.ts'
import { type CallSummary, type CallTimeline, storedCallView } from '../calls/call-records.ts'
import { safeRedact } from '../metrics/family.ts'
import {
  type By,
  type CallSeries,
  figuresOf,
  maxPoints,
  noCounts,
  pointOf,
  type StatsTable,
  seriesOf,
} from '../stats/stats.ts'
import type { HistoryRecorder } from './history-recorder.ts'

/** Calls and figures of this and earlier processes. Everything resolves with undefined while the store is unusable. */
export interface CallHistory {
  series(filter: HistoryFilter): Promise<CallSeries | undefined>
  stats(by: By, filter: HistoryFilter): Promise<StatsTable | undefined>
  calls(query: CallPageQuery): Promise<{ readonly calls: readonly CallSummary[]; readonly total: number } | undefined>
  choices(filter: CallFilter): Promise<CallChoices | undefined>
  call(id: string): Promise<CallTimeline | undefined>
  /** The latest calls, newest first. */
  latest(limit: number): Promise<readonly StoredCall[]>
}

export interface CallHistoryOptions {
  readonly store: HistoryStore
  readonly recorder: Pick<HistoryRecorder, 'flush'>
  readonly clock: Clock
  redact(text: string): string
}

export function createCallHistory({ store, recorder, clock, redact }: CallHistoryOptions): CallHistory {
  const shown = safeRedact(redact)
  const startedAt = clock.now()
  const summaryOf = (call: StoredCall): CallSummary => {
    const { steps: _, ...view } = storedCallView(call, shown)
    return view
  }
  return {
    async series(filter) {
      await recorder.flush()
      const found = await store.sums({ ...filter, maxSteps: maxPoints })
      if (!found) return undefined
      const { stepMs, sums, runs } = found
      const byStep = new Map(sums.map((sum) => [sum.at, sum]))
      return seriesOf(filter, stepMs, [...runs, [startedAt, clock.now()]], (at) => {
        const sum = byStep.get(at)
        return pointOf(at, sum?.counts ?? noCounts(), sum ? latenciesOf(sum) : none, stepMs)
      })
    },
    async stats(by, filter) {
      await recorder.flush()
      const found = await store.sums({ ...filter, by })
      if (!found) return undefined
      const since = Math.max(filter.from, found.since)
      const ms = Math.max(Math.min(filter.to, clock.now()) - since, 1)
      const rows = found.sums.map((sum) => ({
        name: shown(sum.group),
        ...figuresOf(sum.counts, latenciesOf(sum), ms),
      }))
      return { by, since, to: filter.to, rows: rows.sort((one, another) => another.calls - one.calls) }
    },
    async calls(query) {
      await recorder.flush()
      const found = await store.calls(query)
      return found && { ...found, calls: found.calls.map(summaryOf) }
    },
    async choices(filter) {
      await recorder.flush()
      const found = await store.choices(filter)
      return found && mapChoices((name) => found[name].map(shown))
    },
    async call(id) {
      await recorder.flush()
      const found = await store.call(id)
      if (!found) return undefined
      return { ...storedCallView(found.call, shown), children: found.children.map(summaryOf) }
    },
    async latest(limit) {
      const order = { by: 'time', descending: true } as const
      return (await store.calls({ order, limit, counted: [] }))?.calls ?? []
    },
  }
}

const none = createLatencies()

function latenciesOf({ latencies: packed }: TallySum) {
  const latencies = createLatencies()
  addPacked(latencies, packed)
  return latencies
}
