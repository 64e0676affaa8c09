import type { CallDetail } from '../../../../src/admin/contract.ts'
import { formatDuration } from '../../format/duration.ts'
import { now } from '../../shell/now.ts'
import { timelineBars } from './timeline-bars.ts'

export function Timeline({ call }: { readonly call: CallDetail }) {
  const bars = timelineBars(call, now.value)
  const isSent = call.outcome === 'running' || call.steps.some(({ name }) => name === 'attempt')
  return (
    <>
      {!isSent && <p class="quiet">This call was never sent to a server: it was refused, or Toolway answered it.</p>}
      <ol class="timeline">
        {bars.map((bar) => (
          <li key={`${bar.name} ${bar.startMs}`}>
            <span class="row spread">
              <span>
                {bar.name}
                {bar.error !== null && <span class="tone-bad"> {bar.error}</span>}
              </span>
              <span class="quiet">
                {bar.startMs > 0 && `after ${formatDuration(bar.startMs)}, `}
                {bar.ms === null ? 'still running' : formatDuration(bar.ms)}
              </span>
            </span>
            <span class="track" aria-hidden="true">
              <span
                class={bar.error === null ? '' : 'failed'}
                style={{ left: `${bar.left}%`, width: `${bar.width}%` }}
              />
            </span>
          </li>
        ))}
      </ol>
    </>
  )
}
