import { builtInSources, metaSource } from '../core/source.ts'
import { didYouMean } from '../lib/similar-text.ts'
import { compilePattern } from '../lib/wildcard.ts'
import { serverByEither, type WrittenAgent } from './agent-rules.ts'
import { lineage, parentName } from './agents.ts'
import { closedBy, type RuleFamily } from './evaluate-rules.ts'
import type { GlobalPolicy } from './global.ts'

export interface RuleWarningsOptions {
  readonly agents: Readonly<Record<string, WrittenAgent>>
  readonly families: ReadonlyMap<string, { readonly family: RuleFamily }>
  readonly policy: GlobalPolicy
  readonly servers: ReadonlySet<string>
}

export const knownServers = (configured: readonly string[]): ReadonlySet<string> =>
  new Set([...configured, ...builtInSources])

/** Warnings about rules that are valid but probably unintended. */
export function ruleWarnings({ agents, families, policy, servers }: RuleWarningsOptions): string[] {
  return [
    ...Object.entries(agents).flatMap(([agent, written]) => [
      ...unknownServers(agent, written, servers),
      ...misspeltTools(agent, written),
      ...missingParent(agent, families),
      ...withoutEffect(agent, written, families.get(agent)!.family, servers),
      ...usesNothing(agent, written, families.get(agent)!.family, servers),
    ]),
    ...policy.allowedServers.flatMap((name, index) =>
      unknownServerWarning(`policy.allowedServers[${index}]`, name, servers),
    ),
    ...(['allowedTools', 'blockedTools', 'requireAuth'] as const).flatMap((list) =>
      policy[list].flatMap((pattern, index) => patternWarnings(`policy.${list}[${index}]`, list, pattern, servers)),
    ),
  ]
}

export function unknownServerWarning(key: string, name: string, servers: ReadonlySet<string>): string[] {
  if (name.includes('*')) return [...servers].some(compilePattern(name)) ? [] : wildcardWarnings(key, name)
  return servers.has(name) ? [] : [`${key}: there is no server ${name}${didYouMean(name, servers, '')}`]
}

/** The servers whose tools a pattern may mean. Server names may contain dots, so `a.b.c` may be on `a` or `a.b`. */
export function serversMeant(pattern: string, servers: ReadonlySet<string>): string[] {
  const plain = pattern.split('*', 1)[0] as string
  const mayMean = (start: string) => plain.startsWith(start) || (plain !== pattern && start.startsWith(plain))
  return [...servers].filter((server) => mayMean(`${server}.`))
}

const unknownServers = (agent: string, written: WrittenAgent, servers: ReadonlySet<string>): string[] =>
  (['allow', 'deny'] as const).flatMap((effect) => [
    ...written[effect].servers.flatMap((name, index) =>
      unknownServerWarning(`agents.${agent}.${effect}.servers[${index}]`, name, servers),
    ),
    ...Object.keys(written[effect].tools).flatMap((name) =>
      unknownServerWarning(`agents.${agent}.${effect}.tools.${name}`, name, servers),
    ),
  ])

const misspeltTools = (agent: string, written: WrittenAgent): string[] =>
  (['allow', 'deny'] as const).flatMap((effect) =>
    Object.entries(written[effect].tools).flatMap(([server, tools]) =>
      toolNameWarnings(`agents.${agent}.${effect}.tools.${server}`, server, tools),
    ),
  )

