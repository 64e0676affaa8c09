import type { Config } from '../config/schema.ts'
import { skeletonOf } from '../core/lookalikes.ts'
import { didYouMean } from '../core/near.ts'
import { doubtfulLimits } from './limits/doubtful.ts'
import { compileRules } from './rules.ts'

/** What is valid but hardly meant: rules and limits about servers that do not exist, agents that nobody has rules for. */
export const policyDoubts = (config: Config): readonly string[] => [
  ...compileRules({ ...config, servers: Object.keys(config.mcpServers) }).warnings,
  ...doubtfulLimits({ limits: config.limits, servers: Object.keys(config.mcpServers) }),
  ...unknownAgents(config),
  ...openAgents(config),
  ...readsNothing(config),
  ...alikeServers(Object.keys(config.mcpServers)),
]

/** Whoever acts as an agent without rules may use nothing. */
function unknownAgents({ agents, defaults, auth }: Config): string[] {
  const known = Object.keys(agents)
  if (known.length === 0) return []
  const named: [string, string][] = auth.keys.flatMap((key, index) =>
    key.agents.map((agent, at): [string, string] => [`auth.keys[${index}].agents[${at}]`, agent]),
  )
  if (defaults.agent !== undefined) named.push(['defaults.agent', defaults.agent])
  return named
    .filter(([, agent]) => !known.includes(agent))
    .map(([key, agent]) => `${key}: there is no agent ${agent}${didYouMean(agent, known, '')}`)
}

/** Names that a person cannot tell apart at a glance. */
const alikeServers = (names: readonly string[]): string[] =>
  names.flatMap((name, index) => {
    const other = names.slice(0, index).find((one) => skeletonOf(one) === skeletonOf(name))
    return other === undefined ? [] : [`mcpServers.${name} looks like mcpServers.${other}; rename one of them`]
  })

/** A read-only server whose tools can all only be taken for writes. */
const readsNothing = ({ mcpServers }: Config): string[] =>
  Object.entries(mcpServers).flatMap(([name, { disabled, readOnly, readTools, trustAnnotations }]) => {
    if (disabled || !readOnly || readTools.length > 0 || trustAnnotations) return []
    const help = 'list those that read in readTools, or set trustAnnotations: true to count its own readOnlyHint'
    return [`mcpServers.${name}.readOnly: none of its tools is known to be a read, so none can be used; ${help}`]
  })

/** Rules per agent mean little where everybody may say that they are any of them. */
function openAgents({ agents, auth }: Config): string[] {
  const identified = auth.keys.length > 0 || (auth.jwt !== undefined && !auth.jwt.disabled)
  if (auth.token !== 'none' || identified || Object.keys(agents).length === 0) return []
  return ['auth.token is none: whoever can connect may act as any agent; give each agent a key (toolway keys create)']
}
