import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { tokenAccount } from '../../core/tokens.ts'
import { defaultAgent, lineage } from '../../policy/agents.ts'
import type { Generation } from '../../runtime/generation.ts'
import { agentFor } from '../../serve/auth/identity.ts'
import type { AdminContext } from '../context.ts'
import type { AgentView, Matrix, ToolsQuery, WhyParams, WhyView } from '../contract.ts'
import { selectTools, withoutMetaTools } from '../tools/visibility.ts'

/** All configured agents, or only the default agent if none are configured. */
export const agentNames = ({ policy }: Pick<Generation, 'policy'>): readonly string[] =>
  policy.agents.size === 0 ? [defaultAgent] : [...policy.agents]

export const asAgent = (agent: string): Caller => ({
  agent,
  agents: [agent],
  principal: 'admin',
  authenticated: true,
  admin: false,
  session: 'admin',
  capabilities: {},
})

/** The requested agent, or the caller's own by default. Throws if the caller may not act as that agent. */
export const resolveAgent = (access: Access, caller: Caller, agent: string | undefined): string =>
  agent === undefined ? caller.agent : agentFor(access, caller, agent)

export function agentViews({ current, stats }: AdminContext): readonly AgentView[] {
  const generation = current()
  const { policy, catalog, concurrencyOf, loaded } = generation
  const { agents, defaults, limits } = loaded.config
  const fallback = defaults.agent ?? (defaults.denyOnMissingAgent ? undefined : defaultAgent)
  return agentNames(generation).map((name) => {
    const family = lineage(name, policy.agents)
    const view = catalog.view(asAgent(name))
    const perMinute = family.map((one) => agents[one]?.perMinute).find((limit) => limit !== undefined)
    return {
      name,
      inherits: family[1] ?? null,
      expose: policy.exposureOf(name),
      isDefault: policy.agents.size === 0 || name === fallback,
      tools: withoutMetaTools(view.list('tool')).length,
      tokens: tokenAccount(view),
      perMinute: perMinute ?? limits.perMinute ?? null,
      concurrency: concurrencyOf.agent(name) ?? null,
      limitsPer: limits.per,
      calls: stats.of('agent', name),
    }
  })
}

export function matrixOf({ current }: AdminContext, query: ToolsQuery): Matrix {
  const generation = current()
  const agents = agentNames(generation)
  const callers = agents.map(asAgent)
  const { tools, ...page } = selectTools(withoutMetaTools(generation.catalog.everything('tool')), query)
  const rows = tools.map(({ entry }) => ({
    server: entry.server,
    tool: entry.name,
    allowed: callers.map((caller) => generation.policy.decide(caller, entry).allowed),
  }))
  return { agents, rows, ...page }
}

/** Explains a policy decision. Non-admins may ask only about agents that they may act as. */
export async function whyFor({ access, why }: AdminContext, caller: Caller, params: WhyParams): Promise<WhyView> {
  const agent = caller.admin ? (params.agent ?? caller.agent) : resolveAgent(access, caller, params.agent)
  // Non-admins find a tool as for a call: failures are counted and audited, and hidden denials stay hidden.
  const lookUp = () => access.view({ ...caller, agent }).resolve('tool', params.tool, { operation: 'find' })
  const meant = caller.admin ? params.tool : (await lookUp()).name
  const authenticated = caller.admin ? params.anonymous === undefined : caller.authenticated
  const { server, tool, decision, considered, ...found } = await why(agent, meant, { authenticated })
  const sentence = decision.allowed ? `${found.agent} may use ${server}.${tool}: ${decision.rule}.` : decision.reason
  return {
    agent: found.agent,
    server,
    tool,
    allowed: decision.allowed,
    rule: decision.rule,
    sentence,
    decision: { ...decision },
    considered: considered.map((one) => ({ ...one, text: `${one.step}: ${one.note} (${one.outcome})` })),
  }
}
