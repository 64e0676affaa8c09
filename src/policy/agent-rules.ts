import type { AgentConfig } from '../config/schema.ts'
import { metaSource } from '../core/source.ts'
import {
  type Consideration,
  decides,
  type Permission,
  type PolicyQuery,
  type PolicyRefusal,
  passes,
  permitBy,
  type Ruling,
} from './explanation.ts'
import { type CompilePattern, compilePatterns, matchFirst, matchName, matchStar, type Patterns } from './patterns.ts'

/** An agent's rules as configured. */
export type WrittenAgent = Pick<AgentConfig, 'allow' | 'deny'>

/** One agent's compiled rules, without the rules that it inherits. */
export interface AgentRules {
  readonly path: string
  readonly allow: RuleSet<Permission>
  readonly deny: RuleSet<PolicyRefusal>
  readonly metaTools: Permission
  readonly serverNotAllowed: PolicyRefusal
  readonly toolNotAllowed: PolicyRefusal
  /** If true, a tool rule allows a tool only if a server rule also allows the server. */
  readonly toolsNeedServer: boolean
}

export function compileAgent(
  agent: string,
  { allow, deny }: WrittenAgent,
  compile: CompilePattern,
  toolsNeedServer = false,
): AgentRules {
  const path = `agents.${agent}`
  const byDefault = { ...refusedByRule, rule: `${path} (default deny)` }
  const advice = `Use another tool or server, or ask the operator to add it to ${path}.allow.`
  return {
    path,
    toolsNeedServer,
    allow: compileRuleSet(allow, `${path}.allow`, compile, permitBy),
    deny: compileRuleSet(deny, `${path}.deny`, compile, denyRefusal),
    metaTools: permitBy(`${path} (meta-tools)`),
    serverNotAllowed: {
      ...byDefault,
      auditReason: 'server_not_allowed',
      // This message is also used for entries that do not exist, so it must not reveal what the server offers.
      sentence: ({ agent, server }) =>
        `The agent ${agent} may not use this: no rule allows the server ${server}. ${advice}`,
    },
    toolNotAllowed: {
      ...byDefault,
      auditReason: 'tool_not_allowed',
      sentence: ({ agent, server, name }) =>
        `The agent ${agent} may not use ${server}.${name}: no rule allows it. ${advice}`,
    },
  }
}

const refusedByRule = { allowed: false, code: 'DENIED_BY_POLICY' } as const

const denyRefusal = (rule: string, about: 'server' | 'tool'): PolicyRefusal => ({
  ...refusedByRule,
  rule,
  auditReason: `${about}_not_allowed`,
  sentence: about === 'server' ? serverDenied : toolDenied,
})

const serverDenied = ({ agent, server }: PolicyQuery, rule: string) =>
  `The agent ${agent} may not use the server ${server}: ${rule} denies it. Use another server, or ask the operator.`

const toolDenied = ({ agent, server, name }: PolicyQuery, rule: string) =>
  `The agent ${agent} may not use ${server}.${name}: ${rule} denies it. Use another tool, or ask the operator.`

type WrittenRuleSet = AgentConfig['allow']

/** One agent's compiled `allow` or `deny`. Look-ups return the outcome of the matching rule. */
interface RuleSet<Outcome> {
  readonly empty: boolean
  readonly listsNoServer: boolean
  readonly servers: Patterns<Outcome>
  /** Tool rules by server name. */
  readonly tools: ReadonlyMap<string, Patterns<Outcome>>
  /** Tool rules by server pattern. */
  readonly starred: readonly { matches(server: string): boolean; readonly tools: Patterns<Outcome> }[]
}

/**
 * Compiles an agent's `allow` or `deny`. `path` is the location of the rules in the configuration; `outcomeOf` maps a
 * rule to its outcome.
 */
function compileRuleSet<Outcome>(
  { servers, tools }: WrittenRuleSet,
  path: string,
  compile: CompilePattern,
  outcomeOf: (rule: string, about: 'server' | 'tool') => Outcome,
): RuleSet<Outcome> {
  const lists = Object.entries(tools).map(([server, list]) => ({
    server,
    tools: compilePatterns(list, compile, (index) => outcomeOf(`${path}.tools.${server}[${index}]`, 'tool')),
  }))
  const isStarred = ({ server }: { server: string }) => server.includes('*')
  return {
    empty: servers.length === 0 && lists.length === 0,
    listsNoServer: servers.length === 0,
    servers: compilePatterns(servers, compile, (index) => outcomeOf(`${path}.servers[${index}]`, 'server')),
    tools: new Map(lists.filter((list) => !isStarred(list)).map(({ server, tools }) => [server, tools])),
    starred: lists.filter(isStarred).map(({ server, tools }) => ({ matches: compile(server), tools })),
  }
}

function toolByName<Outcome>(rules: RuleSet<Outcome>, server: string, tool: string): Outcome | undefined {
  const list = rules.tools.get(server)
  return list && matchName(list, tool)
}

