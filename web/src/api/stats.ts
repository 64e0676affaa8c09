import type { Figures, Stats } from '../../../src/serve/admin/contract.ts'
import { query } from '../routing/location.ts'
import { parseRange, rangeBounds, type TimeRange } from '../routing/time-range.ts'
import { queries } from './endpoints.ts'
import { type Resource, useResource } from './resource.ts'

/** Statistics over the time range in the address. */
export function useStats(by: Stats['by']): Resource<Stats> & { readonly range: TimeRange } {
  const range = parseRange(query.value)
  const load = (signal: AbortSignal) => {
    const { from, to } = rangeBounds(range, Date.now())
    return queries.stats(by, from, to)(signal)
  }
  const polling = 'last' in range ? { pollEveryMs: 10_000 } : {}
  return { ...useResource(load, JSON.stringify([by, range]), polling), range }
}

const noFigures: Figures = {
  ...{ calls: 0, errors: 0, denials: 0, perSecond: 0 },
  ...{ averageMs: null, p50Ms: null, p95Ms: null, p99Ms: null },
}

/** The figures of one server, tool, agent or operation. */
export const figuresIn = (stats: Stats | undefined, name: string): Figures =>
  stats?.rows.find((row) => row.name === name) ?? noFigures