/** Warnings about tools that a list for one server names as if it were for all, or with wildcards other than `*`. */
export const toolNameWarnings = (key: string, server: string, tools: readonly string[]): string[] =>
  tools.flatMap((tool, index) => {
    const separator = ['.', '__', '::', '/'].find((one) => tool.startsWith(server + one))
    if (separator === undefined) return wildcardWarnings(`${key}[${index}]`, tool)
    const name = tool.slice(server.length + separator.length)
    return [`${key}[${index}]: ${tool} includes the server's name; if its tool is called ${name}, write it as ${name}`]
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
export function toolWildcardWarnings(key: string, pattern: string, servers: ReadonlySet<string>): string[] {
  const [only, other] = serversMeant(pattern, servers)
  const isOnly = only !== undefined && other === undefined && pattern.startsWith(`${only}.`)
  return wildcardWarnings(key, pattern, isOnly ? pattern.slice(only.length + 1) : '')
}

function missingParent(agent: string, families: ReadonlyMap<string, unknown>): string[] {
  const parent = parentName(agent)
  if (parent === undefined || families.has(parent)) return []
  const [, next] = lineage(agent, families)
  return [
    `agents.${agent}: there is no agent ${parent}, so it inherits ${next === undefined ? 'no rules' : `from ${next}`}`,
  ]
}

/** Warnings about `allow` lines that never allow anything. */
function withoutEffect(
  agent: string,
  { allow }: WrittenAgent,
  family: RuleFamily,
  servers: ReadonlySet<string>,
): string[] {
  const closed = (key: string, server: string) => {
    const by = servers.has(server) && server !== metaSource ? closedBy(family, server)?.rule : undefined
    return by === undefined ? [] : [`${key} has no effect because of ${by}`]
  }
  const at = `agents.${agent}.allow`
  return [
    ...allow.servers.flatMap((server, index) => closed(`${at}.servers[${index}]`, server)),
    ...Object.entries(allow.tools).flatMap(([server, tools]) => {
      const key = `${at}.tools.${server}`
      if (server === metaSource) return [`${key} has no effect: meta-tools are allowed unless denied`]
      if (tools.length === 0) return [`${key} is empty, so no tools on ${server} are allowed`]
      const alone = servers.has(server) ? withoutServer(agent, server, allow, family) : undefined
      const closing = closed(key, server)
      return alone !== undefined && (closing.length === 0 || family[0]?.toolsNeedServer) ? [alone] : closing
    }),
  ]
}

/** Warns about a tool list for a server missing from `allow.servers`: it has no effect, or is easily overlooked. */
function withoutServer(
  agent: string,
  server: string,
  allow: WrittenAgent['allow'],
  family: RuleFamily,
): string | undefined {
  const [{ allow: own, toolsNeedServer }] = family as [RuleFamily[number]]
  if (allow.servers.length === 0 || server.includes('*') || serverByEither(own, server) !== undefined) return undefined
  const key = `agents.${agent}.allow.tools.${server}`
  const lists = `agents.${agent}.allow.servers does not list ${server}`
  if (toolsNeedServer) return `${key} has no effect: ${lists} (policy.toolsNeedServer)`
  return `${key} allows these tools although ${lists}; add it there, or set policy.toolsNeedServer to require both`
}

function usesNothing(
  agent: string,
  { deny }: WrittenAgent,
  family: RuleFamily,
  servers: ReadonlySet<string>,
): string[] {
  // Denying every server is intentional, so do not warn about it.
  if (deny.servers.includes('*')) return []
  const some = [...servers].some((server) => server !== metaSource && closedBy(family, server) === undefined)
  return some ? [] : [`agents.${agent} may use only the meta-tools: its rules allow no server`]
}

export function patternWarnings(
  key: string,
  list: 'allowedTools' | 'blockedTools' | 'requireAuth' | 'approve',
  pattern: string,
  servers: ReadonlySet<string>,
): string[] {
  const plain = pattern.split('*', 1)[0] as string
  const wildcards = toolWildcardWarnings(key, pattern, servers)
  if (wildcards.length > 0) return wildcards
  if (!plain.includes('.')) {
    const matchesNothing = plain === pattern || serversMeant(pattern, servers).length === 0
    return matchesNothing ? [`${key}: ${pattern} matches nothing; write it as server.tool`] : []
  }
  if (list !== 'blockedTools' && list !== 'approve' && plain.startsWith('toolway.'))
    return [`${key} has no effect: meta-tools are allowed unless blocked or denied`]
  const meant = serversMeant(pattern, servers)
  if (meant.length === 0) return unknownServerWarning(key, plain.split('.', 1)[0] as string, servers)
  if (list !== 'allowedTools' || meant.length === 1) return []
  return [`${key} is ambiguous: it allows tools on ${meant.join(' and ')}`]
}
