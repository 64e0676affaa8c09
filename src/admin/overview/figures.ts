import type { Caller } from '../../core/call.ts'
import { invalidArguments } from '../../core/errors.ts'
import type { Run } from '../../core/history.ts'
import { statisticsOperation } from '../../core/observer.ts'
import { hourMs } from '../../lib/duration.ts'
import { createLatencies, latencyBucket } from '../../lib/latency-histogram.ts'
import {
  count,
  noCounts,
  pointOf,
  seriesOf as seriesOfPoints,
  figuresOf as totalOf,
} from '../../telemetry/stats/stats.ts'
import type { AdminContext } from '../context.ts'
import type { CallView, Figures, Series, SeriesQuery, Stats, StatsQuery } from '../contract.ts'
import { maySeeAllFigures } from '../tools/visibility.ts'

export type VisibleFigures = ReturnType<typeof createFigures>

const overviewMs = 60_000
const ownCallsMs = 500

/** Call statistics. Non-admins see only statistics about their own agent's calls. */
export function createFigures(context: AdminContext) {
  const { stats, calls, current, clock, history, startedAt, worker } = context
  const all = (caller: Caller) => maySeeAllFigures(caller, current())
  let latest: { readonly agent: string; readonly at: number; readonly calls: readonly CallView[] } | undefined
  /** Recent calls by the caller's agent. Cached briefly, because one response may need figures for many servers. */
  const own = ({ agent }: Caller): readonly CallView[] => {
    const at = clock.now()
    if (latest?.agent === agent && at - latest.at < ownCallsMs) return latest.calls
    latest = { agent, at, calls: calls.list({ agent }, Number.MAX_SAFE_INTEGER) }
    return latest.calls
  }

  return {
    lately(caller: Caller): Figures {
      if (all(caller)) return stats.recent(overviewMs)
      const since = clock.now() - overviewMs
      const lately = own(caller).filter(({ at }) => at >= since)
      return figuresOfCalls(lately, overviewMs)
    },
    of(caller: Caller, by: Stats['by'], name: string): Figures {
      if (all(caller)) return stats.of(by, name)
      const found = countedCalls(own(caller), by).filter((call) => nameBy[by](call) === name)
      const since = found.at(-1)?.at ?? clock.now()
      return figuresOfCalls(found, clock.now() - since)
    },
    /** The start of the period that `of` covers. */
    since: (caller: Caller): number =>
      all(caller) ? stats.table('operation').since : (own(caller).at(-1)?.at ?? clock.now()),
    async series(
      caller: Caller,
      { to = clock.now(), from = to - hourMs, server, tool: name }: SeriesQuery,
    ): Promise<Series> {
      checkRange(from, to)
      const every = all(caller) && server === undefined && name === undefined
      // Memory has finer steps than the history, but only of this process.
      if (every && (!history || (from >= startedAt && !worker))) return stats.series(from, to)
      const agent = all(caller) ? undefined : caller.agent
      const past = await history?.past.series({ from, to, agent, server, name })
      if (past) return past
      if (every) return stats.series(from, to)
      const known = agent === undefined ? calls.list({}, Number.MAX_SAFE_INTEGER) : own(caller)
      const matching = known.filter(
        (call) => (server ?? call.server) === call.server && (name ?? call.name) === call.name,
      )
      return seriesOfCalls(matching, from, to, [startedAt, clock.now()])
    },
    async stats(caller: Caller, { by, from, to = clock.now() }: StatsQuery): Promise<Stats> {
      if (from !== undefined) checkRange(from, to)
      const agent = all(caller) ? undefined : caller.agent
      const past = await history?.past.stats(by, { from: from ?? 0, to, agent })
      if (past) return past
      if (from === undefined && all(caller)) return stats.table(by)
      const known = agent === undefined ? calls.list({}, Number.MAX_SAFE_INTEGER) : own(caller)
      return statsOfCalls(
        known.filter(({ at }) => at >= (from ?? 0) && at < to),
        by,
        to,
      )
    },
  }
}

function checkRange(from: number, to: number): void {
  if (from >= to) throw invalidArguments('`from` must be before `to`.')
}

function tallyOf(calls: readonly CallView[]) {
  const counts = noCounts()
  const latencies = createLatencies()
  for (const { outcome, cache, ms } of calls) {
    if (outcome === 'running' || ms === null) continue
    const bucket = latencyBucket(ms)
    if (count(counts, outcome, cache ?? undefined, ms)) latencies[bucket] = (latencies[bucket] as number) + 1
  }
  return [counts, latencies] as const
}

/** Computes figures from a list of calls, for callers who may see only their own agent's calls. */
export const figuresOfCalls = (calls: readonly CallView[], ms: number): Figures => totalOf(...tallyOf(calls), ms)

const maxSeriesPoints = 200
const minStepMs = 1_000

export function seriesOfCalls(calls: readonly CallView[], from: number, to: number, run: Run): Series {
  const stepMs = Math.max(minStepMs, Math.ceil((to - from) / maxSeriesPoints / minStepMs) * minStepMs)
  const steps = Map.groupBy(calls, ({ at }) => Math.floor(at / stepMs) * stepMs)
  return seriesOfPoints({ from, to }, stepMs, [run], (at) => pointOf(at, ...tallyOf(steps.get(at) ?? []), stepMs))
}

const nameBy: Readonly<Record<Stats['by'], (call: CallView) => string>> = {
  agent: ({ agent }) => agent,
  server: ({ server }) => server,
  operation: ({ operation, server, name }) => statisticsOperation(operation, server, name),
  'agent-operation': ({ agent, operation, server, name }) => `${agent}.${statisticsOperation(operation, server, name)}`,
  tool: ({ server, name }) => `${server}.${name}`,
}

/** The calls to count. Statistics by tool count only tool calls; all other statistics count every call. */
const countedCalls = (calls: readonly CallView[], by: Stats['by']) =>
  by === 'tool' ? calls.filter(({ operation }) => operation === 'call_tool') : calls

export function statsOfCalls(calls: readonly CallView[], by: Stats['by'], now: number): Stats {
  const since = calls.reduce((oldest, { at }) => Math.min(oldest, at), now)
  const rows = [...Map.groupBy(countedCalls(calls, by), nameBy[by])].map(([name, some]) => ({
    name,
    ...figuresOfCalls(some, now - since),
  }))
  return { by, since, to: now, rows: rows.sort((one, another) => another.calls - one.calls) }
}
