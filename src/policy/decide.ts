import type { Config } from '../config/schema.ts'
import type { Exposure } from '../core/access.ts'
import type { Call, Caller } from '../core/call.ts'
import { type Decide, type Decision, type Denial, refusalOf } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { builtInSources, metaSource } from '../core/source.ts'
import { agentOrNone, inherited, noAgent, refusalOfNone } from './agents.ts'
import type { Explanation } from './explanation.ts'
import { compileRules } from './rules.ts'

export interface PolicyOptions {
  readonly config: Pick<Config, 'agents' | 'policy' | 'defaults' | 'mcpServers'>
  readonly quarantined?: (entry: Entry) => Denial | undefined
}

export interface Policy {
  /** Decides whether a caller may use an entry. Both lists and calls use it; each decision names its rule. */
  readonly decide: Decide
  /** Whether decisions depend on definitions: true if pins quarantine entries, or an agent or server is read-only. */
  readonly judgesDefinitions: boolean
  /** The denial if a caller may not use anything on a server, whatever the server offers. */
  closed(caller: Caller, server: string): Denial | undefined
  /** The agents that have rules. If there are none, every caller has all permissions. */
  readonly agents: ReadonlySet<string>
  /** Decides like `decide`, and also returns everything that was considered. */
  explain(agent: string, entry: Entry, options?: { readonly authenticated?: boolean }): Explanation
  /** The agent for a credential (G7). Throws INVALID_AGENT_ID if the credential may not act as the requested agent. */
  agentOf(credential: Pick<Caller, 'agents'>, asked: string | undefined): string
  /** The caller, acting as the agent that the arguments name. Throws if that agent may not make this call. */
  actAs(call: Pick<Call, 'caller' | 'entry'>, asked: string | undefined): Caller
  /** An agent's exposure mode: its own, else the nearest one that it inherits, else the default. */
  exposureOf(agent: string): Exposure
  /** Whether an agent may see the gateway's state (G5), and why. Inherited in the same way as the exposure mode. */
  mayDebug(agent: string): Pick<Decision, 'allowed' | 'rule'>
}

export function createPolicy({ config, ...options }: PolicyOptions): Policy {
  const { quarantined = () => undefined } = options
  const { agents, policy, defaults, mcpServers } = config
  const rules = compileRules({ agents, policy, servers: Object.keys(mcpServers) })
  const writeRefused = createReadOnly(mcpServers)
  const agentWriteRefused = createReadOnlyAgents(agents, mcpServers)
  const exposures = inherited(agents, ({ expose }) => expose)
  const debugging = inherited(agents, ({ debug }) => debug)

  const decide: Decide = (caller, entry) => {
    const { kind, server, aliases } = entry
    const verdict = aliases
      ? strictest(entry, (name) => rules.decide(caller, { kind, server, name }))
      : rules.decide(caller, entry)
    if (verdict.allowed)
      return writeRefused(entry) ?? agentWriteRefused(caller.agent, entry) ?? quarantined(entry) ?? verdict
    return caller.agent === noAgent && verdict.auditReason === 'agent_not_in_rules'
      ? decideForNone(caller, entry)
      : verdict
  }

  /**
   * Decides for a caller without an agent. The caller may use meta-tools, because it can name an agent in their
   * arguments; without an agent, meta-tools show and run nothing.
   */
  const decideForNone = (caller: Caller, entry: Entry): Decision => {
    if (entry.server === metaSource) return { allowed: true, rule: 'agents (meta-tools)' }
    return refusedAsNone(caller)
  }

  const refusedAsNone = (caller: Caller): Denial => {
    const { code, message, details } = refusalOfNone({ credential: caller, agents: rules.agents, defaults })
    return { allowed: false, code, rule: details.rule ?? 'agents', reason: message }
  }

  return {
    decide,
    judgesDefinitions:
      (options.quarantined !== undefined && policy.pins === 'quarantine') ||
      [...Object.values(agents), ...Object.values(mcpServers)].some(({ readOnly }) => readOnly),
    closed(caller, server) {
      const denial = rules.closed(caller, server)
      if (denial?.auditReason !== 'agent_not_in_rules' || caller.agent !== noAgent) return denial
      return refusedAsNone(caller)
    },
    agents: rules.agents,
    explain(agent, entry, options) {
      const explain = (name: string) => {
        const explanation = rules.explain(agent, entry.server, name, { kind: entry.kind, ...options })
        return { ...explanation, allowed: explanation.decision.allowed }
      }
      const { allowed, ...explanation } = strictest(entry, explain)
      const { decision, considered } = explanation
      if (!decision.allowed) return explanation
      const refusals = [
        ['read-only server', writeRefused(entry)],
        ['read-only agent', agentWriteRefused(agent, entry)],
        ['pins', quarantined(entry)],
      ] as const
      for (const [step, refusal] of refusals) {
        if (!refusal) continue
        const last = { step, rule: refusal.rule, outcome: 'denies', note: refusal.reason } as const
        return { ...explanation, decision: refusal, rule: refusal.rule, considered: [...considered, last] }
      }
      return explanation
    },
    agentOf: (credential, asked) => agentOrNone({ credential, asked, agents: rules.agents, defaults }),
    actAs({ caller, entry }, asked) {
      if (asked === undefined && caller.agent !== noAgent) return caller
      if (asked === undefined) throw refusalOfNone({ credential: caller, agents: rules.agents, defaults })
      const acting = { ...caller, agent: agentOrNone({ credential: caller, asked, agents: rules.agents, defaults }) }
      const decision = decide(acting, entry)
      if (!decision.allowed) throw refusalOf(decision, entry.server)
      return acting
    },
    exposureOf: (agent) => exposures.get(agent)?.value ?? defaults.expose,
    mayDebug(agent) {
      const own = debugging.get(agent)
      return own
        ? { allowed: own.value, rule: `agents.${own.from}.debug` }
        : { allowed: defaults.debug, rule: 'defaults.debug' }
    },
  }
}

