import type { AgentConfig } from '../config/schema.ts'
import { byEither, byName, byStar, type CompilePattern, compilePatterns, type Patterns } from './patterns.ts'
import { type Permission, type PolicyQuery, type PolicyRefusal, permission } from './verdict.ts'

/** The rules of one agent, as they are written. */
export type WrittenAgent = Pick<AgentConfig, 'allow' | 'deny'>

/** The rules of one agent, without those that it inherits. */
export interface AgentRules {
  /** Where they stand in the configuration. */
  readonly path: string
  readonly allow: RuleSet<Permission>
  readonly deny: RuleSet<PolicyRefusal>
  readonly metaTools: Permission
  readonly serverNotAllowed: PolicyRefusal
  readonly toolNotAllowed: PolicyRefusal
  /** A rule for tools allows only where a rule for servers does, too. */
  readonly toolsNeedServer: boolean
}

/** Compiles what one agent says, each rule into the ruling that it makes. */
export function compileAgent(
  agent: string,
  { allow, deny }: WrittenAgent,
  compile: CompilePattern,
  toolsNeedServer = false,
): AgentRules {
  const path = `agents.${agent}`
  const byDefault = { ...refused, rule: `${path} (default deny)` }
  const advice = `Use something else, or ask the operator to add it to ${path}.allow.`
  return {
    path,
    toolsNeedServer,
    allow: compileRuleSet(allow, `${path}.allow`, compile, permission),
    deny: compileRuleSet(deny, `${path}.deny`, compile, denied),
    metaTools: permission(`${path} (meta-tools)`),
    serverNotAllowed: {
      ...byDefault,
      auditReason: 'server_not_allowed',
      // Whether the server has what was asked for is not told: this is said of what it has not, too.
      sentence: ({ agent, server }) =>
        `The agent ${agent} may not use this: no rule allows it the server ${server}. ${advice}`,
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

/** `allow` or `deny` of one agent, as it is written. */
type WrittenRules = AgentConfig['allow']

/** `allow` or `deny` of one agent, compiled. What is found in it is what the rule that matches leads to. */
interface RuleSet<Outcome> {
  readonly empty: boolean
  readonly listsNoServer: boolean
  readonly servers: Patterns<Outcome>
  /** The tools below names of servers. */
  readonly tools: ReadonlyMap<string, Patterns<Outcome>>
  /** The tools below patterns of servers. */
  readonly starred: readonly { matches(server: string): boolean; readonly tools: Patterns<Outcome> }[]
}

/** Compiles rules that stand below `path`; `outcomeOf` says what the rule of that name leads to. */
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

/** By the rule that has this very tool below this very server. */
export function toolByName<Outcome>(rules: RuleSet<Outcome>, server: string, tool: string): Outcome | undefined {
  const list = rules.tools.get(server)
  return list && byName(list, tool)
}

/** By the first rule that matches the tool with a star, in the server that it stands below or in its own text. */
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

/** Whether any list of tools is about the server; an empty one is a list that names no tool. */
export function listsTools({ tools, starred }: RuleSet<unknown>, server: string): boolean {
  if (tools.has(server)) return true
  for (const { matches } of starred) if (matches(server)) return true
  return false
}

/** By the rule that has this very server, or else by the first one whose pattern matches it. */
export const serverByEither = <Outcome>({ servers }: RuleSet<Outcome>, server: string): Outcome | undefined =>
  byName(servers, server) ?? byStar(servers, server)
