import type { Caller } from '../../core/call.ts'
import { invalidArguments } from '../../core/errors.ts'
import { statisticsOperation } from '../../core/observer.ts'
import { hourMs } from '../../lib/duration.ts'
import type { CallView, Figures, Series, Stats } from '../../serve/admin/contract.ts'
import type { AdminService } from '../../serve/admin/service.ts'
import { withGaps } from '../../telemetry/stats/stats.ts'
import type { AdminContext } from './context.ts'
import { maySeeAllFigures } from './visibility.ts'

/** Call statistics. Non-admins see only statistics about their own agent's calls. */
export interface VisibleFigures extends Pick<AdminService, 'series' | 'stats'> {
  lately(caller: Caller): Figures
  of(caller: Caller, by: Stats['by'], name: string): Figures
  /** The start of the period that `of` covers. */
  since(caller: Caller): number
  /** The filter for the calls that a caller may see. */
  callsOf(caller: Caller): { readonly agent?: string }
}

const overviewMs = 60_000
const keptMs = 500

export function createFigures(context: AdminContext): VisibleFigures {
  const { stats, calls, current, clock, history, startedAt, worker } = context
  const all = (caller: Caller) => maySeeAllFigures(caller, current())
  let latest: { readonly agent: string; readonly at: number; readonly calls: readonly CallView[] } | undefined
  /** Recent calls by the caller's agent. Cached briefly, because one response may need figures for many servers. */
  const own = ({ agent }: Caller): readonly CallView[] => {
    const at = clock.now()
    if (latest?.agent === agent && at - latest.at < keptMs) return latest.calls
    latest = { agent, at, calls: calls.list({ agent }, Number.MAX_SAFE_INTEGER) }
    return latest.calls
  }

  return {
    lately(caller) {
      if (all(caller)) return stats.recent(overviewMs)
      const since = clock.now() - overviewMs
      const lately = own(caller).filter(({ at }) => at >= since)
      return figuresOf(lately, overviewMs)
    },
    of(caller, by, name) {
      if (all(caller)) return stats.of(by, name)
      const found = counted(own(caller), by).filter((call) => nameBy[by](call) === name)
      const since = found.at(-1)?.at ?? clock.now()
      return figuresOf(found, clock.now() - since)
    },
    since: (caller) => (all(caller) ? stats.table('operation').since : (own(caller).at(-1)?.at ?? clock.now())),
    callsOf: (caller) => (caller.admin ? {} : { agent: caller.agent }),
    async series(caller, { to = clock.now(), from = to - hourMs, server, tool: name }) {
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
      return withGaps(seriesOf(matching, from, to), [[startedAt, clock.now()]])
    },
    async stats(caller, { by, from, to = clock.now() }) {
      if (from !== undefined) checkRange(from, to)
      const agent = all(caller) ? undefined : caller.agent
      const past = await history?.past.stats(by, { from: from ?? 0, to, agent })
      if (past) return past
      if (from === undefined && all(caller)) return stats.table(by)
      const known = agent === undefined ? calls.list({}, Number.MAX_SAFE_INTEGER) : own(caller)
      return statsOf(
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

/** Computes figures from a list of calls, for callers who may see only their own agent's calls. */
export function figuresOf(calls: readonly CallView[], ms: number): Figures {
  const over = calls.filter(({ outcome }) => outcome !== 'running')
  const denials = over.filter(({ outcome }) => outcome === 'denied').length
  // Denials and cache hits take hardly any time and would hide how long the servers take.
  const isTimed = ({ outcome, cache }: CallView) => outcome !== 'denied' && cache !== 'hit'
  const times = over.flatMap((call) => (isTimed(call) && call.ms !== null ? [call.ms] : [])).sort(ascending)
  const at = (part: number) => times[Math.ceil(times.length * part) - 1] ?? null
  return {
    calls: over.length,
    errors: over.filter(({ outcome }) => outcome === 'failed' || outcome === 'tool_error').length,
    denials,
    perSecond: ms > 0 ? (over.length * 1000) / ms : 0,
    averageMs: times.length === 0 ? null : times.reduce((sum, time) => sum + time, 0) / times.length,
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    p99Ms: at(0.99),
  }
}

const ascending = (one: number, another: number) => one - another

const maxPoints = 200
const minStepMs = 1_000

export function seriesOf(calls: readonly CallView[], from: number, to: number): Series {
  const stepMs = Math.max(minStepMs, Math.ceil((to - from) / maxPoints / minStepMs) * minStepMs)
  const first = Math.floor(from / stepMs) * stepMs
  const steps = Map.groupBy(calls, ({ at }) => Math.floor(at / stepMs) * stepMs)
  const count = Math.ceil((to - first) / stepMs)
  const points = Array.from({ length: count }, (_, index) => {
    const at = first + index * stepMs
    const within = steps.get(at) ?? []
    const cached = (kind: CallView['cache']) => within.filter(({ cache }) => cache === kind)
    const hits = cached('hit')
    return {
      at,
      ...figuresOf(within, stepMs),
      toolErrors: within.filter(({ outcome }) => outcome === 'tool_error').length,
      cacheHits: hits.length,
      cacheMisses: cached('miss').length,
      hitMs: hits.length === 0 ? null : hits.reduce((sum, { ms }) => sum + (ms ?? 0), 0) / hits.length,
    }
  })
  return { from, to, stepMs, points }
}

const nameBy: Readonly<Record<Stats['by'], (call: CallView) => string>> = {
  agent: ({ agent }) => agent,
  server: ({ server }) => server,
  operation: ({ operation, server, name }) => statisticsOperation(operation, server, name),
  'agent-operation': ({ agent, operation, server, name }) => `${agent}.${statisticsOperation(operation, server, name)}`,
  tool: ({ server, name }) => `${server}.${name}`,
}

/** The calls to count. Statistics by tool count only tool calls; all other statistics count every call. */
const counted = (calls: readonly CallView[], by: Stats['by']) =>
  by === 'tool' ? calls.filter(({ operation }) => operation === 'call_tool') : calls

export function statsOf(calls: readonly CallView[], by: Stats['by'], now: number): Stats {
  const since = calls.reduce((oldest, { at }) => Math.min(oldest, at), now)
  const rows = [...Map.groupBy(counted(calls, by), nameBy[by])].map(([name, some]) => ({
    name,
    ...figuresOf(some, now - since),
  }))
  return { by, since, to: now, rows: rows.sort((one, another) => another.calls - one.calls) }
}
