import type { AgentConfig } from '../config/schema.ts'
import { compilePattern, compilePatterns, type Patterns } from './patterns.ts'

/** `allow` or `deny` of one agent, as it is written. */
export type WrittenRules = AgentConfig['allow']

/** `allow` or `deny` of one agent, ready to be asked. Each answer is what the rule that matched leads to. */
export interface RuleSet<Outcome> {
  readonly empty: boolean
  /** The rule that has this very server. */
  server(server: string): Outcome | undefined
  /** The first rule whose pattern matches the server. */
  serverPattern(server: string): Outcome | undefined
  /** The rule that has this very tool below this very server. */
  tool(server: string, tool: string): Outcome | undefined
  /** The first rule that matches the tool with a star, in its server or in its own name. */
  toolPattern(server: string, tool: string): Outcome | undefined
  /** Whether any rule for tools is about this server; an empty list is one that names no tool. */
  speaksOfToolsOf(server: string): boolean
}

interface ToolList<Outcome> {
  readonly patterns: Patterns
  readonly outcomes: readonly Outcome[]
}

/** Compiles rules that stand below `path`; `outcome` says what the rule of that name leads to. */
export function compileRuleSet<Outcome>(
  { servers, tools }: WrittenRules,
  path: string,
  outcome: (rule: string, about: 'server' | 'tool') => Outcome,
): RuleSet<Outcome> {
  const serverNames = compilePatterns(servers)
  const serverOutcomes = servers.map((_, index) => outcome(`${path}.servers[${index}]`, 'server'))
  const byServer = new Map<string, ToolList<Outcome>>()
  const byPattern: (ToolList<Outcome> & { matches(server: string): boolean })[] = []
  for (const [server, list] of Object.entries(tools)) {
    const compiled = {
      patterns: compilePatterns(list),
      outcomes: list.map((_, index) => outcome(`${path}.tools.${server}[${index}]`, 'tool')),
    }
    if (server.includes('*')) byPattern.push({ ...compiled, matches: compilePattern(server) })
    else byServer.set(server, compiled)
  }

  return {
    empty: servers.length === 0 && byServer.size === 0 && byPattern.length === 0,
    server: (server) => serverOutcomes[serverNames.exact(server)],
    serverPattern: (server) => serverOutcomes[serverNames.wildcard(server)],
    tool(server, tool) {
      const list = byServer.get(server)
      return list?.outcomes[list.patterns.exact(tool)]
    },
    toolPattern(server, tool) {
      const list = byServer.get(server)
      const found = list?.outcomes[list.patterns.wildcard(tool)]
      if (found !== undefined) return found
      for (const { matches, patterns, outcomes } of byPattern) {
        if (!matches(server)) continue
        const other = outcomes[patterns.first(tool)]
        if (other !== undefined) return other
      }
      return undefined
    },
    speaksOfToolsOf: (server) => byServer.has(server) || byPattern.some(({ matches }) => matches(server)),
  }
}
