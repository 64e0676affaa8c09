import type { ConfigEdit, PolicyReplay, ReplayStreamEvent } from '../../../src/admin/contract.ts'
import { streamEvents } from './event-stream.ts'
import { ApiError } from './request.ts'

interface ReplayOptions {
  readonly days: number
  readonly signal: AbortSignal
  /** Called with the number of records read so far. */
  onProgress(records: number): void
}

/** Replays an edit of the policy over recorded calls. Rejects with an ApiError, or if `signal` is aborted. */
export async function replayPolicy(
  edit: ConfigEdit,
  { days, signal, onProgress }: ReplayOptions,
): Promise<PolicyReplay> {
  const last = await streamEvents<ReplayStreamEvent>('policy/replay', {
    body: { edit, days },
    signal,
    onEvent: (event) => event.kind === 'progress' && onProgress(event.records),
    lostMessage: 'The connection was lost before the replay was complete.',
  })
  if (last.kind === 'error') throw new ApiError(200, last.code, last.message)
  return last.replay
}
