import type { QueryChanges } from './query.ts'

/** The lengths of the predefined ranges, in milliseconds. */
export const presets = {
  '5m': 300_000,
  '15m': 900_000,
  '1h': 3_600_000,
  '6h': 21_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
  '30d': 2_592_000_000,
} as const
export type Preset = keyof typeof presets

/** A range that ends now, or a fixed range. */
export type TimeRange = { readonly last: Preset } | { readonly from: number; readonly to: number }

const defaultPreset: Preset = '15m'

export function parseRange(query: URLSearchParams): TimeRange {
  const from = parseTime(query.get('from'))
  const to = parseTime(query.get('to'))
  if (from !== undefined && to !== undefined && from < to) return { from, to }
  const last = query.get('range')
  return { last: last !== null && Object.hasOwn(presets, last) ? (last as Preset) : defaultPreset }
}

/** The query parameters for a range. The default range needs none. */
export const rangeQuery = (range: TimeRange): QueryChanges =>
  'last' in range
    ? { range: range.last === defaultPreset ? undefined : range.last, from: undefined, to: undefined }
    : { range: undefined, from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString() }

export const rangeBounds = (range: TimeRange, now: number): { readonly from: number; readonly to: number } =>
  'last' in range ? { from: now - presets[range.last], to: now } : range

/** Parses a time in ISO 8601 or in milliseconds since the epoch. */
export function parseTime(text: string | null): number | undefined {
  if (text === null || text === '') return undefined
  const at = /^\d+$/.test(text) ? Number(text) : Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}
