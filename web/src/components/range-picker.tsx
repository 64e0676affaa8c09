import { formatClockTime } from '../format/time.ts'
import { setQuery } from '../routing/location.ts'
import { withQuery } from '../routing/query.ts'
import { pathTo } from '../routing/route.ts'
import { type Preset, rangeQuery, type TimeRange } from '../routing/time-range.ts'
import { now } from '../shell/now.ts'
import { Icon } from './icon.tsx'
import { SegmentedControl } from './segmented-control.tsx'

const names: Readonly<Record<Preset, string>> = {
  '5m': '5 min',
  '15m': '15 min',
  '1h': '1 h',
  '6h': '6 h',
  '24h': '24 h',
  '7d': '7 d',
  '30d': '30 d',
}

const longNames: Readonly<Record<Preset, string>> = {
  '5m': '5 minutes',
  '15m': '15 minutes',
  '1h': 'hour',
  '6h': '6 hours',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
}

const formatSpan = (from: number, to: number): string =>
  `${formatClockTime(from, now.peek())} – ${formatClockTime(to, now.peek())}`

/** A range in words, to follow a noun: `in the last hour`. */
export const describeRange = (range: TimeRange): string =>
  'last' in range ? `in the last ${longNames[range.last]}` : `from ${formatSpan(range.from, range.to)}`

/** Selects the time range of everything on the page. Any other range can be selected by dragging across a chart. */
export function RangePicker({ range }: { readonly range: TimeRange }) {
  return (
    <>
      {'from' in range && (
        <>
          <button
            type="button"
            class="button"
            title="Back to the last 15 minutes"
            onClick={() => setQuery(rangeQuery({ last: '15m' }))}
          >
            {formatSpan(range.from, range.to)} <Icon name="close" size={12} />
          </button>
          <a class="button" href={withQuery(pathTo('calls'), rangeQuery(range))}>
            Calls in this range
          </a>
        </>
      )}
      <SegmentedControl
        label="Time range"
        options={names}
        value={'last' in range ? range.last : undefined}
        onChange={(last) => setQuery(rangeQuery({ last }))}
      />
    </>
  )
}
