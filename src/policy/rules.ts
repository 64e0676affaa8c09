import type { PolicyConfig } from '../config/schema.ts'
import type { Caller } from '../core/call.ts'
import type { Entry, Kind } from '../core/entry.ts'
import { builtInSources, metaSource, skillsSource } from '../core/source.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import { closedBy, compileAgent, decideByRules, type RuleFamily, type WrittenAgent } from './agent-rules.ts'
import { lineage } from './agents.ts'
import {
  type Consideration,
  decides,
  type Explanation,
  type PolicyQuery,
  type PolicyRefusal,
  type PolicyVerdict,
  passes,
  permitBy,
  type RuledDenial,
  type Ruling,
} from './explanation.ts'
import { type CompilePattern, compilePatterns, createPatternCompiler, matchFirst } from './patterns.ts'

export type GlobalPolicy = Pick<PolicyConfig, 'allowedServers' | 'allowedTools' | 'blockedTools' | 'requireAuth'> &
  Partial<Pick<PolicyConfig, 'toolsNeedServer'>>

export interface WrittenRules {
  readonly agents: Readonly<Record<string, WrittenAgent>>
  readonly policy: GlobalPolicy
  /** The configured servers, including disabled ones. `native`, `toolway` and `sink` need not be listed. */
  readonly servers: readonly string[]
}

type RuledCaller = Pick<Caller, 'agent' | 'authenticated'>
type RuledEntry = Pick<Entry, 'kind' | 'server' | 'name'>

/** What the rules say about one entry. */
interface EntryRulings {
  /** The refusals of global policy, which do not depend on the agent. */
  readonly refusal: PolicyRefusal | undefined
  readonly anonymousRefusal: PolicyRefusal | undefined
  /** For each agent's number, the place of its ruling in the list of all rulings; 0 until it is known. */
  readonly places: Uint16Array
}

const maxRulings = 2 ** 16

export const knownServers = (configured: readonly string[]): ReadonlySet<string> =>
  new Set([...configured, ...builtInSources, skillsSource])

/**
 * The rules of all agents (G6), together with global policy (F7), which is checked first.
 *
 * Decisions name their rule in one of these forms:
 * - `policy.blockedTools[0]`, `policy.allowedServers`, `policy.allowedTools`, `policy.requireAuth[0]`: global policy;
 * - `agents.NAME.deny.servers[0]`, `agents.NAME.deny.tools.SERVER[0]`, and the same with `allow`: that line of the
 *   configuration. NAME is the agent or one that it inherits from, SERVER the key as configured. If a tool is allowed
 *   only because its server is, the decision names the line that allows the server;
 * - `agents.NAME (meta-tools)`: a meta-tool that no rule denies;
 * - `agents.NAME (default deny)`: the `allow` of NAME does not cover the entry;
 * - `agents (default deny)`: rules exist, but none for this agent;
 * - `agents (none configured)`: no rules exist, so everything is allowed.
 *
 * Tool rules apply to tools only. Resources, templates and prompts are allowed or denied with their server, regardless
 * of tool lists.
 */
