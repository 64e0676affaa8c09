import { clockTime } from '../../format/time.ts'
import { Icon } from '../../parts/icon.tsx'
import { Segments } from '../../parts/segments.tsx'
import { setQuery } from '../../routing/location.ts'
import { rangeQuery, type Stretch, type TimeRange } from '../../routing/time-range.ts'
import { now } from '../../shell/now.ts'

const options: Readonly<Record<Stretch, string>> = {
  '5m': '5 min',
  '15m': '15 min',
  '1h': '1 h',
  '6h': '6 h',
  '24h': '24 h',
}

/** Time range of the charts; dragging across a chart selects any other. */
export function RangeChoice({ range }: { readonly range: TimeRange }) {
  return (
    <>
      {'from' in range && (
        <button
          type="button"
          class="button"
          title="Back to the last 15 minutes"
          onClick={() => setQuery(rangeQuery({ last: '15m' }))}
        >
          {clockTime(range.from, now.peek())} – {clockTime(range.to, now.peek())} <Icon name="close" size={12} />
        </button>
      )}
      <Segments
        label="Time range"
        options={options}
        value={'last' in range ? range.last : undefined}
        onChange={(last) => setQuery(rangeQuery({ last }))}
      />
    </>
  )
}
