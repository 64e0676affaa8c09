import type { Call, Caller, Interceptor } from '../core/call.ts'

/** The caller of a call as the agent that it asks for; throws where it may not be that one. */
export type ActAs = (call: Pick<Call, 'caller' | 'entry'>, asked: string) => Caller

/**
 * A caller names its agent in the arguments of a meta-tool (`agent_id`). Audit, statistics, metrics, traces and limits
 * are about that agent, since its rules decide. Where it may not be that one, the tool says so, and the record is about
 * the caller as it came.
 */
export const acting = (actAs: ActAs | undefined): Interceptor[] =>
  actAs ? [(call, next) => next(call.entry.server === metaSource ? asNamed(call, actAs) : call)] : []

const metaSource = 'toolway'

function asNamed(call: Call, actAs: ActAs): Call {
  const { agent_id: asked } = call.input.arguments.value as { readonly agent_id?: unknown }
  if (typeof asked !== 'string') return call
  try {
    return { ...call, caller: actAs(call, asked) }
  } catch {
    return call
  }
}
