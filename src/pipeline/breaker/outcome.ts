import type { Call } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'

/** What a call tells of its server: that it answers, that it fails, or nothing. */
export type Outcome = 'answered' | 'failed' | 'nothing'

/** A timer may be early by a hair, and a place was perhaps waited for. */
const asGoodAsAll = 0.9

/** What it says about a server that a call to it ended with something thrown. Only its own failures count (J3). */
export function outcomeOf(thrown: unknown, call: Call, tookMs: number): Outcome {
  if (thrown instanceof ServerError) return 'answered'
  // Once the call is over, whatever comes of it is the doing of whoever ended it.
  if (call.signal.aborted) return timedOut(call, tookMs) ? 'failed' : 'nothing'
  if (!(thrown instanceof ToolwayError) || !thrown.kind.serverFault) return 'nothing'
  // A server that was restarted forgets sessions, and all calls in one learn of it at the same time.
  return thrown.details.sessionEnded === 'established' ? 'nothing' : 'failed'
}

/** A server that had less time than the operator gives it may have been about to answer. */
function timedOut({ signal, timeoutMs, entry }: Call, tookMs: number): boolean {
  const own = entry.traits.timeoutMs
  const { reason } = signal
  const isTimeout = reason instanceof ToolwayError && reason.code === 'TIMEOUT' && !reason.details.late
  return isTimeout && (timeoutMs ?? own) >= own && tookMs >= own * asGoodAsAll
}
