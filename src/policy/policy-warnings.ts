import type { Config, LimitsConfig } from '../config/schema.ts'
import { metaSource } from '../core/source.ts'
import { annotatedReads, toolOverrides } from '../core/tool-overrides.ts'
import { skeletonOf } from '../lib/characters.ts'
import { didYouMean } from '../lib/similar-text.ts'
import { compilePattern } from '../lib/wildcard.ts'
import { closedBy, type RuleFamily, serverByEither, type WrittenAgent } from './agent-rules.ts'
import { lineage, parentName } from './agents.ts'
import { knownServers, Rules, type WrittenRules } from './rules.ts'

/** Warnings about valid but probably unintended policy settings, such as rules for servers that do not exist. */
export const policyWarnings = (config: Config): readonly string[] => [
  ...ruleWarnings({ ...config, servers: Object.keys(config.mcpServers) }),
  ...limitWarnings({ limits: config.limits, servers: Object.keys(config.mcpServers) }),
  ...settingWarnings.flatMap((warningsIn) => warningsIn(config)),
]

const settingWarnings: readonly ((config: Config) => string[])[] = [
  misspeltServerTools,
  uselessApprovals,
  rulesForNewNames,
  unknownAgents,
  uselessEndpointLines,
  openAgents,
  falseDefaultAgent,
  serversWithoutReads,
  alikeServers,
]

/** Warnings about names in the servers' own lists that none of their tools can have. */
function misspeltServerTools({ mcpServers }: Config): string[] {
  return Object.entries(mcpServers).flatMap(([name, { approve, readTools, idempotentTools, tools }]) => {
    const { include, exclude } = tools
    const lists = { approve, readTools, idempotentTools, 'tools.include': include, 'tools.exclude': exclude }
    return Object.entries(lists).flatMap(([list, names]) => toolNameWarnings(`mcpServers.${name}.${list}`, name, names))
  })
}

/** Warnings about rules that name a tool as callers see it: rules apply to the server's own names. */
function rulesForNewNames({ mcpServers, agents, policy, limits, cache, chat }: Config): string[] {
  const renamed = new Map<string, string>()
  for (const [server, { tools }] of Object.entries(mcpServers)) {
    const overrides = toolOverrides(tools)
    for (const [tool, { name }] of overrides)
      if (name !== undefined && !overrides.has(name)) renamed.set(`${server}.${name}`, `${server}.${tool}`)
  }
  if (renamed.size === 0) return []
  const warn = (key: string, rule: string) =>
    renamed.has(rule) ? [`${key}: ${rule} is a name for callers only; rules name the tool ${renamed.get(rule)}`] : []
  const { allowedTools, blockedTools, requireAuth } = policy
  const lists: Record<string, readonly string[]> = {
    ...{ 'policy.allowedTools': allowedTools, 'policy.blockedTools': blockedTools, 'policy.requireAuth': requireAuth },
    ...{ 'cache.tools': cache.tools, 'chat.approve': chat.approve },
  }
  for (const [agent, { allow, deny, approve = [] }] of Object.entries(agents)) {
    lists[`agents.${agent}.approve`] = approve
    for (const [effect, { tools }] of Object.entries({ allow, deny }))
      for (const [server, names] of Object.entries(tools))
        lists[`agents.${agent}.${effect}.tools.${server}`] = names.map((name) => `${server}.${name}`)
  }
  for (const [server, { approve, readTools, idempotentTools, tools }] of Object.entries(mcpServers)) {
    const own = { approve, readTools, idempotentTools, 'tools.include': tools.include, 'tools.exclude': tools.exclude }
    for (const [list, names] of Object.entries(own))
      lists[`mcpServers.${server}.${list}`] = names.map((name) => `${server}.${name}`)
  }
  return [
    ...Object.entries(lists).flatMap(([list, rules]) => inList(list, rules, warn)),
    ...Object.keys(limits.tools).flatMap((rule) => warn(`limits.tools.${rule}`, rule)),
  ]
}

/** Warnings about approvals that are never asked for. */
function uselessApprovals({ agents, chat, mcpServers }: Config): string[] {
  const servers = knownServers(Object.keys(mcpServers))
  const lists = Object.entries(agents).map(([name, { approve = [] }]) => [`agents.${name}.approve`, approve] as const)
  return [...lists, ['chat.approve', chat.approve] as const].flatMap(([list, patterns]) =>
    inList(list, patterns, (key, pattern) =>
      pattern === 'writes' ? [] : patternWarnings(key, 'approve', pattern, servers),
    ),
  )
}

