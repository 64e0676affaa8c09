import type { View } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import { costOf } from '../core/costs.ts'
import { defaultAgent } from '../policy/agents.ts'
import type { TokenAccount } from '../serve/admin/contract.ts'
import type { World } from '../world/world.ts'

/** What tools cost a model's context (B8): for admins of a client that may use everything, for others of their own. */
export const tokenAccount = (caller: Caller, world: World): TokenAccount =>
  caller.admin ? accountOfAll(world, caller.agent) : accountOf(world.catalog.view(caller))

/** The account of a client that may use everything, and is shown tools as this agent is. */
export const accountOfAll = ({ catalog, policy }: World, agent: string = defaultAgent): TokenAccount =>
  accountOf({ shown: (exposure = policy.exposureOf(agent)) => catalog.shown(exposure) })

/** What all of the tools cost, what is shown of them, and what that saves. */
export function accountOf({ shown }: Pick<View, 'shown'>): TokenAccount {
  const direct = costOf(shown('direct'))
  const exposed = costOf(shown())
  return { direct, exposed, saved: Math.max(0, direct - exposed) }
}
