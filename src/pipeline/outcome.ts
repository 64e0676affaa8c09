import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Outcome } from '../core/observer.ts'
import type { Result } from '../core/result.ts'

const answered: Outcome = { kind: 'answered' }
const toolError: Outcome = { kind: 'tool_error' }

/** How a call ended that has a result; a refusal may be told in the form of one. */
export const outcomeOf = ({ refusal, isError }: Result): Outcome =>
  refusal ? failureOf(refusal) : isError ? toolError : answered

/** How a call ended that has none. */
export function failureOf(thrown: unknown): Outcome {
  if (thrown instanceof ServerError) return { kind: 'failed', code: codeOf(thrown) }
  const { code, kind } = ToolwayError.from(thrown).truth
  return { kind: kind.denial ? 'denied' : 'failed', code }
}

/** What a failure is called: by our code, or by the number of a server's own error, if that is one at all. */
export function codeOf(thrown: unknown): string {
  if (!(thrown instanceof ServerError)) return ToolwayError.from(thrown).truth.code
  const code: unknown = thrown.error.value?.code
  return `rpc ${typeof code === 'number' ? code : 'unknown'}`
}