/** Warnings about agents that are named in settings but have no rules, and therefore may not use anything. */
function unknownAgents({ agents, defaults, auth, endpoints }: Config): string[] {
  const known = Object.keys(agents)
  if (known.length === 0) return []
  const unknown = (key: string, agent: string) =>
    known.includes(agent) ? [] : [`${key}: there is no agent ${agent}${didYouMean(agent, known, '')}`]
  return [
    ...auth.keys.flatMap((key, index) => inList(`auth.keys[${index}].agents`, key.agents, unknown)),
    ...(defaults.agent === undefined ? [] : unknown('defaults.agent', defaults.agent)),
    ...Object.entries(endpoints).flatMap(([name, { agent }]) =>
      agent === undefined ? [] : unknown(`endpoints.${name}.agent`, agent),
    ),
  ]
}

/** Warnings about what endpoints serve that does not exist, and about keys for endpoints that do not exist. */
function uselessEndpointLines({ endpoints, mcpServers, auth }: Config): string[] {
  const servers = knownServers(Object.keys(mcpServers))
  const known = Object.keys(endpoints)
  return [
    ...Object.entries(endpoints).flatMap(([name, endpoint]) => [
      ...inList(`endpoints.${name}.servers`, endpoint.servers, (key, server) => serverWarnings(key, server, servers)),
      ...Object.entries(endpoint.tools).flatMap(([server, tools]) => {
        const key = `endpoints.${name}.tools.${server}`
        return [...serverWarnings(key, server, servers), ...toolNameWarnings(key, server, tools)]
      }),
    ]),
    ...auth.keys.flatMap(({ admin, endpoints: names = [] }, index) => [
      ...inList(`auth.keys[${index}].endpoints`, names, (key, name) =>
        known.includes(name) ? [] : [`${key}: there is no endpoint ${name}${didYouMean(name, known, '')}`],
      ),
      ...(admin && names.length > 0 ? [`auth.keys[${index}].admin has no effect beside endpoints`] : []),
    ]),
  ]
}

/** Warns if every caller can act as any agent, because per-agent rules then have little effect. */
function openAgents({ agents, auth }: Config): string[] {
  const identified = auth.keys.length > 0 || (auth.jwt !== undefined && !auth.jwt.disabled)
  if (auth.token !== 'none' || identified || Object.keys(agents).length === 0) return []
  return [
    'auth.token is none, so any client that can connect may act as any agent; give each agent a key (toolway keys create)',
  ]
}

/** Warns about an agent whose name says that it is the default agent, although it is not. */
function falseDefaultAgent({ agents, defaults: { agent, denyOnMissingAgent } }: Config): string[] {
  if (agents.default === undefined || agent === 'default' || (agent === undefined && !denyOnMissingAgent)) return []
  const instead =
    agent === undefined ? 'are rejected (defaults.denyOnMissingAgent)' : `act as ${agent} (defaults.agent)`
  return [
    `agents.default is not the default agent: callers that name no agent ${instead}; set defaults.agent: default, or rename it`,
  ]
}

function serversWithoutReads({ mcpServers }: Config): string[] {
  return Object.entries(mcpServers).flatMap(([name, { disabled, readOnly, readTools, tools, trustAnnotations }]) => {
    const reads = [...readTools, ...annotatedReads(tools)]
    if (disabled || !readOnly || reads.length > 0 || trustAnnotations) return []
    const help = 'list read-only tools in readTools, or set trustAnnotations: true to trust its readOnlyHint'
    return [`mcpServers.${name}.readOnly: none of its tools is known to be read-only, so none can be used; ${help}`]
  })
}

function alikeServers({ mcpServers }: Config): string[] {
  return [...Map.groupBy(Object.keys(mcpServers), skeletonOf).values()].flatMap(([first, ...others]) =>
    others.map((name) => `mcpServers.${name} looks like mcpServers.${first}; rename one of them`),
  )
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
    ...Object.keys(limits.servers).flatMap((name) => serverLimitWarnings(name, servers)),
    ...Object.keys(limits.tools).flatMap((pattern) => toolLimitWarnings(pattern, servers, toolsOf)),
  ]
}

function serverLimitWarnings(name: string, servers: ReadonlySet<string>): string[] {
  if (servers.has(name) || name === '*') return []
  const key = `limits.servers.${name}`
  if (name.includes('*')) return [`${key}: only * alone is supported here; use limits.tools for patterns`]
  return serverWarnings(key, name, servers)
}

type Tools = ReadonlyMap<string, readonly { readonly server: string; readonly name: string }[]>

