import type { Signal } from '@preact/signals'
import type { CallView } from '../../../../src/serve/admin/contract.ts'
import { liveCalls } from '../../api/live.ts'
import { count } from '../../format/number.ts'
import { Icon } from '../../parts/icon.tsx'

/** Pauses the list and counts the calls that arrive meanwhile. */
export function PauseButton({ paused }: { readonly paused: Signal<readonly CallView[] | undefined> }) {
  const held = paused.value
  const known = new Set(held?.map(({ id }) => id))
  const missed = held ? liveCalls.value.filter(({ id }) => !known.has(id)).length : 0
  return (
    <>
      {held && <span class="quiet">{count(missed)} new</span>}
      <button
        type="button"
        class="button"
        data-pause
        title={held ? 'Resume live updates (p)' : 'Pause live updates (p)'}
        onClick={() => (paused.value = held ? undefined : liveCalls.peek())}
      >
        <Icon name={held ? 'play' : 'pause'} size={14} /> {held ? 'Resume' : 'Pause'}
      </button>
    </>
  )
}
