import { streamState } from '../api/live.ts'
import { streamLooks } from '../parts/looks.ts'
import { Mark } from '../parts/mark.tsx'

const meanings = {
  live: 'Events arrive as they happen.',
  reconnecting: 'The stream of events broke; it is being opened again. What you see may be a few seconds old.',
  offline: 'Toolway sends nothing. Pages show what was last known, and ask again by themselves.',
} as const

/** Whether what is seen is fresh. */
export function LiveState() {
  const state = streamState.value
  return (
    <span class="live" title={meanings[state]}>
      <Mark look={streamLooks[state]} />
    </span>
  )
}
