import { randomUUID } from 'node:crypto'
import type { Caller, Peer } from '../core/call.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { TryResult } from '../serve/admin/contract.ts'
import type { Trial } from '../serve/admin/port.ts'
import { chosenAgent } from './agents.ts'
import type { AdminParts } from './parts.ts'

/**
 * Calls a tool for somebody who looks at the dashboard. It is a call like any other: policy, limits, audit and all that
 * is configured for the agent hold for it. Nobody can be asked on the way, so that what needs a person's yes is refused.
 */
export async function tryTool(
  { access }: AdminParts,
  caller: Caller,
  name: string,
  { arguments: given, agent: asked }: Trial,
  signal: AbortSignal,
): Promise<TryResult> {
  const acting = { ...caller, agent: chosenAgent(access, caller, asked) }
  const { entry } = await access.view(acting).resolve('tool', name)
  const id = randomUUID().slice(19)
  const input = { arguments: given, meta: {} }
  const start = performance.now()
  const told = (result: TryResult['result'], error: TryResult['error']): TryResult => ({
    ...{ call: id, ms: Math.round((performance.now() - start) * 100) / 100 },
    ...{ result, error },
  })
  try {
    const { body } = await access.handle({ id, caller: acting, entry, input, signal, peer: nobody })
    return told(body.value, null)
  } catch (thrown) {
    return told(null, errorOf(thrown))
  }
}

/** What is thrown belongs to the call, and is shown with it; only what nobody expected is for the log. */
function errorOf(thrown: unknown): TryResult['error'] {
  if (thrown instanceof ServerError) {
    const { code, message } = thrown.error.value
    return { code: `rpc ${code}`, message }
  }
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') throw thrown
  const { rule } = error.details
  return { code: error.code, message: error.message, ...(rule !== undefined && { rule }) }
}

const nobody: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () => Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'Nobody can be asked from the dashboard.')),
}
