import type { Config } from '../../config/schema.ts'
import { compileRules } from '../../policy/rules.ts'
import { type Check, ok, warning } from './finding.ts'
import { count } from './words.ts'

/** Whether every agent may use some tool that there is, by its rules and by what the servers offer. */
export const agentCheck = (
  config: Config,
  tools: Promise<ReadonlyMap<string, readonly string[]>>,
  command: string,
): Check => ({
  name: 'agents',
  async run() {
    const agents = Object.keys(config.agents)
    if (agents.length === 0) return ok('no rules: every caller may use every tool')
    const known = new Map([...(await tools), ['native', config.native.tools]])
    const enabled = Object.entries(config.mcpServers).filter(([, { disabled }]) => !disabled)
    const silent = enabled.map(([name]) => name).filter((name) => !known.has(name))
    const servers = Object.keys(config.mcpServers)
    const rules = compileRules({ agents: config.agents, policy: config.policy, servers })

    const isIdle = (agent: string): boolean => {
      // Who denies everything means it.
      if (config.agents[agent]?.deny.servers.includes('*')) return false
      const caller = { agent, authenticated: true }
      // Nobody knows what a server offers that did not tell.
      if (silent.some((server) => rules.closed(caller, server) === undefined)) return false
      return ![...known].some(([server, names]) =>
        names.some((name) => rules.decide(caller, { kind: 'tool', server, name }).allowed),
      )
    }
    const idle = agents.filter(isIdle)
    if (idle.length === 0)
      return ok(`${count(agents.length, 'agent')}, each of which may use something or is denied everything on purpose`)
    const [server = 'native', names = []] = [...known].find(([, offered]) => offered.length > 0) ?? []
    return idle.map((agent) =>
      warning(
        `${agent} may use none of the tools that there are`,
        `${command} why ${agent} ${server}.${names[0] ?? 'hash'}`,
      ),
    )
  },
})