function toolLimitWarnings(pattern: string, servers: ReadonlySet<string>, toolsOf: Tools): string[] {
  const key = `limits.tools.${pattern}`
  const wildcards = toolWildcardWarnings(key, pattern, servers)
  if (wildcards.length > 0) return wildcards
  const plain = plainStart(pattern)
  const isName = plain === pattern
  if (isName && !plain.includes('.')) return [`${key} has no effect; write it as server.tool`]
  const possible = serversMeant(pattern, servers)
  if (possible.length === 0) return serverWarnings(key, plain.split('.', 1)[0] as string, servers)
  // Check only exact names, because a pattern may be intended for tools that do not exist yet.
  const known = possible.map((server) => toolsOf.get(server) ?? [])
  if (!isName || known.some((tools) => tools.length === 0)) return []
  const names = known.flat().map(({ server, name }) => `${server}.${name}`)
  return names.includes(pattern) ? [] : [`${key}: there is no tool ${pattern}${didYouMean(pattern, names, '')}`]
}

/** An agent whose rules are checked. */
interface CheckedAgent extends WrittenAgent {
  readonly agent: string
  readonly path: string
  readonly families: Rules['families']
  readonly family: RuleFamily
  readonly servers: ReadonlySet<string>
}

const agentWarnings: readonly ((agent: CheckedAgent) => string[])[] = [
  unknownAgentServers,
  misspeltAgentTools,
  missingParents,
  uselessAllowLines,
  agentsWithoutServers,
]

/** Warnings about rules that are valid but probably unintended. */
export function ruleWarnings(written: WrittenRules): string[] {
  const { agents, policy } = written
  const { families } = new Rules(written)
  const servers = knownServers(written.servers)
  return [
    ...Object.entries(agents).flatMap(([agent, rules]) => {
      const { family } = families.get(agent)!
      const checked = { ...rules, agent, path: `agents.${agent}`, families, family, servers }
      return agentWarnings.flatMap((warningsIn) => warningsIn(checked))
    }),
    ...inList('policy.allowedServers', policy.allowedServers, (key, name) => serverWarnings(key, name, servers)),
    ...(['allowedTools', 'blockedTools', 'requireAuth'] as const).flatMap((list) =>
      inList(`policy.${list}`, policy[list], (key, pattern) => patternWarnings(key, list, pattern, servers)),
    ),
  ]
}

function unknownAgentServers({ path, allow, deny, servers }: CheckedAgent): string[] {
  return Object.entries({ allow, deny }).flatMap(([effect, rules]) => [
    ...inList(`${path}.${effect}.servers`, rules.servers, (key, name) => serverWarnings(key, name, servers)),
    ...Object.keys(rules.tools).flatMap((name) => serverWarnings(`${path}.${effect}.tools.${name}`, name, servers)),
  ])
}

function misspeltAgentTools({ path, allow, deny }: CheckedAgent): string[] {
  return Object.entries({ allow, deny }).flatMap(([effect, rules]) =>
    Object.entries(rules.tools).flatMap(([server, tools]) =>
      toolNameWarnings(`${path}.${effect}.tools.${server}`, server, tools),
    ),
  )
}

function missingParents({ agent, path, families }: CheckedAgent): string[] {
  const parent = parentName(agent)
  if (parent === undefined || families.has(parent)) return []
  const [, next] = lineage(agent, families)
  return [`${path}: there is no agent ${parent}, so it inherits ${next === undefined ? 'no rules' : `from ${next}`}`]
}

/** Warnings about `allow` lines that never allow anything. */
function uselessAllowLines(checked: CheckedAgent): string[] {
  const { path, allow, family, servers } = checked
  const closed = (key: string, server: string) => {
    const by = servers.has(server) && server !== metaSource ? closedBy(family, server)?.rule : undefined
    return by === undefined ? [] : [`${key} has no effect because of ${by}`]
  }
  return [
    ...inList(`${path}.allow.servers`, allow.servers, closed),
    ...Object.entries(allow.tools).flatMap(([server, tools]) => {
      const key = `${path}.allow.tools.${server}`
      if (server === metaSource) return [`${key} has no effect: meta-tools are allowed unless denied`]
      if (tools.length === 0) return [`${key} is empty, so no tools on ${server} are allowed`]
      const alone = servers.has(server) ? toolsWithoutServer(checked, server) : undefined
      const closing = closed(key, server)
      return alone !== undefined && (closing.length === 0 || family[0]?.toolsNeedServer) ? [alone] : closing
    }),
  ]
}

/** Warns about a tool list for a server missing from `allow.servers`: it has no effect, or is easily overlooked. */
function toolsWithoutServer({ path, allow, family }: CheckedAgent, server: string): string | undefined {
  const [{ allow: own, toolsNeedServer }] = family as [RuleFamily[number]]
  if (allow.servers.length === 0 || server.includes('*') || serverByEither(own, server) !== undefined) return undefined
  const key = `${path}.allow.tools.${server}`
  const lists = `${path}.allow.servers does not list ${server}`
  if (toolsNeedServer) return `${key} has no effect: ${lists} (policy.toolsNeedServer)`
  return `${key} allows these tools although ${lists}; add it there, or set policy.toolsNeedServer to require both`
}

