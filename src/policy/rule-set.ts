import type { AgentConfig } from '../config/schema.ts'
import { byEither, byName, byStar, type CompilePattern, compilePatterns, type Patterns } from './patterns.ts'

/** `allow` or `deny` of one agent, as it is written. */
export type WrittenRules = AgentConfig['allow']

/** `allow` or `deny` of one agent, compiled. What is found in it is what the rule that matches leads to. */
export interface RuleSet<Outcome> {
  readonly empty: boolean
  readonly listsNoServer: boolean
  readonly servers: Patterns<Outcome>
  /** The tools below names of servers. */
  readonly tools: ReadonlyMap<string, Patterns<Outcome>>
  /** The tools below patterns of servers. */
  readonly starred: readonly { matches(server: string): boolean; readonly tools: Patterns<Outcome> }[]
}

/** Compiles rules that stand below `path`; `outcomeOf` says what the rule of that name leads to. */
export function compileRuleSet<Outcome>(
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
