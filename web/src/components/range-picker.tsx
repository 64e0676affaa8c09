import { formatClockTime } from '../format/time.ts'
import { setQuery } from '../routing/location.ts'
import { withQuery } from '../routing/query.ts'
import { pathTo } from '../routing/route.ts'
import { type Preset, rangeBounds, rangeQuery, type TimeRange } from '../routing/time-range.ts'
import { now } from '../shell/now.ts'
import { Button } from './button.tsx'
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

/**
 * Selects the time range of everything on the page. Any other range can be selected by dragging across a chart or, without
 * a pointer, with the buttons that zoom and move.
 */
export function RangePicker({ range }: { readonly range: TimeRange }) {
  return (
    <>
      {'from' in range && (
        <>
          <Button title="Back to the last 15 minutes" onClick={() => setQuery(rangeQuery({ last: '15m' }))}>
            {formatSpan(range.from, range.to)} <Icon name="close" size={12} />
          </Button>
          <a class="button" href={withQuery(pathTo('calls'), rangeQuery(range))}>
            Calls in this range
          </a>
        </>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: not every browser supports flex layout in a fieldset */}
      <div class="segments" role="group" aria-label="Zoom">
        {moves.map(({ name, sign, start, end }) => (
          <button key={name} type="button" aria-label={name} title={name} onClick={() => move(range, start, end)}>
            {sign}
          </button>
        ))}
      </div>
      <SegmentedControl
        label="Time range"
        options={names}
        value={'last' in range ? range.last : undefined}
        onChange={(last) => setQuery(rangeQuery({ last }))}
      />
    </>
  )
}

/** How the bounds of a range move, in parts of its length. */
const moves = [
  { name: 'Earlier', sign: '‹', start: -0.5, end: -0.5 },
  { name: 'Zoom in', sign: '+', start: 0.25, end: -0.25 },
  { name: 'Zoom out', sign: '−', start: -0.5, end: 0.5 },
  { name: 'Later', sign: '›', start: 0.5, end: 0.5 },
] as const

const minRangeMs = 10_000

function move(range: TimeRange, start: number, end: number): void {
  const at = Date.now()
  const bounds = rangeBounds(range, at)
  const length = bounds.to - bounds.from
  const to = Math.min(Math.round(bounds.to + end * length), at)
  const from = Math.round(bounds.from + start * length)
  if (to - from >= minRangeMs) setQuery(rangeQuery({ from, to }))
}
