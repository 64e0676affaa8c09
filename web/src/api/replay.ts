import type { ConfigEdit, PolicyReplay, ReplayStreamEvent } from '../../../src/serve/admin/contract.ts'
import { createEventParser } from './chat.ts'
import { ApiError, fetchResponse } from './request.ts'

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
  const { body } = await fetchResponse('policy/replay', { method: 'POST', body: { edit, days }, signal })
  let last: ReplayStreamEvent | undefined
  const parse = createEventParser((data) => {
    last = JSON.parse(data) as ReplayStreamEvent
    if (last.kind === 'progress') onProgress(last.records)
  })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) parse(chunk.value)
  if (last?.kind === 'end') return last.replay
  if (last?.kind === 'error') throw new ApiError(200, last.code, last.message)
  throw new ApiError(0, 'NO_ANSWER', 'The connection was lost before the replay was complete.')
}
