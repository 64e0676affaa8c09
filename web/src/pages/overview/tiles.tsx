import type { Overview } from '../../../../src/serve/admin/contract.ts'
import { took } from '../../format/duration.ts'
import { count, counted, exactCount, rate, ratio, share } from '../../format/number.ts'
import { Tile, Tiles } from '../../parts/tile.tsx'

/** Call statistics are those of the last minute. */
export function OverviewTiles({ of }: { readonly of: Overview }) {
  const { calls, cache, tokens } = of
  const of100 = (part: number) => (calls.calls === 0 ? 'no calls' : `${share(part, calls.calls)} of calls`)
  return (
    <Tiles label="Statistics">
      <Tile
        name="Calls per second"
        value={rate(calls.perSecond)}
        sub={`${count(calls.calls)} in the last minute`}
        title={exactCount(calls.calls)}
      />
      <Tile
        name="Latency p50"
        value={took(calls.p50Ms)}
        sub={
          calls.p50Ms === null ? (
            'no calls'
          ) : (
            <>
              <span class="nowrap">p95 {took(calls.p95Ms)},</span> <span class="nowrap">p99 {took(calls.p99Ms)}</span>
            </>
          )
        }
      />
      <Tile name="Errors" value={count(calls.errors)} sub={of100(calls.errors)} />
      <Tile name="Denials" value={count(calls.denials)} sub={of100(calls.denials)} />
      <Tile
        name="Cache hit rate"
        value={ratio(cache.hitRate)}
        sub={`${count(cache.hits)} hits · ${count(cache.joined)} joined`}
      />
      <Tile
        name="Tokens saved"
        value={count(tokens.saved)}
        sub={tokens.direct === 0 ? 'no tools yet' : `${share(tokens.saved, tokens.direct)} of ${count(tokens.direct)}`}
      />
      <Tile
        name="In flight"
        value={count(of.inFlight)}
        sub={`${count(of.queued)} queued · ${counted(of.sessions, 'session')}`}
      />
    </Tiles>
  )
}
