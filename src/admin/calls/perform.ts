import { randomUUID } from 'node:crypto'
import type { Access } from '../../core/access.ts'
import { type Call, quietPeer, type Trail, waitedMs } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { TryResult } from '../contract.ts'

/** A short id with 62 random bits. */
export const callId = (): string => randomUUID().slice(19)

interface Performed extends Omit<Call, 'id'> {
  readonly id?: string
}

/** Makes a call for the dashboard. Policy, limits and audit apply as they do to any other call. */
export async function perform(access: Access, { id = callId(), ...call }: Performed): Promise<TryResult> {
  const start = performance.now()
  const trail: Trail = { steps: [] }
  const outcome = (result: TryResult['result'], error: TryResult['error']): TryResult => ({
    call: id,
    ms: Math.round((performance.now() - start - waitedMs(trail)) * 100) / 100,
    result,
    error,
  })
  try {
    const { body } = await access.handle({ id, trail, ...call })
    return outcome(body.exact, null)
  } catch (thrown) {
    return outcome(null, errorOf(thrown))
  }
}

/** The error to show in the call's result. Unexpected errors are thrown instead, so that they are logged. */
function errorOf(thrown: unknown): TryResult['error'] {
  if (thrown instanceof ServerError) {
    const { code, message, data } = thrown.error.value
    return { code: `rpc ${code}`, message, data }
  }
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') throw thrown
  const { code, ...details } = error.data
  return { code, message: error.message, ...details }
}

/** The requests from servers that a person at the dashboard can answer. */
export const askable = { elicitation: { form: {}, url: {} }, sampling: {} }

/**
 * A peer for calls without a stream: it cannot answer requests from servers. Calls that need approval wait for people
 * elsewhere.
 */
export const nonInteractive = quietPeer(() =>
  Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'The dashboard cannot answer requests from a tool.')),
)
