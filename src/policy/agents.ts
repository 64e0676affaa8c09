import type { Config } from '../config/schema.ts'
import type { Caller } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import { quoteAscii } from '../lib/message-text.ts'
import { didYouMean } from '../lib/similar-text.ts'

export interface AgentSelection {
  /** The agents that the credential may act as; `*` means all. */
  readonly credential: { readonly agents: readonly string[] | '*' }
  /** The agent that the caller requested by header, query, `_meta` or `agent_id`. */
  readonly asked: string | undefined
  readonly agents: ReadonlySet<string>
  readonly defaults: { readonly agent?: string | undefined; readonly denyOnMissingAgent: boolean }
}

/** The name of the agent that every caller gets if there are no rules. If there are rules, it is the last fallback. */
export const defaultAgent = 'default'

/**
 * Selects the agent for a caller (G7). A caller that requested no agent gets the credential's only agent, else the
 * configured default agent, else `default` (unless missing agents are denied); if there is no such agent, the function
 * throws. A credential that lists agents never acts as any other agent, not even by default. A credential that lists
 * none gets the fallback for callers without an agent.
 */
export function selectAgent(selection: AgentSelection): { readonly agent: string } {
  const { credential, asked, agents } = selection
  if (agents.size === 0) return { agent: defaultAgent }
  if (asked === undefined) return { agent: orThrow(fallback(selection)) }
  if (credential.agents === '*') {
    if (agents.has(asked)) return { agent: asked }
    // Do not suggest omitting the agent: `toolway why` needs one, and there may be no fallback.
    throw invalidAgent(`There is no agent ${quoteAscii(asked)}`, asked, [...agents], '.')
  }
  const mine = credential.agents.length > 0 ? credential.agents : [fallback(selection)].filter(isFallbackName)
  if (mine.includes(asked) && agents.has(asked)) return { agent: asked }
  // Reveal nothing about agents that the credential may not act as, not even whether they exist.
  const why = mine.includes(asked)
    ? 'The configuration has no rules for the agent'
    : 'This credential may not act as the agent'
  const possible = mine.filter((agent) => agents.has(agent))
  throw invalidAgent(`${why} ${quoteAscii(asked)}`, asked, possible)
}

/** Stands for the agent of a caller that requested none and has no fallback. No configured agent can have this name. */
export const noAgent = '(none)'

/** Like `selectAgent`, but a caller that requested no agent may connect without an agent and name one later. */
export function agentOrNone(selection: AgentSelection): string {
  if (selection.agents.size === 0) return defaultAgent
  if (selection.asked !== undefined) return selectAgent(selection).agent
  const found = fallback(selection)
  return isFallbackName(found) ? found : noAgent
}

export function refusalOfNone(selection: Omit<AgentSelection, 'asked'>): ToolwayError {
  const found = fallback({ ...selection, asked: undefined })
  return isFallbackName(found)
    ? new ToolwayError('NO_FALLBACK_CONFIGURED', `Specify the agent to act as: ${waysToName('your-agent')}.`)
    : found
}

function fallback({ credential, agents, defaults }: AgentSelection): string | ToolwayError {
  const listedAgents = credential.agents === '*' ? [] : credential.agents
  // Ignore agents without rules beside others, because a token may list groups; they allow nothing. Keep the default
  // agent: without rules it is an error, and must not make the credential act as another agent.
  const existing = listedAgents.filter((agent) => agents.has(agent) || agent === defaults.agent)
  const mine = new Set(existing.length > 0 ? existing : listedAgents)
  const mayBe = (agent: string) => mine.size === 0 || mine.has(agent)
  const [only] = mine
  if (only !== undefined && mine.size === 1) {
    if (agents.has(only)) return only
    const sentence = `This credential acts as the agent ${only}, which has no rules; add agents.${only}, or assign another agent to the credential.`
    return new ToolwayError('FALLBACK_AGENT_NOT_IN_RULES', sentence)
  }
  const { agent, denyOnMissingAgent } = defaults
  if (agent !== undefined && mayBe(agent)) {
    if (agents.has(agent)) return agent
    const sentence = `No agent was specified, and the default agent ${agent} has no rules; specify an agent, add agents.${agent}, or correct defaults.agent.`
    return new ToolwayError('FALLBACK_AGENT_NOT_IN_RULES', sentence, { rule: 'defaults.agent' })
  }
  if (!denyOnMissingAgent && agents.has(defaultAgent) && mayBe(defaultAgent)) return defaultAgent
  // Do not mention agents that the credential may not act as.
  const [example = 'your-agent'] = credential.agents === '*' ? agents : mine
  const which = mine.size === 0 ? 'an agent' : joinAgents([...mine])
  const [why, remedy] =
    agent === undefined
      ? ['no default agent is configured', ' An operator can set defaults.agent.']
      : ['this credential may not act as the default agent (defaults.agent)', '']
  const sentence = `No agent was specified, and ${why}. To specify ${which}, ${waysToName(example)}.${remedy}`
  const details = denyOnMissingAgent ? { rule: 'defaults.denyOnMissingAgent' } : {}
  return new ToolwayError('NO_FALLBACK_CONFIGURED', sentence, details)
}

