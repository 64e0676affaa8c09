import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import type { Observer } from '../../core/observer.ts'
import { careful } from '../metrics/careful.ts'
import { count } from './counts.ts'
import { type Figures, figuresOf } from './figures.ts'
import { latencyBucket } from './latencies.ts'
import { createHistory, type Series } from './series.ts'
import { createTallies, createTally, type Tallies, type Tally } from './tallies.ts'
import { createWatched } from './watched.ts'

export type By = 'agent' | 'server' | 'operation' | 'tool'

/** One row for each name, those with the most calls first. */
export interface StatsTable {
  readonly by: By
  readonly since: number
  readonly rows: readonly (Figures & { readonly name: string })[]
}

export interface CallStats {
  readonly observer: Observer
  table(by: By): StatsTable
  /** Of one agent, server, operation or tool (`server.name`); zeros where it was never called. */
  of(by: By, name: string): Figures
  /** Of everything since the start. */
  total(): Figures
  /** Of everything in the last so many milliseconds; or of one agent, as far as somebody has looked at it before. */
  recent(ms: number, agent?: string): Figures
  series(from: number, to: number, agent?: string): Series
}

export interface StatsOptions {
  readonly clock: Clock
  /** Takes secrets out of names that are shown. */
  redact(text: string): string
}

/** How many names are told apart. Each takes two kilobytes, so that all of them take three megabytes at most. */
const most: Readonly<Record<By, number>> = { agent: 250, server: 250, operation: 30, tool: 1000 }

/** How many agents are followed over time at once. */
const maxWatched = 8

/** Counts and times by agent, server, operation and tool since the start, and over time (G9). */
export function createStats({ clock, redact }: StatsOptions): CallStats {
  const since = clock.now()
  const start = clock.monotonic()
  const shown = careful(redact)
  const all = createTally()
  const history = createHistory()
  const watched = createWatched(maxWatched)
  const historyOf = (agent: string | undefined) => (agent === undefined ? history : watched.of(agent))
  const tallies: Readonly<Record<By, Tallies>> = {
    agent: createTallies(most.agent),
    server: createTallies(most.server),
    operation: createTallies(most.operation),
    tool: createTallies(most.tool),
  }
  const known = new WeakMap<Entry, { readonly server: Tally; readonly tool: Tally | undefined }>()
  const talliesOf = (entry: Entry) => {
    const tool = entry.kind === 'tool' ? tallies.tool.of(`${entry.server}.${entry.name}`) : undefined
    const made = { server: tallies.server.of(entry.server), tool }
    known.set(entry, made)
    return made
  }
  const soFar = ({ counts, latencies }: Tally): Figures => figuresOf(counts, latencies, clock.monotonic() - start)
  const never = createTally()

  return {
    observer: {
      ended(observed) {
        const { call, operation, ms, outcome } = observed
        const bucket = latencyBucket(ms)
        const { server, tool } = known.get(call.entry) ?? talliesOf(call.entry)
        const add = ({ counts, latencies }: Tally) => count(counts, latencies, outcome.kind, ms, bucket)
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
      rows: [...tallies[by].all()]
        .map(([name, tally]) => ({ name: shown(name), ...soFar(tally) }))
        .sort((one, another) => another.calls - one.calls),
    }),
    of: (by, name) => soFar(tallies[by].find(name) ?? never),
    total: () => soFar(all),
    recent(ms, agent) {
      // A gateway that has just begun is not as idle as the time before that makes it look.
      return historyOf(agent).figures(ms, clock.now(), Math.min(ms, clock.monotonic() - start))
    },
    series: (from, to, agent) => historyOf(agent).series(from, to, clock.now()),
  }
}
