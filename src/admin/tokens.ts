import type { Served } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { TokenAccount } from '../serve/admin/contract.ts'
import { tokensOf } from '../tools/meta/tokens.ts'
import type { World } from '../world/world.ts'
import { partsOf, toolsSeenBy } from './sight.ts'

/** What the tools that somebody sees cost a model's context: all, what is shown of them, and what that saves (B8). */
export function tokenAccount(caller: Caller, world: World): TokenAccount {
  const direct = cost(toolsSeenBy(caller, world))
  const exposure = world.policy.exposureOf(caller.agent)
  const meta = exposure === 'direct' ? 0 : cost(partsOf(world.catalog.everything('tool')).meta)
  const exposed = exposure === 'direct' ? direct : exposure === 'both' ? direct + meta : meta
  return { direct, exposed, saved: Math.max(0, direct - exposed) }
}

const known = new WeakMap<readonly Served[], number>()

/** Added up once for each list. */
function cost(tools: readonly Served[]): number {
  const before = known.get(tools)
  if (before !== undefined) return before
  const sum = tools.reduce((total, { name, entry }) => total + tokensOf(name, entry.definition), 0)
  known.set(tools, sum)
  return sum
}
