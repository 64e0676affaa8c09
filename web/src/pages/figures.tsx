import type { Figures } from '../../../src/serve/admin/contract.ts'
import { formatDuration } from '../format/duration.ts'
import { formatCount, formatExactCount, formatRate, formatShare } from '../format/number.ts'
import { Tile, Tiles } from '../parts/tile.tsx'

export function FigureTiles({ of, label }: { readonly of: Figures; readonly label: string }) {
  return (
    <Tiles label={label}>
      <Tile
        name="Calls"
        value={formatCount(of.calls)}
        title={formatExactCount(of.calls)}
        sub={`${formatRate(of.perSecond)} per second`}
      />
      <Tile name="p50" value={formatDuration(of.p50Ms)} sub="half are faster" />
      <Tile name="p95" value={formatDuration(of.p95Ms)} sub={`average ${formatDuration(of.averageMs)}`} />
      <Tile name="p99" value={formatDuration(of.p99Ms)} sub="1 in 100 is slower" />
      <Tile
        name="Errors"
        value={formatCount(of.errors)}
        sub={of.calls === 0 ? 'no calls' : `${formatShare(of.errors, of.calls)} of calls`}
      />
      <Tile name="Denials" value={formatCount(of.denials)} sub="by a rule or a limit" />
    </Tiles>
  )
}