function agentsWithoutServers({ path, deny, family, servers }: CheckedAgent): string[] {
  // Denying every server is intentional, so do not warn about it.
  if (deny.servers.includes('*')) return []
  const some = [...servers].some((server) => server !== metaSource && closedBy(family, server) === undefined)
  return some ? [] : [`${path} may use only the meta-tools: its rules allow no server`]
}

/** Warnings about a server's name or pattern that means no server. */
function serverWarnings(key: string, name: string, servers: ReadonlySet<string>): string[] {
  if (name.includes('*')) return [...servers].some(compilePattern(name)) ? [] : wildcardWarnings(key, name)
  return servers.has(name) ? [] : [`${key}: there is no server ${name}${didYouMean(name, servers, '')}`]
}

/** Warnings about tools that a list for one server names as if it were for all, or with wildcards other than `*`. */
const toolNameWarnings = (list: string, server: string, tools: readonly string[]): string[] =>
  inList(list, tools, (key, tool) => {
    const separator = ['.', '__', '::', '/'].find((one) => tool.startsWith(server + one))
    if (separator === undefined) return wildcardWarnings(key, tool)
    const name = tool.slice(server.length + separator.length)
    return [`${key}: ${tool} includes the server's name; if its tool is called ${name}, write it as ${name}`]
  })

/**
 * Names do not contain these characters, so the pattern was probably meant as a glob or a regular expression; so was a
 * dot before `*` in the name of a tool, although names may contain dots.
 */
function wildcardWarnings(key: string, pattern: string, name = pattern): string[] {
  const matchesNothing = /[?[\]{}|^$()+\\]|^[./]/.test(pattern)
  if (!matchesNothing && !name.includes('.*')) return []
  const server = pattern.slice(0, pattern.length - name.length)
  const meant = (server + name.replace(/\.[*+]/g, '*')).replace(/^\/|\/\w*$|[\^$]/g, '')
  const advice = /^[\w.*-]+$/.test(meant) && meant !== pattern ? `; did you mean ${meant}?` : ''
  const what = matchesNothing ? 'matches nothing' : 'matches only names with a dot there'
  return [`${key}: ${pattern} ${what}, because only * is a wildcard${advice}`]
}

/** The same for a pattern of the form `server.tool`. */
function toolWildcardWarnings(key: string, pattern: string, servers: ReadonlySet<string>): string[] {
  const [only, other] = serversMeant(pattern, servers)
  const isOnly = only !== undefined && other === undefined && pattern.startsWith(`${only}.`)
  return wildcardWarnings(key, pattern, isOnly ? pattern.slice(only.length + 1) : '')
}

function patternWarnings(
  key: string,
  list: 'allowedTools' | 'blockedTools' | 'requireAuth' | 'approve',
  pattern: string,
  servers: ReadonlySet<string>,
): string[] {
  const plain = plainStart(pattern)
  const wildcards = toolWildcardWarnings(key, pattern, servers)
  if (wildcards.length > 0) return wildcards
  const meant = serversMeant(pattern, servers)
  if (!plain.includes('.')) {
    const matchesNothing = plain === pattern || meant.length === 0
    return matchesNothing ? [`${key}: ${pattern} matches nothing; write it as server.tool`] : []
  }
  if (list !== 'blockedTools' && list !== 'approve' && plain.startsWith('toolway.'))
    return [`${key} has no effect: meta-tools are allowed unless blocked or denied`]
  if (meant.length === 0) return serverWarnings(key, plain.split('.', 1)[0] as string, servers)
  if (list !== 'allowedTools' || meant.length === 1) return []
  return [`${key} is ambiguous: it allows tools on ${meant.join(' and ')}`]
}

/** The servers whose tools a pattern may mean. Server names may contain dots, so `a.b.c` may be on `a` or `a.b`. */
function serversMeant(pattern: string, servers: ReadonlySet<string>): string[] {
  const plain = plainStart(pattern)
  const mayMean = (start: string) => plain.startsWith(start) || (plain !== pattern && start.startsWith(plain))
  return [...servers].filter((server) => mayMean(`${server}.`))
}

const plainStart = (pattern: string): string => pattern.split('*', 1)[0] as string

/** The warnings about each item of a list, given its key. */
const inList = (
  list: string,
  items: readonly string[],
  warningsIn: (key: string, item: string) => string[],
): string[] => items.flatMap((item, index) => warningsIn(`${list}[${index}]`, item))
