import type { Caller } from '../core/call.ts'
import type { Entry, Kind } from '../core/entry.ts'
import { metaSource } from '../core/source.ts'
import { compileAgent, type WrittenAgent } from './agent-rules.ts'
import { lineage } from './agents.ts'
import { closedBy, decideByRules, type RuleFamily } from './evaluate-rules.ts'
import type { Consideration, Explanation } from './explanation.ts'
import { compileGlobal, type GlobalPolicy } from './global.ts'
import { createPatternCompiler } from './patterns.ts'
import { knownServers, ruleWarnings } from './rule-warnings.ts'
import {
  decides,
  type PolicyQuery,
  type PolicyRefusal,
  type PolicyVerdict,
  permission,
  type RuledDenial,
  type Ruling,
} from './verdict.ts'

export interface RulesOptions {
  readonly agents: Readonly<Record<string, WrittenAgent>>
  readonly policy: GlobalPolicy
  /** The configured servers, including disabled ones. `native`, `toolway` and `sink` need not be listed. */
  readonly servers: readonly string[]
}

export interface Rules {
  /** The agents that have rules. If there are none, every caller has all permissions. */
  readonly agents: ReadonlySet<string>
  /** Decides whether a caller may use an entry. The decision names its rule even if it allows the call. */
  readonly decide: (
    caller: Pick<Caller, 'agent' | 'authenticated'>,
    entry: Pick<Entry, 'kind' | 'server' | 'name'>,
  ) => PolicyVerdict
  /** The denial if a caller may not use anything on a server, whatever the server offers. */
  closed(caller: Pick<Caller, 'agent' | 'authenticated'>, server: string): RuledDenial | undefined
  explain(
    agent: string,
    server: string,
    name: string,
    options?: { readonly authenticated?: boolean; readonly kind?: Kind },
  ): Explanation
  /** Warnings about valid but probably unintended rules, such as rules about servers that do not exist. */
  readonly warnings: readonly string[]
}

/** Max cached entries, more than a gateway has. Bounded because servers choose the names and may change them. */
const maxEntries = 2 ** 16
/** Max cached pairs of agent and entry: enough for 1,000 agents and 10,000 entries, in at most 32 MiB. */
const maxRemembered = 2 ** 24

/**
 * Compiles the rules of all agents (G6), together with global policy (F7), which is checked first.
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
export function compileRules({ agents: written, policy, servers }: RulesOptions): Rules {
  const compile = createPatternCompiler()
  // Use a map: a lookup in the object itself would find `constructor`.
  const own = new Map(
    Object.entries(written).map(([name, rules]) => [name, compileAgent(name, rules, compile, policy.toolsNeedServer)]),
  )
  const families = new Map(
    [...own.keys()].map((name, number) => [name, { number, family: lineage(name, own).map((one) => own.get(one)!) }]),
  )
  const refuseGlobally = compileGlobal(policy, compile)
  const existing = knownServers(servers)

  // A caller may outlive its agent, because rules are reloaded while the caller is connected.
  const withoutRules = own.size === 0 ? noAgents : unknownAgent

  const decideForAgent = (
    family: RuleFamily | undefined,
    question: PolicyQuery,
    considered: Consideration[],
  ): Ruling => {
    if (family) return decideByRules(family, question, considered)
    const note = withoutRules.allowed ? 'no agents are configured, so everything is allowed' : 'the agent has no rules'
    return decides(withoutRules, 'agent', note, considered)
  }

  const closedForAgent = (agent: string, server: string): PolicyRefusal | undefined => {
    const family = families.get(agent)?.family
    if (family) return server === metaSource ? undefined : closedBy(family, server)
    return own.size === 0 ? undefined : unknownAgent
  }

  const memory = createMemory(maxRemembered)
  const numberOf = createEntryNumbers(
    maxEntries,
    (server, name, isTool, authenticated) => refuseGlobally({ server, name, isTool, authenticated }),
    memory.forget,
  )

  const rulingOf = (question: PolicyQuery): Ruling => {
    const entry = numberOf(question.server, question.name, question.isTool)
    const refusal = question.authenticated ? entry.refusal : entry.anonymousRefusal
    if (refusal) return refusal
    const agent = families.get(question.agent)
    if (!agent) return withoutRules
    if (entry.number === undefined) return decideByRules(agent.family, question)
    const known = memory.get(agent.number, entry.number)
    if (known) return known
    const ruling = decideByRules(agent.family, question)
    memory.set(agent.number, entry.number, ruling)
    return ruling
  }

  return {
    agents: new Set(own.keys()),
    decide({ agent, authenticated }, { kind, server, name }) {
      const question = { agent, server, name, isTool: kind === 'tool', authenticated }
      return verdictOf(rulingOf(question), question)
    },
    closed({ agent, authenticated }, server) {
      const question = { agent, server, name: '*', isTool: false, authenticated }
      const refusal = refuseGlobally(question) ?? closedForAgent(agent, server)
      return refusal && (verdictOf(refusal, question) as RuledDenial)
    },
    explain(agent, server, name, { authenticated = true, kind = 'tool' } = {}) {
      const question = { agent, server, name, isTool: kind === 'tool', authenticated }
      const considered: Consideration[] = []
      const ruling =
        refuseGlobally(question, considered) ?? decideForAgent(families.get(agent)?.family, question, considered)
      const decision = verdictOf(ruling, question)
      return { decision, rule: ruling.rule, serverExists: existing.has(server), considered }
    },
    warnings: ruleWarnings({ agents: written, families, policy, servers: existing }),
  }
}

function verdictOf(ruling: Ruling, question: PolicyQuery): PolicyVerdict {
  if (ruling.allowed) return ruling
  const { code, rule, auditReason } = ruling
  return { allowed: false, code, rule, reason: ruling.sentence(question, rule), auditReason }
}

const noAgents = permission('agents (none configured)')

const unknownAgent: PolicyRefusal = {
  allowed: false,
  code: 'DENIED_BY_POLICY',
  rule: 'agents (default deny)',
  auditReason: 'agent_not_in_rules',
  sentence: ({ agent }) => `The agent ${agent} has no rules, so it may not use anything; act as another agent.`,
}

/**
 * One agent's cached rulings. An agent has many entries but few distinct rulings, so this holds a list of rulings and,
 * for each entry, an index into that list; 0 means not cached.
 */
