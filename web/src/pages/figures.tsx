import type { Figures } from '../../../src/serve/admin/contract.ts'
import { took } from '../format/duration.ts'
import { count, exactCount, rate, share } from '../format/number.ts'
import { Tile, Tiles } from '../parts/tile.tsx'

export function FigureTiles({ of, label }: { readonly of: Figures; readonly label: string }) {
  return (
    <Tiles label={label}>
      <Tile
        name="Calls"
        value={count(of.calls)}
        title={exactCount(of.calls)}
        sub={`${rate(of.perSecond)} per second`}
      />
      <Tile name="p50" value={took(of.p50Ms)} sub="half are faster" />
      <Tile name="p95" value={took(of.p95Ms)} sub={`average ${took(of.averageMs)}`} />
      <Tile name="p99" value={took(of.p99Ms)} sub="1 in 100 is slower" />
      <Tile
        name="Errors"
        value={count(of.errors)}
        sub={of.calls === 0 ? 'no calls' : `${share(of.errors, of.calls)} of calls`}
      />
      <Tile name="Denials" value={count(of.denials)} sub="by a rule or a limit" />
    </Tiles>
  )
}
