import type { Overview } from '../../../../src/admin/contract.ts'
import { Tile, Tiles } from '../../components/tiles.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, formatExactCount, formatRate, formatRatio, formatShare, pluralize } from '../../format/number.ts'

/** The most important figures. The call figures cover the last minute. */
export function OverviewTiles({ overview }: { readonly overview: Overview }) {
  const { calls, cache, tokens } = overview
  const shareOfCalls = (part: number) => (calls.calls === 0 ? 'no calls' : `${formatShare(part, calls.calls)} of calls`)
  return (
    <Tiles label="Statistics">
      <Tile
        name="Calls per second"
        value={formatRate(calls.perSecond)}
        detail={`${formatCount(calls.calls)} in the last minute`}
        title={formatExactCount(calls.calls)}
      />
      <Tile
        name="Latency p50"
        value={formatDuration(calls.p50Ms)}
        detail={
          calls.p50Ms === null ? (
            'no calls'
          ) : (
            <>
              <span class="nowrap">p95 {formatDuration(calls.p95Ms)},</span>{' '}
              <span class="nowrap">p99 {formatDuration(calls.p99Ms)}</span>
            </>
          )
        }
      />
      <Tile name="Errors" value={formatCount(calls.errors)} detail={shareOfCalls(calls.errors)} />
      <Tile name="Denials" value={formatCount(calls.denials)} detail={shareOfCalls(calls.denials)} />
      <Tile
        name="Cache hit rate"
        value={formatRatio(cache.hitRate)}
        detail={`${formatCount(cache.hits)} hits · ${formatCount(cache.joined)} joined`}
      />
      <Tile
        name="Tokens saved"
        value={formatCount(tokens.saved)}
        detail={
          tokens.direct === 0
            ? 'no tools yet'
            : `${formatShare(tokens.saved, tokens.direct)} of ${formatCount(tokens.direct)}`
        }
      />
      <Tile
        name="In flight"
        value={formatCount(overview.inFlight)}
        detail={`${formatCount(overview.queued)} queued · ${pluralize(overview.sessions, 'session')}`}
      />
    </Tiles>
  )
}