/** How a caller can name its agent. The sentence mentions arguments first, because a model cannot set headers. */
const waysToName = (agent: string): string =>
  `pass "agent_id" in the arguments of a Toolway tool, for example execute_tool {"agent_id": "${agent}", …}, or send the header "Toolway-Agent: ${agent}", ?agent=${agent} or _meta["dev.toolway/agent"]`

const isFallbackName = (found: string | ToolwayError): found is string => typeof found === 'string'

function orThrow(found: string | ToolwayError): string {
  if (isFallbackName(found)) return found
  throw found
}

function invalidAgent(why: string, asked: string, possible: readonly string[], end = ', or omit it.'): ToolwayError {
  const otherwise = possible.length === 0 ? '; ask the operator for an agent.' : `; use ${joinAgents(possible)}${end}`
  return new ToolwayError('INVALID_AGENT_ID', why + didYouMean(asked, possible, otherwise))
}

const maxListedAgents = 10

function joinAgents(agents: readonly string[]): string {
  const shown = agents.slice(0, maxListedAgents)
  const more = agents.length - shown.length
  return shown.join(' or ') + (more > 0 ? ` or one of ${more} more` : '')
}

/**
 * An agent and the agents that it inherits from, itself first, such as `team.role.junior`, `team.role`, `team`.
 * Ancestors that are not configured are skipped.
 */
export function lineage(agent: string, agents: { has(agent: string): boolean }): string[] {
  const names = [agent]
  for (let name = parentName(agent); name !== undefined; name = parentName(name)) if (agents.has(name)) names.push(name)
  return names
}

/**
 * For each agent, the nearest value in its family and the agent that has this value. Only includes agents that have or
 * inherit a value.
 */
export function inheritSetting<Configured, Value>(
  agents: Readonly<Record<string, Configured>>,
  settingOf: (agent: Configured) => Value | undefined,
): ReadonlyMap<string, { readonly from: string; readonly value: Value }> {
  const own = new Map(Object.entries(agents).map(([agent, configured]) => [agent, settingOf(configured)]))
  const found = new Map<string, { readonly from: string; readonly value: Value }>()
  for (const agent of own.keys()) {
    const from = lineage(agent, own).find((name) => own.get(name) !== undefined)
    if (from !== undefined) found.set(agent, { from, value: own.get(from) as Value })
  }
  return found
}

/** The parent's name, whether or not the parent is configured. Undefined for a name without a dot. */
export function parentName(agent: string): string | undefined {
  const dot = agent.lastIndexOf('.')
  return dot > 0 ? agent.slice(0, dot) : undefined
}

type CapturedBy = { readonly caller: Pick<Caller, 'agent'>; readonly entry: Pick<Entry, 'server'> }

/** Whether a call's arguments and result are captured: its server or its agent opted in. Undefined if none did. */
export function compileCapture({
  mcpServers,
  agents,
}: Pick<Config, 'mcpServers' | 'agents'>): ((call: CapturedBy) => boolean) | undefined {
  const servers = new Set(Object.keys(mcpServers).filter((name) => mcpServers[name]?.capture))
  const captured = inheritSetting(agents, ({ capture }) => capture)
  const own = new Set([...captured].filter(([, { value }]) => value).map(([name]) => name))
  if (servers.size + own.size === 0) return undefined
  return ({ caller, entry }) => servers.has(entry.server) || own.has(caller.agent)
}
