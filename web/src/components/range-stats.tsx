import type { Stats } from '../../../src/admin/contract.ts'
import { figuresIn, useStats } from '../api/stats.ts'
import { formatDuration } from '../format/duration.ts'
import { formatCount, formatExactCount, formatRate, formatShare } from '../format/number.ts'
import { describeRange, RangePicker } from './range-picker.tsx'
import { LoadError } from './states.tsx'
import { Tile, Tiles } from './tiles.tsx'

/** The figures of one server or tool over the time range in the address, and the choice of that range. */
export function RangeStats({ by, name }: { readonly by: Stats['by']; readonly name: string }) {
  const stats = useStats(by)
  return (
    <>
      <div class="row">
        <span class="quiet">Calls {describeRange(stats.range)}</span>
        <RangePicker range={stats.range} />
      </div>
      {stats.error && <LoadError error={stats.error} what="the statistics" retry={stats.reload} />}
      <StatTiles stats={figuresIn(stats.data, name)} label={`Statistics of ${name}`} />
    </>
  )
}

function StatTiles({ stats, label }: { readonly stats: ReturnType<typeof figuresIn>; readonly label: string }) {
  return (
    <Tiles label={label}>
      <Tile
        name="Calls"
        value={formatCount(stats.calls)}
        title={formatExactCount(stats.calls)}
        detail={`${formatRate(stats.perSecond)} per second`}
      />
      <Tile name="p50" value={formatDuration(stats.p50Ms)} detail="half are faster, without cache hits" />
      <Tile name="p95" value={formatDuration(stats.p95Ms)} detail={`average ${formatDuration(stats.averageMs)}`} />
      <Tile name="p99" value={formatDuration(stats.p99Ms)} detail="1 in 100 is slower" />
      <Tile
        name="Errors"
        value={formatCount(stats.errors)}
        detail={stats.calls === 0 ? 'no calls' : `${formatShare(stats.errors, stats.calls)} of calls`}
      />
      <Tile name="Denials" value={formatCount(stats.denials)} detail="by a rule or a limit" />
    </Tiles>
  )
}
