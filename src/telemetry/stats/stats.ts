import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import type { Observer } from '../../core/observer.ts'
import { createLatencies, type Latencies, latencyBucket } from '../../lib/latency-histogram.ts'
import { setBounded } from '../../lib/memoize.ts'
import { other, safeRedact } from '../metrics/family.ts'
import {
  type CallCounts,
  type CallFigures,
  type CallSeries,
  count,
  createHistory,
  figuresOf,
  type History,
  noCounts,
} from './history.ts'

export type By = 'agent' | 'server' | 'operation' | 'tool'

/** Figures by name, sorted by number of calls, highest first. */
export interface StatsTable {
  readonly by: By
  /** The period that the figures cover. */
  readonly since: number
  readonly to: number
  readonly rows: readonly (CallFigures & { readonly name: string })[]
}

export interface CallStats {
  readonly observer: Observer
  table(by: By): StatsTable
  /** The figures for one agent, server, operation or tool (`server.name`). All zeros if it was never called. */
  of(by: By, name: string): CallFigures
  total(): CallFigures
  /** The figures for the last `ms`. An agent's calls are counted only after the first query for its figures. */
  recent(ms: number, agent?: string): CallFigures
  series(from: number, to: number, agent?: string): CallSeries
}

export interface CallStatsOptions {
  readonly clock: Clock
  redact(text: string): string
}

/** Counts calls and durations by agent, server, operation and tool: since the start, and over time (G9). */
export function createStats({ clock, redact }: CallStatsOptions): CallStats {
  const since = clock.now()
  const start = clock.monotonic()
  const shown = safeRedact(redact)
  const all = createTally()
  const history = createHistory()
  const watched = createWatched()
  const historyOf = (agent: string | undefined) => (agent === undefined ? history : watched.of(agent))
  // Each name takes two kilobytes, so all names together take at most three megabytes.
  const tallies = {
    agent: createTallies(250),
    server: createTallies(250),
    operation: createTallies(30),
    tool: createTallies(1000),
  }
  const known = new WeakMap<Entry, { readonly server: Tally; readonly tool: Tally | undefined }>()
  const talliesOf = (entry: Entry) => {
    const tool = entry.kind === 'tool' ? tallies.tool.of(`${entry.server}.${entry.name}`) : undefined
    const own = { server: tallies.server.of(entry.server), tool }
    known.set(entry, own)
    return own
  }
  const soFar = ({ counts, latencies }: Tally): CallFigures => figuresOf(counts, latencies, clock.monotonic() - start)
  const never = createTally()

  return {
    observer: {
      ended(observed) {
        const { call, operation, ms, outcome, trail } = observed
        const bucket = latencyBucket(ms)
        const { server, tool } = known.get(call.entry) ?? talliesOf(call.entry)
        const add = ({ counts, latencies }: Tally) => {
          if (count(counts, outcome.kind, trail.cache, ms)) latencies[bucket] = (latencies[bucket] as number) + 1
        }
        add(all)
        add(tallies.agent.of(call.caller.agent))
        add(tallies.operation.of(operation))
        add(server)
        if (tool !== undefined && operation === 'call_tool') add(tool)
        const now = clock.now()
        history.add(now, observed, bucket)
        watched.find(call.caller.agent)?.add(now, observed, bucket)
      },
    },
    table: (by) => ({
      by,
      since,
      to: clock.now(),
      rows: [...tallies[by].known]
        .map(([name, tally]) => ({ name: shown(name), ...soFar(tally) }))
        .sort((one, another) => another.calls - one.calls),
    }),
    of: (by, name) => soFar(tallies[by].known.get(name) ?? never),
    total: () => soFar(all),
    recent(ms, agent) {
      // Shortly after the start, do not count the time before the start as idle.
      return historyOf(agent).figures(ms, clock.now(), Math.min(ms, clock.monotonic() - start))
    },
    series: (from, to, agent) => historyOf(agent).series(from, to, clock.now()),
  }
}

interface Tally {
  readonly counts: CallCounts
  readonly latencies: Latencies
}

const createTally = (): Tally => ({ counts: noCounts(), latencies: createLatencies() })

/** Max characters per name. Longer strings are not names. */
const maxName = 1000

/** Counts calls by name. Callers may make names up, so their number is limited; all further names count as `other`. */
function createTallies(maxNames: number) {
  const known = new Map<string, Tally>()
  const add = (name: string): Tally => {
    const tally = createTally()
    known.set(name, tally)
    return tally
  }
  return {
    of(name: string): Tally {
      const before = known.get(name)
      if (before !== undefined) return before
      const hasRoom = known.size < maxNames && name.length <= maxName
      return hasRoom ? add(name) : (known.get(other) ?? add(other))
    },
    known: known as ReadonlyMap<string, Tally>,
  }
}

const maxWatched = 8

/** The histories of queried agents. A busy agent's may take some megabytes, so the least recently used is evicted. */
function createWatched() {
  const histories = new Map<string, History>()
  return {
    /** An agent's history. Undefined unless the agent was queried before. */
    find: (agent: string) => (histories.size === 0 ? undefined : histories.get(agent)),
    of(agent: string): History {
      const history = histories.get(agent) ?? createHistory()
      setBounded(histories, agent, history, maxWatched)
      return history
    },
  }
}
