import type { Config, LimitsConfig } from '../config/schema.ts'
import { skeletonOf } from '../lib/lookalikes.ts'
import { didYouMean } from '../lib/similar-text.ts'
import {
  knownServers,
  patternWarnings,
  serversMeant,
  toolNameWarnings,
  toolWildcardWarnings,
  unknownServerWarning,
} from './rule-warnings.ts'
import { compileRules } from './rules.ts'

/** Warnings about valid but probably unintended policy settings, such as rules for servers that do not exist. */
export const policyWarnings = (config: Config): readonly string[] => [
  ...compileRules({ ...config, servers: Object.keys(config.mcpServers) }).warnings,
  ...limitWarnings({ limits: config.limits, servers: Object.keys(config.mcpServers) }),
  ...misspeltTools(config),
  ...withoutApproval(config),
  ...unknownAgents(config),
  ...openAgents(config),
  ...notTheDefault(config),
  ...readsNothing(config),
  ...alikeServers(Object.keys(config.mcpServers)),
]

/** Warnings about agents that are named in settings but have no rules, and therefore may not use anything. */
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

/** Warnings about names in the servers' own lists that none of their tools can have. */
const misspeltTools = ({ mcpServers }: Config): string[] =>
  Object.entries(mcpServers).flatMap(([name, { approve, readTools, idempotentTools, tools }]) => {
    const { include, exclude } = tools
    const lists = { approve, readTools, idempotentTools, 'tools.include': include, 'tools.exclude': exclude }
    return Object.entries(lists).flatMap(([list, names]) => toolNameWarnings(`mcpServers.${name}.${list}`, name, names))
  })

/** Warnings about approvals that are never asked for. */
function withoutApproval({ agents, chat, mcpServers }: Config): string[] {
  const servers = knownServers(Object.keys(mcpServers))
  const lists = Object.entries(agents).map(([name, { approve = [] }]) => [`agents.${name}.approve`, approve] as const)
  return [...lists, ['chat.approve', chat.approve] as const].flatMap(([key, patterns]) =>
    patterns.flatMap((pattern, index) =>
      pattern === 'writes' ? [] : patternWarnings(`${key}[${index}]`, 'approve', pattern, servers),
    ),
  )
}

const alikeServers = (names: readonly string[]): string[] =>
  [...Map.groupBy(names, skeletonOf).values()].flatMap(([first, ...others]) =>
    others.map((name) => `mcpServers.${name} looks like mcpServers.${first}; rename one of them`),
  )

const readsNothing = ({ mcpServers }: Config): string[] =>
  Object.entries(mcpServers).flatMap(([name, { disabled, readOnly, readTools, trustAnnotations }]) => {
    if (disabled || !readOnly || readTools.length > 0 || trustAnnotations) return []
    const help = 'list read-only tools in readTools, or set trustAnnotations: true to trust its readOnlyHint'
    return [`mcpServers.${name}.readOnly: none of its tools is known to be read-only, so none can be used; ${help}`]
  })

/** Warns if every caller can act as any agent, because per-agent rules then have little effect. */
function openAgents({ agents, auth }: Config): string[] {
  const identified = auth.keys.length > 0 || (auth.jwt !== undefined && !auth.jwt.disabled)
  if (auth.token !== 'none' || identified || Object.keys(agents).length === 0) return []
  return [
    'auth.token is none, so any client that can connect may act as any agent; give each agent a key (toolway keys create)',
  ]
}

/** Warns about an agent whose name says that it is the default agent, although it is not. */
function notTheDefault({ agents, defaults: { agent, denyOnMissingAgent } }: Config): string[] {
  if (agents.default === undefined || agent === 'default' || (agent === undefined && !denyOnMissingAgent)) return []
  const instead =
    agent === undefined ? 'are rejected (defaults.denyOnMissingAgent)' : `act as ${agent} (defaults.agent)`
  return [
    `agents.default is not the default agent: callers that name no agent ${instead}; set defaults.agent: default, or rename it`,
  ]
}

interface LimitWarningsOptions {
  readonly limits: Pick<LimitsConfig, 'servers' | 'tools'>
  /** The configured servers, including disabled ones. `native`, `toolway` and `sink` need not be listed. */
  readonly servers: readonly string[]
  /** The tools that are known so far. For a server without known tools, tool names are not checked. */
  readonly tools?: Iterable<{ readonly server: string; readonly name: string }>
}

/** Warnings about limits that are valid but probably unintended. */
export function limitWarnings({ limits, servers: configured, tools = [] }: LimitWarningsOptions): string[] {
  const servers = knownServers(configured)
  const toolsOf = Map.groupBy(tools, ({ server }) => server)
  return [
    ...Object.keys(limits.servers).flatMap((name) => doubtfulServer(name, servers)),
    ...Object.keys(limits.tools).flatMap((pattern) => toolLimitWarnings(pattern, servers, toolsOf)),
  ]
}

function doubtfulServer(name: string, servers: ReadonlySet<string>): string[] {
  if (servers.has(name) || name === '*') return []
  const key = `limits.servers.${name}`
  if (name.includes('*')) return [`${key}: only * alone is supported here; use limits.tools for patterns`]
  return unknownServerWarning(key, name, servers)
}

type Tools = ReadonlyMap<string, readonly { readonly server: string; readonly name: string }[]>

function toolLimitWarnings(pattern: string, servers: ReadonlySet<string>, toolsOf: Tools): string[] {
  const key = `limits.tools.${pattern}`
  const wildcards = toolWildcardWarnings(key, pattern, servers)
  if (wildcards.length > 0) return wildcards
  const plain = pattern.split('*', 1)[0] as string
  const isName = plain === pattern
  if (isName && !plain.includes('.')) return [`${key} has no effect; write it as server.tool`]
  const possible = serversMeant(pattern, servers)
  if (possible.length === 0) return unknownServerWarning(key, plain.split('.', 1)[0] as string, servers)
  // Check only exact names, because a pattern may be intended for tools that do not exist yet.
  const known = possible.map((server) => toolsOf.get(server) ?? [])
  if (!isName || known.some((tools) => tools.length === 0)) return []
  const names = known.flat().map(({ server, name }) => `${server}.${name}`)
  return names.includes(pattern) ? [] : [`${key}: there is no tool ${pattern}${didYouMean(pattern, names, '')}`]
}
