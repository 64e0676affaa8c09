import { nearMiss } from '../../core/near.ts'
import { problemAt } from '../problems.ts'
import { type Branch, branch, type List, type Member, type Tree } from '../tree.ts'
import type { Report } from './report.ts'
import { instead, membersOf, shape } from './shape.ts'

const strategies: Readonly<Record<string, string>> = { server_prefix: 'prefix', flat: 'flat', custom: 'custom' }

/** `[tool_forwarding]` as our sections naming, policy, limits and cache. */
export function forwardingSections(forwarding: Tree | undefined, report: Report): Record<string, Branch | undefined> {
  const members = membersOf(forwarding, ['enabled', 'namespace_strategy', 'security', 'rate_limit', 'cache'], report)
  const security = membersOf(
    members.get('security')?.value,
    ['allowed_namespaces', 'allowed_tools', 'blocked_tools'],
    report,
  )
  const strategy = members.get('namespace_strategy')
  const at = forwarding?.at
  if (at === undefined) return {}
  const namespaces = security.get('allowed_namespaces')?.value
  if (namespaces?.kind === 'list' && !names(namespaces).some((name) => name === '*' || name === 'native')) {
    report.notes.push(
      "allowed_namespaces leaves out native, so Toolway's own tools are not served; add native to keep them",
    )
  }
  return {
    naming:
      strategy && shape(strategy.at, { strategy: { at: strategy.at, value: strategyOf(strategy.value, report) } }),
    policy: shape(at, {
      allowedServers: security.get('allowed_namespaces'),
      allowedTools: toolsOf(security.get('allowed_tools')),
      blockedTools: toolsOf(security.get('blocked_tools')),
    }),
    limits: limitsOf(members.get('rate_limit'), report),
    cache: cacheOf(members.get('cache'), report),
  }
}

const names = ({ items }: List): unknown[] => items.map((item) => (item.kind === 'leaf' ? item.value : undefined))

function strategyOf(part: Tree, report: Report): Tree {
  if (part.kind !== 'leaf') return part
  const known = strategies[String(part.value)]
  if (known !== undefined) return instead(part, known)
  const near = nearMiss(String(part.value), Object.keys(strategies))
  const help = near === undefined ? '' : `; did you mean ${near}?`
  const expected = `one of ${Object.keys(strategies).join(', ')}`
  report.problems.push(problemAt(part.at, `expected ${expected}, found "${part.value}"${help}`, { expected }))
  return instead(part, 'prefix')
}

/** Tools are written `server::tool` there; one without a server means that tool of any server. */
const toolName = (written: string): string => {
  if (written.includes('::')) return written.replace('::', '.')
  return written === '*' || written.includes('.') ? written : `*.${written}`
}

function toolsOf(entry: Member | undefined): Member | undefined {
  if (entry?.value.kind !== 'list') return entry
  const items = entry.value.items.map((item) =>
    item.kind === 'leaf' && typeof item.value === 'string' ? instead(item, toolName(item.value)) : item,
  )
  return { at: entry.at, value: { ...entry.value, items } }
}

/** Calls a minute: `default`, and by the name of a server or `server::tool`. */
function limitsOf(entry: Member | undefined, report: Report): Branch | undefined {
  if (!entry) return undefined
  const members = membersOf(entry.value, undefined, report)
  const perMinute = members.get('default')
  members.delete('default')
  const servers = [...members].filter(([key]) => !key.includes('::'))
  const tools = [...members].flatMap(([key, limit]) => (key.includes('::') ? [[toolName(key), limit] as const] : []))
  return shape(entry.at, {
    perMinute,
    servers: branch(entry.at, servers),
    tools: branch(entry.at, tools),
  })
}

function cacheOf(entry: Member | undefined, report: Report): Branch | undefined {
  if (!entry) return undefined
  const members = membersOf(entry.value, ['enabled', 'ttl_seconds', 'max_size'], report)
  const ttl = members.get('ttl_seconds')
  return shape(entry.at, {
    enabled: members.get('enabled'),
    ttl: ttl && { at: ttl.at, value: inSeconds(ttl.value) },
    maxEntries: members.get('max_size'),
  })
}

const inSeconds = (part: Tree): Tree =>
  part.kind === 'leaf' && typeof part.value === 'number' ? instead(part, `${part.value}s`) : part