/** The outcome of the first matching rule that has a wildcard in the server or the tool. */
function toolByStar<Outcome>(rules: RuleSet<Outcome>, server: string, tool: string): Outcome | undefined {
  const list = rules.tools.get(server)
  const found = list && matchStar(list, tool)
  if (found !== undefined) return found
  for (const starred of rules.starred) {
    const other = starred.matches(server) ? matchFirst(starred.tools, tool) : undefined
    if (other !== undefined) return other
  }
  return undefined
}

/** Whether a tool list applies to the server, even if the list is empty. */
function listsTools({ tools, starred }: RuleSet<unknown>, server: string): boolean {
  if (tools.has(server)) return true
  for (const { matches } of starred) if (matches(server)) return true
  return false
}

export const serverByEither = <Outcome>({ servers }: RuleSet<Outcome>, server: string): Outcome | undefined =>
  matchName(servers, server) ?? matchStar(servers, server)

/** An agent and the agents that it inherits from, itself first. Never empty. */
export type RuleFamily = readonly AgentRules[]

/**
 * Decides by the precedence of G6. A `deny` from any agent in the family wins; explicit denies are checked before
 * wildcards. Then every agent that has an `allow` must allow the entry; an agent without an `allow` leaves the decision
 * to its parent. So an agent never has more permissions than the agents it inherits from.
 */
export function decideByRules(family: RuleFamily, question: PolicyQuery, considered?: Consideration[]): Ruling {
  const { server, name, isTool } = question
  for (const { path, deny } of family) {
    const refusal = matchName(deny.servers, server) ?? (isTool ? toolByName(deny, server, name) : undefined)
    if (refusal) return decides(refusal, 'explicit deny', 'it is listed', considered)
    considered?.push(passes('explicit deny', `${path}.deny`))
  }
  for (const { path, deny } of family) {
    const refusal = matchStar(deny.servers, server) ?? (isTool ? toolByStar(deny, server, name) : undefined)
    if (refusal) return decides(refusal, 'wildcard deny', 'its pattern matches', considered)
    considered?.push(passes('wildcard deny', `${path}.deny`))
  }
  let nearest: Permission | undefined
  for (let level = 0; level < family.length; level++) {
    const rules = family[level] as AgentRules
    const parent = family[level + 1]
    if (parent && rules.allow.empty) {
      const note = `it has no allow rules, so those of ${parent.path} apply`
      considered?.push(passes('explicit allow', `${rules.path}.allow`, note))
      continue
    }
    const ruling = decideByAllow(rules, question, parent !== undefined, considered)
    if (!ruling.allowed) return ruling
    nearest ??= ruling
  }
  // The last agent of a family has no parent, so its `allow` is always evaluated and `nearest` is set here.
  return nearest as Permission
}

export function closedBy(family: RuleFamily, server: string): PolicyRefusal | undefined {
  for (const { deny } of family) {
    const refusal = serverByEither(deny, server)
    if (refusal) return refusal
  }
  const closes = (rules: AgentRules, level: number) => {
    const hasParent = level < family.length - 1
    if ((rules.allow.empty && hasParent) || serverByEither(rules.allow, server) !== undefined) return false
    return lacksServer(rules, server, hasParent) || !listsTools(rules.allow, server)
  }
  return family.find(closes)?.serverNotAllowed
}

/** Whether tool rules lack the server rule that they need. An agent without server rules uses its parent's. */
const lacksServer = ({ toolsNeedServer, allow }: AgentRules, server: string, hasParent: boolean): boolean =>
  toolsNeedServer &&
  server !== metaSource &&
  !(hasParent && allow.listsNoServer) &&
  serverByEither(allow, server) === undefined

function decideByAllow(
  rules: AgentRules,
  { server, name, isTool }: PolicyQuery,
  hasParent: boolean,
  considered?: Consideration[],
): Ruling {
  const { path, allow } = rules
  if (isTool && lacksServer(rules, server, hasParent)) {
    const note = `${path}.allow.servers does not list the server (policy.toolsNeedServer)`
    return decides(rules.serverNotAllowed, 'default deny', note, considered)
  }
  const explicit = isTool ? toolByName(allow, server, name) : matchName(allow.servers, server)
  if (explicit) return decides(explicit, 'explicit allow', 'it is listed', considered)
  considered?.push(passes('explicit allow', `${path}.allow`))

  const wildcard = isTool ? toolByStar(allow, server, name) : matchStar(allow.servers, server)
  if (wildcard) return decides(wildcard, 'wildcard allow', 'its pattern matches', considered)
  considered?.push(passes('wildcard allow', `${path}.allow`))

  if (server === metaSource)
    return decides(rules.metaTools, 'implicit grant', 'meta-tools are allowed unless denied', considered)
  const listed = isTool && listsTools(allow, server)
  const granted = isTool && !listed ? serverByEither(allow, server) : undefined
  if (granted) return decides(granted, 'implicit grant', 'its server is allowed without a list of tools', considered)
  const closed = listed ? 'only other tools are listed' : 'the server is not allowed'
  considered?.push(passes('implicit grant', `${path}.allow`, closed))
  const refusal = listed ? rules.toolNotAllowed : rules.serverNotAllowed
  return decides(refusal, 'default deny', 'no rule allows it', considered)
}
