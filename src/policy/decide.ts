import type { Config } from '../config/schema.ts'
import type { Call, Caller } from '../core/call.ts'
import { type Decide, type Decision, type Denial, refusalOf } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import type { ExposureSetting } from '../core/exposure.ts'
import { knownClient } from '../core/known-clients.ts'
import type { SchemaSetting } from '../core/portable/portable-tool.ts'
import { builtInSources, metaSource } from '../core/source.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import { matches } from '../lib/wildcard.ts'
import { agentOrNone, inheritSetting, noAgent, refusalOfNone } from './agents.ts'
import { EndpointGroups } from './endpoints.ts'
import type { Explanation, ExplanationStep } from './explanation.ts'
import { Rules } from './rules.ts'

export interface PolicyOptions {
  readonly config: Pick<Config, 'agents' | 'policy' | 'defaults' | 'mcpServers' | 'schemas'> &
    Partial<Pick<Config, 'endpoints'>>
  readonly quarantined?: ((entry: Entry) => Denial | undefined) | undefined
}

/** A step after the rules, which may still deny what they allow. */
interface FurtherStep {
  readonly step: ExplanationStep
  denialOf(entry: Entry, agent: string): Denial | undefined
}

/** What callers may do: the rules, read-only servers and agents, and pins. */
export class Policy {
  /** The agents that have rules. If there are none, every caller has all permissions. */
  readonly agents: ReadonlySet<string>
  /** Whether decisions depend on definitions: true if pins quarantine entries, or an agent or server is read-only. */
  readonly judgesDefinitions: boolean
  readonly #rules: Rules
  readonly #defaults: Config['defaults']
  readonly #further: readonly FurtherStep[]
  readonly #exposures: ReadonlyMap<string, { readonly value: ExposureSetting }>
  readonly #schemas: ReadonlyMap<string, { readonly value: SchemaSetting }>
  readonly #defaultSchemas: SchemaSetting | undefined
  readonly #alwaysLoad: ReadonlyMap<string, { readonly value: readonly string[] }>
  readonly #debugging: ReadonlyMap<string, { readonly from: string; readonly value: boolean }>
  readonly #endpoints: EndpointGroups
  readonly #endpointExposures: ReadonlyMap<string, ExposureSetting | undefined>

  constructor({
    config: { agents, policy, defaults, mcpServers, schemas, endpoints = {} },
    quarantined,
  }: PolicyOptions) {
    this.#rules = new Rules({ agents, policy, servers: Object.keys(mcpServers) })
    this.agents = this.#rules.agents
    this.#defaults = defaults
    const readOnly = [...readOnlyServers(mcpServers), ...readOnlyAgents(agents, mcpServers)]
    this.#further = [...readOnly, ...(quarantined ? [{ step: 'pins' as const, denialOf: quarantined }] : [])]
    this.judgesDefinitions = readOnly.length > 0 || (quarantined !== undefined && policy.pins === 'quarantine')
    this.#exposures = inheritSetting(agents, ({ expose }) => expose)
    this.#schemas = inheritSetting(agents, (agent) => agent.schemas)
    this.#defaultSchemas = schemas
    this.#alwaysLoad = inheritSetting(agents, ({ alwaysLoad }) => alwaysLoad)
    this.#endpoints = new EndpointGroups(endpoints)
    this.#endpointExposures = new Map(Object.entries(endpoints).map(([name, { expose }]) => [name, expose]))
    this.#debugging = inheritSetting(agents, ({ debug }) => debug)
  }

