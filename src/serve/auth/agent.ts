import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { ReceivedRequest } from '../http/request.ts'
import { isObject, type Params } from '../inbound-message.ts'
import type { StepUp } from './identity.ts'

/** The agent that an HTTP request asks to act as (G7): by header, else by query. */
export function agentOfRequest({ headers, url = '' }: Pick<ReceivedRequest, 'headers' | 'url'>): string | undefined {
  const named = headers['toolway-agent']
  if (typeof named === 'string') return named
  const query = url.indexOf('?')
  return query < 0 ? undefined : (new URLSearchParams(url.slice(query + 1)).get('agent') ?? undefined)
}

/** The agent that a message itself names, which counts more than what it travelled with. */
export function agentOfParams({ _meta }: Params): string | undefined {
  const named = isObject(_meta) ? _meta['dev.toolway/agent'] : undefined
  if (named === undefined || typeof named === 'string') return named
  throw new ToolwayError('INVALID_AGENT_ID', 'The "dev.toolway/agent" in "_meta" must be the name of an agent.')
}

/** The agent that somebody acts as. Who asks for one that they may not be is refused, and that is written down. */
export function agentFor(
  access: Pick<Access, 'agentOf' | 'rejected'>,
  who: Pick<Caller, 'agents' | 'principal' | 'address'> & StepUp,
  asked: string | undefined,
): string {
  try {
    return access.agentOf(who, asked)
  } catch (thrown) {
    const { principal, address } = who
    const { code, message, details } = ToolwayError.from(thrown)
    access.rejected({
      principal,
      code,
      ...(address !== undefined && { address }),
      ...(asked !== undefined && { asked }),
    })
    const challenge = asked === undefined ? undefined : who.stepUp?.(asked)
    throw challenge === undefined ? thrown : new ToolwayError(code, message, { ...details, challenge })
  }
}

/**
 * The caller as the agent that it asks for now, else asked for when it came. What that comes to is decided anew each
 * time: the rules, and who may be whom, may have changed since.
 */
export function actingAs(access: Pick<Access, 'agentOf' | 'rejected'>, caller: Caller, asked = caller.asked): Caller {
  const agent = agentFor(access, caller, asked)
  if (agent === caller.agent && asked === caller.asked) return caller
  return { ...caller, agent, ...(asked !== undefined && { asked }) }
}
