import { streamState } from '../api/live.ts'
import { streamLooks } from '../parts/looks.ts'
import { Mark } from '../parts/mark.tsx'

const meanings = {
  live: 'Connected. Updates arrive as they happen.',
  reconnecting: 'Connection lost; reconnecting. Data may be a few seconds old.',
  offline: 'Cannot reach Toolway. Pages show the last known data and retry automatically.',
} as const

export function LiveState() {
  const state = streamState.value
  return (
    <span class="live" title={meanings[state]}>
      <Mark look={streamLooks[state]} />
    </span>
  )
}
