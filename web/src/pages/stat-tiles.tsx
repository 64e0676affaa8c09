import type { Figures } from '../../../src/serve/admin/contract.ts'
import { Tile, Tiles } from '../components/tiles.tsx'
import { formatDuration } from '../format/duration.ts'
import { formatCount, formatExactCount, formatRate, formatShare } from '../format/number.ts'

export function StatTiles({ of, label }: { readonly of: Figures; readonly label: string }) {
  return (
    <Tiles label={label}>
      <Tile
        name="Calls"
        value={formatCount(of.calls)}
        title={formatExactCount(of.calls)}
        detail={`${formatRate(of.perSecond)} per second`}
      />
      <Tile name="p50" value={formatDuration(of.p50Ms)} detail="half are faster" />
      <Tile name="p95" value={formatDuration(of.p95Ms)} detail={`average ${formatDuration(of.averageMs)}`} />
      <Tile name="p99" value={formatDuration(of.p99Ms)} detail="1 in 100 is slower" />
      <Tile
        name="Errors"
        value={formatCount(of.errors)}
        detail={of.calls === 0 ? 'no calls' : `${formatShare(of.errors, of.calls)} of calls`}
      />
      <Tile name="Denials" value={formatCount(of.denials)} detail="by a rule or a limit" />
    </Tiles>
  )
}
