import type { Figures, Stats } from '../../../src/admin/contract.ts'
import { query } from '../routing/location.ts'
import { parseRange, rangeBounds, type TimeRange } from '../routing/time-range.ts'
import { queries } from './endpoints.ts'
import { type Resource, useResource } from './resource.ts'

/** Statistics over the time range in the address. */
export function useStats(by: Stats['by']): Resource<Stats> & { readonly range: TimeRange } {
  const range = parseRange(query.value)
  const key = JSON.stringify([by, range])
  const load = async (signal: AbortSignal) => {
    const { from, to } = rangeBounds(range, Date.now())
    return { key, stats: await queries.stats(by, from, to)(signal) }
  }
  const { data, ...resource } = useResource(load, key, 'last' in range ? { pollEveryMs: 10_000 } : {})
  // Those of another range are not shown as figures of this one.
  return { ...resource, data: data?.key === key ? data.stats : undefined, range }
}

const noFigures: Figures = {
  ...{ calls: 0, errors: 0, denials: 0, perSecond: 0 },
  ...{ averageMs: null, p50Ms: null, p95Ms: null, p99Ms: null },
}

/** Figures that are not loaded yet. */
type UnknownFigures = { readonly [Name in keyof Figures]?: undefined }

/** The figures of one server, tool, agent or operation. */
export const figuresIn = (stats: Stats | undefined, name: string): Figures | UnknownFigures =>
  stats === undefined ? {} : (stats.rows.find((row) => row.name === name) ?? noFigures)

/** How many of its calls failed, and how many there were. */
export function errorsIn(stats: Stats | undefined, name: string) {
  const { errors, calls } = figuresIn(stats, name)
  return [errors, calls] as const
}
