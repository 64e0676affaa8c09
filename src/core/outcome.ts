import type { AuditEnd, AuditSubject } from './audit.ts'
import { ServerError, ToolwayError } from './errors.ts'
import type { Result } from './result.ts'

/** How a call ended. `tool_error`: the tool set `isError`. `failed`: Toolway or the server returned an error. */
export interface CallOutcome {
  readonly kind: 'answered' | 'tool_error' | 'denied' | 'failed'
  /** One of our codes, or `rpc -32602` for a server's own error. */
  readonly code?: string
}

/** How a call ended, as its audit record says it. */
export type AuditedEnding = Omit<AuditEnd, keyof AuditSubject | 'latency_ms'>

/** Both views of how a call ended, from one look at its result or error. */
export interface ClassifiedEnd {
  readonly outcome: CallOutcome
  readonly ending: AuditedEnding
}

const answered: CallOutcome = { kind: 'answered' }
const toolError: CallOutcome = { kind: 'tool_error' }

/** Classifies a result, which can also be a refusal. `rule` is the rule that allowed the call. */
export function endOfResult({ refusal, isError, findings, listing }: Result, rule: string): ClassifiedEnd {
  if (refusal) {
    const { outcome, ending } = endOfError(refusal)
    return { outcome, ending: { ...ending, ...listing } }
  }
  const ending = { decision: 'ALLOW', rule, is_error: isError, findings, ...listing } as const
  return { outcome: isError ? toolError : answered, ending }
}

export function endOfError(thrown: unknown): ClassifiedEnd {
  if (thrown instanceof ServerError) {
    const ending = { decision: 'ERROR', reason: 'server_error', is_error: true } as const
    return { outcome: { kind: 'failed', code: errorCodeOf(thrown) }, ending }
  }
  const error = ToolwayError.from(thrown)
  const { code, details } = error.truth
  const decision = error.isDenial ? 'DENY' : code === 'TIMEOUT' ? 'TIMEOUT' : 'ERROR'
  const { rule, auditReason = code.toLowerCase() } = details
  return {
    outcome: { kind: error.isDenial ? 'denied' : 'failed', code },
    ending: { decision, reason: auditReason, rule, code, is_error: true },
  }
}

/** An error's code: our own code, or "rpc" and the number of the server's JSON-RPC error. */
export function errorCodeOf(thrown: unknown): string {
  if (!(thrown instanceof ServerError)) return ToolwayError.from(thrown).truth.code
  const code: unknown = thrown.error.value?.code
  return `rpc ${typeof code === 'number' ? code : 'unknown'}`
}
