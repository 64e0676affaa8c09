import type { ServerResponse } from 'node:http'
import type { Caller } from '../../core/call.ts'
import { acquireLease } from '../../core/lease.ts'
import type { Membership } from '../../core/membership.ts'
import type { HttpRequest } from '../http1/request.ts'
import { type InboundRequest, isObject, type Params } from '../inbound.ts'
import { handedOver, handOver } from './hand-over.ts'

export interface EnvironmentsOptions {
  readonly membership: Membership
  /** The environment that a call of a tool names, if it names one. */
  environmentOf(caller: Caller, tool: string, args: Params): Promise<string | undefined> | undefined
}

/** A request of the stateless era, and the call that is in it. */
export interface CallComing {
  readonly request: HttpRequest
  readonly response: ServerResponse
  readonly body: Buffer
}

/** True where another replica has answered. Undefined where nobody needs to be asked. */
export type LeadCall = (
  called: InboundRequest & { readonly caller: Caller },
  coming: CallComing,
) => Promise<boolean> | undefined

/**
 * The variables of a named environment live in one replica (S7, B10). Who has no session comes to any of them: a program
 * for an environment is led to the one that holds it.
 */
export function leadToEnvironments({ membership, environmentOf }: EnvironmentsOptions): LeadCall {
  return ({ method, params, caller }, coming) => {
    const { name, arguments: args } = params
    if (method !== 'tools/call' || typeof name !== 'string' || !isObject(args)) return undefined
    // Whoever has handed it over has found it to be ours.
    if (handedOver(coming.request, membership)) return undefined
    return environmentOf(caller, name, args)?.then(
      async (environment) => environment !== undefined && lead(environment, coming),
    )
  }

  async function lead(environment: string, coming: CallComing): Promise<boolean> {
    const found = await acquireLease(membership, environment)
    if (!('heldBy' in found)) return false
    const { heldBy, address } = found
    if (await handOver({ ...coming, address, membership })) return true
    membership.unreachable(heldBy)
    await acquireLease(membership, environment, heldBy)
    return false
  }
}