/** Whether a caller may use anything on a server that offers these entries; without any, whether it may at all. */
export const mayUseSome = (
  { decide, closed }: Pick<Policy, 'decide' | 'closed'>,
  caller: Caller,
  server: string,
  entries: readonly Entry[],
): boolean =>
  closed(caller, server) === undefined &&
  (entries.length === 0 || entries.some((entry) => decide(caller, entry).allowed))

/** The decision for an entry with aliases. A denial for any name applies, so that an alias cannot bypass a rule. */
function strictest<Ruled extends { readonly allowed: boolean }>(
  { name, aliases = [] }: Pick<Entry, 'name' | 'aliases'>,
  ruleOn: (name: string) => Ruled,
): Ruled {
  const own = ruleOn(name)
  if (!own.allowed) return own
  for (const alias of aliases) {
    const ruled = ruleOn(alias)
    if (!ruled.allowed) return ruled
  }
  return own
}

/** On read-only servers, denies everything that is not known to be a read (J2). */
function createReadOnly(servers: Config['mcpServers']): (entry: Entry) => Denial | undefined {
  const readOnly = new Set(Object.keys(servers).filter((name) => servers[name]?.readOnly))
  return ({ server, name, traits }) => {
    if (traits.readOnly || !readOnly.has(server)) return undefined
    const rule = `mcpServers.${server}.readOnly`
    const reason = `Write not allowed: the server ${server} is read-only, and ${name} is not known to be a read-only tool. Use a read-only tool, or ask the operator to ${declaredRead(server, name, servers)}.`
    return { allowed: false, code: 'WRITE_NOT_ALLOWED', rule, reason }
  }
}

const declaredRead = (server: string, name: string, servers: Config['mcpServers']): string =>
  `list ${name} in mcpServers.${server}.readTools` +
  (servers[server]?.trustAnnotations ? '' : ` or to set mcpServers.${server}.trustAnnotations`)

/**
 * For read-only agents, denies everything that is not known to be a read, including Toolway's own tools and sinks.
 * Tools that only run other calls are not denied, because each of those calls gets its own decision. Agents inherit the
 * restriction.
 */
function createReadOnlyAgents(
  agents: Config['agents'],
  servers: Config['mcpServers'],
): (agent: string, entry: Entry) => Denial | undefined {
  const restricted = inherited(agents, ({ readOnly }) => readOnly || undefined)
  return (agent, { server, name, traits }) => {
    const restriction = traits.readOnly || traits.carries ? undefined : restricted.get(agent)
    if (!restriction) return undefined
    const rule = `agents.${restriction.from}.readOnly`
    const remedy = builtInSources.includes(server)
      ? ''
      : `, or ask the operator to ${declaredRead(server, name, servers)}`
    const reason = `Write not allowed: the agent ${agent} is read-only (${rule}), and ${server}.${name} is not known to be a read-only tool. Use a read-only tool${remedy}.`
    return { allowed: false, code: 'WRITE_NOT_ALLOWED', rule, reason }
  }
}