export class Rules {
  /** The agents that have rules. If there are none, every caller has all permissions. */
  readonly agents: ReadonlySet<string>
  /** Each agent's number, and its rules with those that it inherits. */
  readonly families: ReadonlyMap<string, { readonly number: number; readonly family: RuleFamily }>
  readonly #servers: ReadonlySet<string>
  readonly #refuseGlobally: RefuseGlobally
  // A caller may outlive its agent, because rules are reloaded while the caller is connected.
  readonly #withoutRules: Ruling
  /** Cached rulings take two bytes per entry and agent: there may be thousands of both, but few distinct rulings. */
  readonly #rulingsOn = memoizeByObject(
    (entry: RuledEntry): EntryRulings => ({
      refusal: this.#refuseGlobally(queryOf({ agent: '', authenticated: true }, entry)),
      anonymousRefusal: this.#refuseGlobally(queryOf({ agent: '', authenticated: false }, entry)),
      places: new Uint16Array(this.agents.size),
    }),
  )
  readonly #rulings: (Ruling | undefined)[] = [undefined]
  readonly #placeOf = new Map<Ruling, number>()

  constructor({ agents, policy, servers }: WrittenRules) {
    const compile = createPatternCompiler()
    // Use a map: a lookup in the object itself would find `constructor`.
    const own = new Map(
      Object.entries(agents).map(([name, rules]) => [name, compileAgent(name, rules, compile, policy.toolsNeedServer)]),
    )
    this.agents = new Set(own.keys())
    this.families = new Map(
      [...own.keys()].map((name, number) => [name, { number, family: lineage(name, own).map((one) => own.get(one)!) }]),
    )
    this.#servers = knownServers(servers)
    this.#refuseGlobally = compileGlobal(policy, compile)
    this.#withoutRules = own.size === 0 ? noAgents : unknownAgent
  }

  /** Decides whether a caller may use an entry. The decision names its rule even if it allows the call. */
  readonly decide = (caller: RuledCaller, entry: RuledEntry): PolicyVerdict => {
    const ruling = this.#rulingOf(caller, entry)
    return ruling.allowed ? ruling : denialBy(ruling, queryOf(caller, entry))
  }

  /** The denial if a caller may not use anything on a server, whatever the server offers. */
  readonly closed = (caller: RuledCaller, server: string): RuledDenial | undefined => {
    const query = queryOf(caller, { kind: 'resource', server, name: '*' })
    const refusal = this.#refuseGlobally(query) ?? this.#closedByAgent(caller.agent, server)
    return refusal && denialBy(refusal, query)
  }

  explain(
    agent: string,
    server: string,
    name: string,
    { authenticated = true, kind = 'tool' }: { readonly authenticated?: boolean; readonly kind?: Kind } = {},
  ): Explanation {
    const query = queryOf({ agent, authenticated }, { kind, server, name })
    const considered: Consideration[] = []
    const ruling = this.#refuseGlobally(query, considered) ?? this.#explainAgent(query, considered)
    const decision = ruling.allowed ? ruling : denialBy(ruling, query)
    return { decision, rule: ruling.rule, serverExists: this.#servers.has(server), considered }
  }

  #explainAgent(query: PolicyQuery, considered: Consideration[]): Ruling {
    const known = this.families.get(query.agent)
    if (known) return decideByRules(known.family, query, considered)
    const isOpen = this.#withoutRules.allowed
    const note = isOpen ? 'no agents are configured, so everything is allowed' : 'the agent has no rules'
    return decides(this.#withoutRules, 'agent', note, considered)
  }

  #closedByAgent(agent: string, server: string): PolicyRefusal | undefined {
    const known = this.families.get(agent)
    if (known) return server === metaSource ? undefined : closedBy(known.family, server)
    return this.#withoutRules.allowed ? undefined : this.#withoutRules
  }

  #rulingOf(caller: RuledCaller, entry: RuledEntry): Ruling {
    const { refusal, anonymousRefusal, places } = this.#rulingsOn(entry)
    const refused = caller.authenticated ? refusal : anonymousRefusal
    if (refused) return refused
    const agent = this.families.get(caller.agent)
    if (!agent) return this.#withoutRules
    const known = this.#rulings[places[agent.number] as number]
    if (known) return known
    const ruling = decideByRules(agent.family, queryOf(caller, entry))
    places[agent.number] = this.#place(ruling)
    return ruling
  }

  #place(ruling: Ruling): number {
    const place = this.#placeOf.get(ruling) ?? this.#rulings.length
    if (place === maxRulings) return 0
    this.#rulings[place] = ruling
    this.#placeOf.set(ruling, place)
    return place
  }
}

const queryOf = ({ agent, authenticated }: RuledCaller, { kind, server, name }: RuledEntry): PolicyQuery => ({
  agent,
  server,
  name,
  isTool: kind === 'tool',
  authenticated,
})

const denialBy = ({ code, rule, auditReason, sentence }: PolicyRefusal, query: PolicyQuery): RuledDenial => ({
  allowed: false,
  code,
  rule,
  reason: sentence(query, rule),
  auditReason,
})

