import type { AgentConfig } from '../config/schema.ts'
import { byEither, byName, byStar, type CompilePattern, compilePatterns, type Patterns } from './patterns.ts'
import { type Permission, type PolicyQuery, type PolicyRefusal, permission } from './verdict.ts'

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
  const byDefault = { ...refused, rule: `${path} (default deny)` }
  const advice = `Use another tool or server, or ask the operator to add it to ${path}.allow.`
  return {
    path,
    toolsNeedServer,
    allow: compileRuleSet(allow, `${path}.allow`, compile, permission),
    deny: compileRuleSet(deny, `${path}.deny`, compile, denied),
    metaTools: permission(`${path} (meta-tools)`),
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

const refused = { allowed: false, code: 'DENIED_BY_POLICY' } as const

const denied = (rule: string, about: 'server' | 'tool'): PolicyRefusal => ({
  ...refused,
  rule,
  auditReason: `${about}_not_allowed`,
  sentence: about === 'server' ? serverDenied : toolDenied,
})

const serverDenied = ({ agent, server }: PolicyQuery, rule: string) =>
  `The agent ${agent} may not use the server ${server}: ${rule} denies it. Use another server, or ask the operator.`

const toolDenied = ({ agent, server, name }: PolicyQuery, rule: string) =>
  `The agent ${agent} may not use ${server}.${name}: ${rule} denies it. Use another tool, or ask the operator.`

type WrittenRules = AgentConfig['allow']

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
  { servers, tools }: WrittenRules,
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

export function toolByName<Outcome>(rules: RuleSet<Outcome>, server: string, tool: string): Outcome | undefined {
  const list = rules.tools.get(server)
  return list && byName(list, tool)
}

/** The outcome of the first matching rule that has a wildcard in the server or the tool. */
export function toolByStar<Outcome>(rules: RuleSet<Outcome>, server: string, tool: string): Outcome | undefined {
  const list = rules.tools.get(server)
  const found = list && byStar(list, tool)
  if (found !== undefined) return found
  for (const starred of rules.starred) {
    const other = starred.matches(server) ? byEither(starred.tools, tool) : undefined
    if (other !== undefined) return other
  }
  return undefined
}

/** Whether a tool list applies to the server, even if the list is empty. */
export function listsTools({ tools, starred }: RuleSet<unknown>, server: string): boolean {
  if (tools.has(server)) return true
  for (const { matches } of starred) if (matches(server)) return true
  return false
}

export const serverByEither = <Outcome>({ servers }: RuleSet<Outcome>, server: string): Outcome | undefined =>
  byName(servers, server) ?? byStar(servers, server)
