import type { Caller } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import { conditionsOf } from '../policy/conditions.ts'
import type { Why } from '../policy/explanation.ts'
import type { World } from './world.ts'

/** Whose decision is asked about. Where nobody has shown a credential, they may be refused the agent. */
export interface Asked {
  readonly agent: string
  /** In any spelling. */
  readonly tool: string
  readonly authenticated: boolean
}

/** Whether an agent may use a tool in a world, and by which rule. `operator` is who asks. */
export async function explain(world: World, { agent, tool, authenticated }: Asked, operator: Caller): Promise<Why> {
  const { policy, catalog, token, entrance, loaded } = world
  const credential = authenticated || token !== undefined ? operator : await entrance.authenticate(undefined)
  const asked = policy.agents.size === 0 ? agent : policy.agentOf(credential, agent)
  const view = catalog.view({ ...operator, agent: asked })
  // What is closed to an agent is not waited for on its behalf, but the operator may ask about it.
  const { entry } = await view.resolve('tool', tool).catch(async (thrown) => {
    if (!ToolwayError.from(thrown).kind.denial) throw thrown
    await catalog.ready()
    return view.resolve('tool', tool)
  })
  const explanation = policy.explain(asked, entry, { authenticated })
  const conditions = explanation.decision.allowed ? conditionsOf(loaded.config, asked, entry) : []
  const considered = [...explanation.considered, ...conditions]
  return { agent: asked, server: entry.server, tool: entry.name, ...explanation, considered }
}
