import type { Call } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'

/**
 * Whether a call may be sent once more (F12): surely nothing of it reached the server, or the operator says that twice
 * does no harm. A call that timed out has no time left. What our own breaker or bulkhead held back is not repeated
 * either: both say when to come back, later than a retry would, and pressing on is what they stand against.
 */
export function isRepeatable(thrown: unknown, { entry, signal }: Call): thrown is ToolwayError {
  if (!(thrown instanceof ToolwayError) || signal.aborted) return false
  const { code, details } = thrown
  // What a call inside this one came to was repeated there, or must not be.
  if (entry.traits.carries || (details.server ?? entry.server) !== entry.server) return false
  if (never.has(code)) return false
  if (details.unsent) return true
  // It was resent in a new session already, where that is safe.
  if (details.sessionEnded) return false
  const harmless = entry.traits.idempotent || entry.traits.readOnly
  return harmless && (code === 'SERVER_UNAVAILABLE' || code === 'OUTCOME_UNKNOWN')
}

const never: ReadonlySet<string> = new Set(['TIMEOUT', 'CANCELLED', 'CIRCUIT_OPEN', 'OVERLOADED'])
