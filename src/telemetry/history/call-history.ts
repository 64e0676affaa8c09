import type { Clock } from '../../core/clock.ts'
import type { HistoryFilter, HistoryStore, StoredCall, TallySum } from '../../core/history.ts'
import { addPacked, createLatencies } from '../../lib/latency-histogram.ts'
import { type CallSummary, type CallTimeline, fits, type RecordFilter, storedCallView } from '../calls/call-records.ts'
import { safeRedact } from '../metrics/family.ts'
import { type By, type CallSeries, figuresOf, maxPoints, noCounts, pointOf, type StatsTable } from '../stats/stats.ts'
import type { HistoryRecorder } from './history-recorder.ts'

/** Calls and figures of this and earlier processes. Everything resolves with undefined while the store is unusable. */
export interface CallHistory {
  series(filter: HistoryFilter): Promise<CallSeries | undefined>
  stats(by: By, filter: HistoryFilter): Promise<StatsTable | undefined>
  /** Calls that match, newest first. */
  calls(filter: RecordFilter & HistoryRange, limit: number): Promise<readonly CallSummary[] | undefined>
  call(id: string): Promise<CallTimeline | undefined>
  /** The latest calls, newest first. */
  latest(limit: number): Promise<readonly StoredCall[]>
}

type HistoryRange = Pick<HistoryFilter, 'from' | 'to'>

export interface CallHistoryOptions {
  readonly store: HistoryStore
  readonly recorder: Pick<HistoryRecorder, 'flush'>
  readonly clock: Clock
  redact(text: string): string
}

/** How many calls are read at a time, and how many in all, to find those that match a filter. */
const pageSize = 1_000
const maxRead = 50_000

export function createCallHistory({ store, recorder, clock, redact }: CallHistoryOptions): CallHistory {
  const shown = safeRedact(redact)
  return {
    async series(filter) {
      await recorder.flush()
      const { from, to } = filter
      const found = await store.sums({ ...filter, maxSteps: maxPoints })
      if (!found) return undefined
      const { stepMs, sums } = found
      const byStep = new Map(sums.map((sum) => [sum.at, sum]))
      const points: CallSeries['points'][number][] = []
      for (let at = Math.floor(from / stepMs) * stepMs; at < to; at += stepMs) {
        const sum = byStep.get(at)
        points.push(pointOf(at, sum?.counts ?? noCounts(), sum ? latenciesOf(sum) : none, stepMs))
      }
      return { from, to, stepMs, points }
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
    async calls(filter, limit) {
      await recorder.flush()
      const found: CallSummary[] = []
      let before: { readonly at: number; readonly id: string } | undefined
      for (let read = 0; read < maxRead; read += pageSize) {
        const page = await store.calls({ ...exact(filter), before, limit: pageSize })
        if (!page) return undefined
        for (const call of page) {
          const { steps: _, ...view } = storedCallView(call, shown)
          if (fits(view, filter)) found.push(view)
          if (found.length === limit) return found
        }
        before = page.at(-1)
        if (page.length < pageSize) break
      }
      return found
    },
    async call(id) {
      await recorder.flush()
      const found = await store.call(id)
      if (!found) return undefined
      const children = found.children.map((child) => {
        const { steps: _, ...view } = storedCallView(child, shown)
        return view
      })
      return { ...storedCallView(found.call, shown), children }
    },
    latest: async (limit) => (await store.calls({ from: 0, to: Number.MAX_SAFE_INTEGER, limit })) ?? [],
  }
}

/** What the store can compare. `fits` checks the rest. */
const exact = ({ from, to, agent, server, name, operation, outcome }: RecordFilter & HistoryRange) => ({
  ...{ from, to, agent, server, name, operation, outcome },
})

const none = createLatencies()

function latenciesOf({ latencies: packed }: TallySum) {
  const latencies = createLatencies()
  addPacked(latencies, packed)
  return latencies
}
