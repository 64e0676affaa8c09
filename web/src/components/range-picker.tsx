import { formatClockTime } from '../format/time.ts'
import { setQuery } from '../routing/location.ts'
import { type Preset, rangeQuery, type TimeRange } from '../routing/time-range.ts'
import { now } from '../shell/now.ts'
import { Icon } from './icon.tsx'
import { SegmentedControl } from './segmented-control.tsx'

const rangeNames: Readonly<Record<Preset, string>> = {
  '5m': '5 min',
  '15m': '15 min',
  '1h': '1 h',
  '6h': '6 h',
  '24h': '24 h',
}

/** Selects the time range for the charts. Any other range can be selected by dragging across a chart. */
export function RangePicker({ range }: { readonly range: TimeRange }) {
  return (
    <>
      {'from' in range && (
        <button
          type="button"
          class="button"
          title="Back to the last 15 minutes"
          onClick={() => setQuery(rangeQuery({ last: '15m' }))}
        >
          {formatClockTime(range.from, now.peek())} – {formatClockTime(range.to, now.peek())}{' '}
          <Icon name="close" size={12} />
        </button>
      )}
      <SegmentedControl
        label="Time range"
        options={rangeNames}
        value={'last' in range ? range.last : undefined}
        onChange={(last) => setQuery(rangeQuery({ last }))}
      />
    </>
  )
}
