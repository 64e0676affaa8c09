import type { Peer } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'

/**
 * The way back from a call inside a program: there is none. A program is nobody's conversation, so whatever needs a
 * person's yes fails closed, and what tools say on their way is as little the caller's concern as what they answer.
 */
export const unasked: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () =>
    Promise.reject(
      new ToolwayError(
        'DENIED_BY_POLICY',
        'Nobody can be asked from inside a program. Call this tool by itself, outside of execute_code, so that a person can answer.',
        { auditReason: 'not_approved' },
      ),
    ),
}
