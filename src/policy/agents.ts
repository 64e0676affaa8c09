import { ToolwayError } from '../core/errors.ts'
import { didYouMean } from '../lib/near.ts'

export interface AgentSelection {
  /** The agents that the credential may act as; `*` is all of them. */
  readonly credential: { readonly agents: readonly string[] | '*' }
  /** What the caller asked to be, by header, query, `_meta` or `agent_id`. */
  readonly asked: string | undefined
  /** The agents that have rules. */
  readonly agents: ReadonlySet<string>
  readonly defaults: { readonly agent?: string | undefined; readonly denyOnMissingAgent: boolean }
}

/** The agent that everybody is while there are no rules, and the last one to fall back on when there are. */
export const defaultAgent = 'default'

/**
 * Which agent a caller acts as (G7). Nothing asked: the credential's only agent, else the configured default agent,
 * else `default` unless missing agents are denied, else an error. A credential that names agents is never anyone
 * else, not by default either; one that names none is whatever callers without an agent are.
 */
export function selectAgent(selection: AgentSelection): { readonly agent: string } {
  const { credential, asked, agents } = selection
  if (agents.size === 0) return { agent: defaultAgent }
  if (asked === undefined) return { agent: orThrow(fallback(selection)) }
  if (credential.agents === '*') {
    if (agents.has(asked)) return { agent: asked }
    // To name none is no way out for everybody: `toolway why` is about one, and there may be none to fall back on.
    throw invalid(`There is no agent ${quoted(asked)}`, asked, [...agents], '.')
  }
  const mine = credential.agents.length > 0 ? credential.agents : [fallback(selection)].filter(isName)
  if (mine.includes(asked) && agents.has(asked)) return { agent: asked }
  // Nothing is said about agents that the credential may not be, not even whether they exist.
  const why = mine.includes(asked) ? 'There are no rules for the agent' : 'This credential may not act as the agent'
  const possible = mine.filter((agent) => agents.has(agent))
  throw invalid(`${why} ${quoted(asked)}`, asked, possible)
}

/** Whoever asked for no agent and has none to fall back on; no configured agent can be called so. */
export const noAgent = '(none)'

/** As `selectAgent`, but a caller that asked for nothing may come in without an agent: it can name one later. */
export function agentOrNone(selection: AgentSelection): string {
  if (selection.asked !== undefined || selection.agents.size === 0) return selectAgent(selection).agent
  const found = fallback(selection)
  return isName(found) ? found : noAgent
}

/** Why a caller without an agent may do nothing. */
export function refusalOfNone(selection: Omit<AgentSelection, 'asked'>): ToolwayError {
  const found = fallback({ ...selection, asked: undefined })
  return isName(found)
    ? new ToolwayError('NO_FALLBACK_CONFIGURED', `Name the agent that you act as: ${waysToName('your-agent')}.`)
    : found
}

/** The agent of a caller that asked for none, or why there is none. */
function fallback({ credential, agents, defaults }: AgentSelection): string | ToolwayError {
  const mine = new Set(credential.agents === '*' ? [] : credential.agents)
  const mayBe = (agent: string) => mine.size === 0 || mine.has(agent)
  const [only] = mine
  if (only !== undefined && mine.size === 1) {
    if (agents.has(only)) return only
    const sentence = `This credential acts as ${only}, for which there are no rules; add agents.${only}, or give the credential another agent.`
    return new ToolwayError('FALLBACK_AGENT_NOT_IN_RULES', sentence)
  }
  const { agent, denyOnMissingAgent } = defaults
  if (agent !== undefined && mayBe(agent)) {
    if (agents.has(agent)) return agent
    const sentence = `No agent was named, and there are no rules for the default agent ${agent}; name an agent, add agents.${agent}, or correct defaults.agent.`
    return new ToolwayError('FALLBACK_AGENT_NOT_IN_RULES', sentence, { rule: 'defaults.agent' })
  }
  if (!denyOnMissingAgent && agents.has(defaultAgent) && mayBe(defaultAgent)) return defaultAgent
  // Agents that the credential may not be are not named.
  const [example = 'your-agent'] = credential.agents === '*' ? agents : mine
  const which = mine.size === 0 ? 'an agent' : listed([...mine])
  const sentence = `No agent was named, and none is configured to fall back on; name ${which}: ${waysToName(example)}. An operator can set defaults.agent.`
  const details = denyOnMissingAgent ? { rule: 'defaults.denyOnMissingAgent' } : {}
  return new ToolwayError('NO_FALLBACK_CONFIGURED', sentence, details)
}

/** A model can only set arguments, a client also headers. */
const waysToName = (agent: string): string =>
  `pass "agent_id" in the arguments of a Toolway tool, for example execute_tool {"agent_id": "${agent}", …}, or send the header "Toolway-Agent: ${agent}", ?agent=${agent} or _meta["dev.toolway/agent"]`

const isName = (found: string | ToolwayError): found is string => typeof found === 'string'

function orThrow(found: string | ToolwayError): string {
  if (isName(found)) return found
  throw found
}

function invalid(why: string, asked: string, possible: readonly string[], end = ', or none.'): ToolwayError {
  const otherwise = possible.length === 0 ? '; ask the operator for one.' : `; name ${listed(possible)}${end}`
  return new ToolwayError('INVALID_AGENT_ID', why + didYouMean(asked, possible, otherwise))
}

const maxShown = 64

/** What callers send may be anything: it is cut and shown as plain ASCII on one line. */
const quoted = (text: string): string =>
  `"${text.slice(0, maxShown).replaceAll(/[^\x20-\x7e]/g, '?')}${text.length > maxShown ? '…' : ''}"`

const maxListed = 10

function listed(agents: readonly string[]): string {
  const shown = agents.slice(0, maxListed)
  const more = agents.length - shown.length
  return shown.join(' or ') + (more > 0 ? ` or one of ${more} more` : '')
}

/**
 * An agent and those it inherits from, itself first: `team.role.junior`, `team.role`, `team`, as far as they are
 * configured. An agent whose parent is missing inherits from the next one up.
 */
export function lineage(agent: string, agents: { has(agent: string): boolean }): string[] {
  const names = [agent]
  for (let name = parentName(agent); name !== undefined; name = parentName(name)) if (agents.has(name)) names.push(name)
  return names
}

/** What the parent of an agent is called, whether or not there is one; undefined for a name without a dot. */
export function parentName(agent: string): string | undefined {
  const dot = agent.lastIndexOf('.')
  return dot > 0 ? agent.slice(0, dot) : undefined
}