  /** Decides whether a caller may use an entry. Both lists and calls use it; each decision names its rule. */
  readonly decide: Decide = (caller, entry) => {
    const verdict = entry.aliases
      ? strictest(entry, (name) => this.#rules.decide(caller, name))
      : this.#rules.decide(caller, entry)
    if (!verdict.allowed) return this.#isForNone(caller, verdict) ? this.#decideForNone(caller, entry.server) : verdict
    for (const further of this.#further) {
      const denial = further.denialOf(entry, caller.agent)
      if (denial) return denial
    }
    if (caller.endpoint === undefined) return verdict
    return this.#endpoints.denialOf(caller.endpoint, entry, this.#isInCode(caller)) ?? verdict
  }

  /** The denial if a caller may not use anything on a server, whatever the server offers. */
  readonly closed = (caller: Caller, server: string): Denial | undefined => {
    const denial = this.#rules.closed(caller, server)
    if (denial) return this.#isForNone(caller, denial) ? this.#denialForNone(caller) : denial
    if (caller.endpoint === undefined) return undefined
    return this.#endpoints.closedAt(caller.endpoint, server, this.#isInCode(caller))
  }

  /** Decides like `decide`, and also returns everything that was considered. */
  explain(agent: string, entry: Entry, options?: { readonly authenticated?: boolean }): Explanation {
    const { allowed, ...explanation } = strictest(entry, ({ kind, server, name }) => {
      const explained = this.#rules.explain(agent, server, name, { kind, ...options })
      return { ...explained, allowed: explained.decision.allowed }
    })
    if (!allowed) return explanation
    for (const { step, denialOf } of this.#further) {
      const decision = denialOf(entry, agent)
      if (!decision) continue
      const { rule, reason } = decision
      const considered = [...explanation.considered, { step, rule, outcome: 'denies' as const, note: reason }]
      return { ...explanation, decision, rule, considered }
    }
    return explanation
  }

  /** The agent for a credential (G7). Throws INVALID_AGENT_ID if the credential may not act as the requested agent. */
  agentOf(credential: Pick<Caller, 'agents'>, asked: string | undefined): string {
    return agentOrNone({ credential, asked, agents: this.agents, defaults: this.#defaults })
  }

  /** The caller, acting as the agent that the arguments name. Throws if that agent may not make this call. */
  readonly actAs = ({ caller, entry }: Pick<Call, 'caller' | 'entry'>, asked: string | undefined): Caller => {
    // Many models fill arguments that they do not need with "".
    if (!asked && caller.agent !== noAgent) return caller
    if (!asked) throw this.#refusalOfNone(caller)
    const acting = { ...caller, agent: this.agentOf(caller, asked) }
    const decision = this.decide(acting, entry)
    if (!decision.allowed) throw refusalOf(decision, entry.server)
    return acting
  }

  /** The exposure mode at an endpoint: the endpoint's, else the agent's own, else the nearest one that it inherits, else the default. */
  exposureOf(agent: string, endpoint = ''): ExposureSetting {
    return this.#endpointExposures.get(endpoint) ?? this.#exposures.get(agent)?.value ?? this.#defaults.expose
  }

  /** Whether the caller's agent calls tools from programs at the endpoint, or would if it had many tools. */
  #isInCode({ agent, endpoint }: Caller): boolean {
    const mode = this.exposureOf(agent, endpoint)
    return (mode === 'auto' ? this.#defaults.autoAbove : mode) === 'code'
  }

  /** Whether a caller sees portable forms of tools: as its agent is configured, else as its client needs them. */
  readonly isPortable = ({ agent, client }: Caller): boolean => {
    const setting = this.#schemas.get(agent)?.value ?? this.#defaultSchemas ?? knownClient(client).schemas
    return setting === 'portable'
  }

  /** Whether clients of the caller's agent should load a tool at once. */
  readonly isAlwaysLoaded = ({ agent }: Caller, { server, name }: Entry): boolean => {
    const patterns = this.#alwaysLoad.get(agent)?.value ?? this.#defaults.alwaysLoad
    return patterns.some((pattern) => matches(pattern, `${server}.${name}`))
  }

  /** Whether an agent may see the gateway's state (G5), and why. Inherited in the same way as the exposure mode. */
  mayDebug(agent: string): Pick<Decision, 'allowed' | 'rule'> {
    const own = this.#debugging.get(agent)
    return own
      ? { allowed: own.value, rule: `agents.${own.from}.debug` }
      : { allowed: this.#defaults.debug, rule: 'defaults.debug' }
  }

  #isForNone(caller: Caller, { auditReason }: Denial): boolean {
    return caller.agent === noAgent && auditReason === 'agent_not_in_rules'
  }

  /**
   * Decides for a caller without an agent. The caller may use meta-tools, because it can name an agent in their
   * arguments; without an agent, meta-tools show and run nothing.
   */
  #decideForNone(caller: Caller, server: string): Decision {
    return server === metaSource ? { allowed: true, rule: 'agents (meta-tools)' } : this.#denialForNone(caller)
  }

  #denialForNone(caller: Caller): Denial {
    const { code, message, details } = this.#refusalOfNone(caller)
    return { allowed: false, code, rule: details.rule ?? 'agents', reason: message }
  }

  #refusalOfNone(caller: Caller) {
    return refusalOfNone({ credential: caller, agents: this.agents, defaults: this.#defaults })
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

type NamedEntry = Pick<Entry, 'kind' | 'server' | 'name'>

/** An entry under each of its names. The same objects each time, because decisions about them are cached. */
const namesOfEntry = memoizeByObject((entry: Entry): readonly [NamedEntry, ...NamedEntry[]] => {
  const { kind, server, aliases = [] } = entry
  return [entry, ...aliases.map((name) => ({ kind, server, name }))]
})

/** The decision for an entry with aliases. A denial for any name applies, so that an alias cannot bypass a rule. */
function strictest<Ruled extends { readonly allowed: boolean }>(
  entry: Entry,
  ruleOn: (name: NamedEntry) => Ruled,
): Ruled {
  const [own, ...aliases] = namesOfEntry(entry)
  const ruling = ruleOn(own)
  if (!ruling.allowed) return ruling
  for (const alias of aliases) {
    const other = ruleOn(alias)
    if (!other.allowed) return other
  }
  return ruling
}

/** On read-only servers, denies everything that is not known to be a read (J2). */
function readOnlyServers(servers: Config['mcpServers']): FurtherStep[] {
  const readOnly = new Set(Object.keys(servers).filter((name) => servers[name]?.readOnly))
  const denialOf = ({ server, name, traits }: Entry): Denial | undefined => {
    if (traits.readOnly || !readOnly.has(server)) return undefined
    const remedy = `Use a read-only tool, or ask the operator to ${declaredRead(server, name, servers)}.`
    const what = `the server ${server} is read-only, and ${name} is not known to be a read-only tool`
    return writeDenial(`mcpServers.${server}.readOnly`, `${what}. ${remedy}`)
  }
  return readOnly.size > 0 ? [{ step: 'read-only server', denialOf }] : []
}

/**
 * For read-only agents, denies everything that is not known to be a read, including Toolway's own tools and sinks.
 * Tools that only run other calls are not denied, because each of those calls gets its own decision. Agents inherit the
 * restriction.
 */
function readOnlyAgents(agents: Config['agents'], servers: Config['mcpServers']): FurtherStep[] {
  const readOnly = inheritSetting(agents, ({ readOnly }) => readOnly || undefined)
  const denialOf = ({ server, name, traits }: Entry, agent: string): Denial | undefined => {
    const restriction = traits.readOnly || traits.carries ? undefined : readOnly.get(agent)
    if (!restriction) return undefined
    const rule = `agents.${restriction.from}.readOnly`
    const isOurs = builtInSources.includes(server)
    const remedy = isOurs ? '' : `, or ask the operator to ${declaredRead(server, name, servers)}`
    const what = `the agent ${agent} is read-only (${rule}), and ${server}.${name} is not known to be a read-only tool`
    return writeDenial(rule, `${what}. Use a read-only tool${remedy}.`)
  }
  return readOnly.size > 0 ? [{ step: 'read-only agent', denialOf }] : []
}

const writeDenial = (rule: string, why: string): Denial => ({
  allowed: false,
  code: 'WRITE_NOT_ALLOWED',
  rule,
  reason: `Write not allowed: ${why}`,
})

const declaredRead = (server: string, name: string, servers: Config['mcpServers']): string =>
  `list ${name} in mcpServers.${server}.readTools` +
  (servers[server]?.trustAnnotations ? '' : ` or to set mcpServers.${server}.trustAnnotations`)
