import type { Figures } from '../../../src/serve/admin/contract.ts'
import { Tile, Tiles } from '../components/tiles.tsx'
import { RelativeTime } from '../components/times.tsx'
import { formatDuration } from '../format/duration.ts'
import { formatCount, formatExactCount, formatRate, formatShare } from '../format/number.ts'

interface StatTilesProps {
  readonly stats: Figures
  readonly label: string
  /** The start of the period, if it is known. */
  readonly since?: number
}

export function StatTiles({ stats, label, since }: StatTilesProps) {
  return (
    <Tiles label={label}>
      <Tile
        name="Calls"
        value={formatCount(stats.calls)}
        title={formatExactCount(stats.calls)}
        detail={
          since === undefined ? (
            `${formatRate(stats.perSecond)} per second`
          ) : (
            <>
              since <RelativeTime at={since} />
            </>
          )
        }
      />
      <Tile name="p50" value={formatDuration(stats.p50Ms)} detail="half are faster" />
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