interface Page {
  places: Uint16Array
  readonly rulings: (Ruling | undefined)[]
  readonly placeOf: Map<Ruling, number>
}

const smallest = 64
const maxRulings = 2 ** 16

/**
 * Caches rulings for at most `limit` pairs of agent and entry, with two bytes per pair. It is cleared when full:
 * entries in use are cached again on the next call, and no eviction order has to be maintained.
 */
export function createMemory(limit: number) {
  let pages: (Page | undefined)[] = []
  let room = 0
  const forget = () => {
    pages = []
    room = 0
  }
  const pageWithRoom = (agent: number, entry: number): Page => {
    const page = pages[agent] ?? { places: new Uint16Array(0), rulings: [undefined], placeOf: new Map() }
    if (entry < page.places.length) return page
    const before = page.places
    page.places = new Uint16Array(Math.max(smallest, 2 ** Math.ceil(Math.log2(entry + 1))))
    page.places.set(before)
    room += page.places.length - before.length
    pages[agent] = page
    return page
  }
  return {
    forget,
    get(agent: number, entry: number): Ruling | undefined {
      const page = pages[agent]
      return page?.rulings[page.places[entry] ?? 0]
    },
    set(agent: number, entry: number, ruling: Ruling): void {
      if (room > limit) forget()
      const page = pageWithRoom(agent, entry)
      const place = page.placeOf.get(ruling) ?? page.rulings.length
      if (place === maxRulings) return
      page.rulings[place] = ruling
      page.placeOf.set(ruling, place)
      page.places[entry] = place
    },
  }
}

/** An entry with its number in the cache, and with the refusals of global policy, which do not depend on the agent. */
interface NumberedEntry {
  /** The entry's number in the cache. Undefined if the entry is not cached. */
  readonly number: number | undefined
  readonly refusal: PolicyRefusal | undefined
  readonly anonymousRefusal: PolicyRefusal | undefined
}

type Refuse = (server: string, name: string, isTool: boolean, authenticated: boolean) => PolicyRefusal | undefined

/** Max characters in a cached name. URIs come from callers, who must not be able to fill the cache. */
const maxName = 256

/** Numbers entries from 0 in order of first use. At the limit, calls `startsAfresh` and starts again at 0. */
export function createEntryNumbers(
  limit: number,
  refuse: Refuse,
  startsAfresh: () => void,
): (server: string, name: string, isTool: boolean) => NumberedEntry {
  // Nested maps, so that a lookup need not concatenate strings: the engine caches the hash of each string.
  let tools = new Map<string, Map<string, NumberedEntry>>()
  let others = new Map<string, Map<string, NumberedEntry>>()
  let next = 0
  const entryOf = (server: string, name: string, isTool: boolean, number: number | undefined) => ({
    number,
    refusal: refuse(server, name, isTool, true),
    anonymousRefusal: refuse(server, name, isTool, false),
  })
  return (server, name, isTool) => {
    if (name.length > maxName) return entryOf(server, name, isTool, undefined)
    const known = (isTool ? tools : others).get(server)?.get(name)
    if (known) return known
    if (next === limit) {
      tools = new Map()
      others = new Map()
      next = 0
      startsAfresh()
    }
    const servers = isTool ? tools : others
    const names = servers.get(server) ?? new Map<string, NumberedEntry>()
    const entry = entryOf(server, name, isTool, next++)
    servers.set(server, names.set(name, entry))
    return entry
  }
}