const noAgents = permitBy('agents (none configured)')

const unknownAgent: PolicyRefusal = {
  allowed: false,
  code: 'DENIED_BY_POLICY',
  rule: 'agents (default deny)',
  auditReason: 'agent_not_in_rules',
  sentence: ({ agent }) => `The agent ${agent} has no rules, so it may not use anything; act as another agent.`,
}

/** Returns global policy's refusal. If undefined, the agent's rules decide. */
type RefuseGlobally = (query: PolicyQuery, considered?: Consideration[]) => PolicyRefusal | undefined

/** Compiles global policy (F7): blocked tools, allowed servers and tools, and tools that need authentication. */
function compileGlobal(policy: GlobalPolicy, compile: CompilePattern): RefuseGlobally {
  const patternsIn = <T>(
    list: 'blockedTools' | 'allowedServers' | 'allowedTools' | 'requireAuth',
    outcome: (rule: string) => T,
  ) => compilePatterns(policy[list], compile, (index) => outcome(`policy.${list}[${index}]`))
  const blockedTools = patternsIn('blockedTools', toolBlocked)
  const allowedServers = patternsIn('allowedServers', (rule) => rule)
  const allowedTools = patternsIn('allowedTools', (rule) => rule)
  const requireAuth = patternsIn('requireAuth', requireAuthRefusal)
  const everyTool = policy.allowedTools.length === 0

  return ({ server, name, isTool, authenticated }, considered) => {
    const whole = `${server}.${name}`
    const block = matchFirst(blockedTools, whole)
    if (block) return decides(block, 'blocked tools', 'blocked for every agent', considered)
    considered?.push(passes('blocked tools', 'policy.blockedTools', 'not blocked'))
    // Meta-tools show and run only what the caller may use, so allow-lists need not name them.
    if (server === metaSource) return undefined

    const serverRule = matchFirst(allowedServers, server)
    if (serverRule === undefined)
      return decides(serverNotListed, 'allowed servers', 'the server is not listed', considered)
    considered?.push(passes('allowed servers', serverRule, 'the server is listed'))

    if (isTool) {
      const toolRule = everyTool ? 'policy.allowedTools' : matchFirst(allowedTools, whole)
      if (toolRule === undefined) return decides(toolNotListed, 'allowed tools', 'the tool is not listed', considered)
      considered?.push(passes('allowed tools', toolRule, everyTool ? 'no list is configured' : 'the tool is listed'))
    }

    const guard = authenticated ? undefined : matchFirst(requireAuth, whole)
    if (guard) return decides(guard, 'authentication', 'the caller is not authenticated', considered)
    const note = authenticated ? 'the caller is authenticated' : 'no authentication needed'
    considered?.push(passes('authentication', 'policy.requireAuth', note))
    return undefined
  }
}

const toolBlocked = (rule: string): PolicyRefusal => ({
  allowed: false,
  code: 'TOOL_BLOCKED',
  rule,
  auditReason: 'tool_blocked',
  sentence: ({ server, name }) => `${server}.${name} is blocked by the operator; use another tool.`,
})

const serverNotListed: PolicyRefusal = {
  allowed: false,
  code: 'NAMESPACE_NOT_ALLOWED',
  rule: 'policy.allowedServers',
  auditReason: 'server_not_allowed',
  sentence: ({ server }) => `The server ${server} is not in policy.allowedServers; use another server.`,
}

const toolNotListed: PolicyRefusal = {
  allowed: false,
  code: 'DENIED_BY_POLICY',
  rule: 'policy.allowedTools',
  auditReason: 'tool_not_allowed',
  sentence: ({ server, name }) => `${server}.${name} is not in policy.allowedTools; use a tool from tools/list.`,
}

const requireAuthRefusal = (rule: string): PolicyRefusal => ({
  allowed: false,
  code: 'AUTH_REQUIRED',
  rule,
  auditReason: 'auth_required',
  sentence: ({ server, name }) => `${server}.${name} needs an authenticated caller; connect with a credential.`,
})
