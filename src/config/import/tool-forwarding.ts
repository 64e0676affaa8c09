import { nearMiss } from '../../lib/similar-text.ts'
import { problemAt } from '../problems.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  type ListNode,
  leaf,
  type SourceLocation,
  type TreeMember,
} from '../tree.ts'
import { inUnit } from './client-server.ts'
import { instead, isFalse, isTrue, mapText, membersOf, shape, type TranslationReport } from './shape.ts'

const strategies: Readonly<Record<string, string>> = {
  server_prefix: 'prefix',
  prefix: 'prefix',
  flat: 'flat',
  custom: 'custom',
}
const shownStrategies = ['server_prefix', 'flat', 'custom']

/** Keys that may contain the name map for the strategy `custom`. */
const mapKeys = ['custom', 'custom_names', 'names', 'mappings', 'aliases']

export interface Forwarding {
  /** The sections `naming`, `policy`, `limits`, `retry` and `cache`. */
  readonly sections: Readonly<Record<string, BranchNode | undefined>>
  /** Whether results are cached; if so, servers need `trustAnnotations`. */
  readonly caches: boolean
  /** Undefined if paths are not validated. `roots` are the allowed folders, if the file lists them. */
  readonly paths: { readonly roots: ListNode | undefined } | undefined
  /** Whether arguments with SQL are validated. */
  readonly sql: boolean
}

interface ForwardingOptions {
  readonly servers: readonly string[]
  readonly authenticated: readonly string[]
  readonly at: SourceLocation
}

/** Converts `[tool_forwarding]`. It applies only to forwarded tools, so native tools are added to its allow-lists. */
export function readForwarding(
  forwarding: ConfigTree | undefined,
  { servers, authenticated, at: document }: ForwardingOptions,
  report: TranslationReport,
): Forwarding {
  const keys = ['enabled', 'namespace_strategy', 'naming', 'security', 'rate_limit', 'cache', 'auth_required']
  const members = membersOf(forwarding, [...keys, ...mapKeys], report)
  const security = membersOf(
    members.get('security')?.value,
    [
      'allowed_namespaces',
      'allowed_tools',
      'blocked_tools',
      'auth_required',
      'validate_paths',
      'validate_sql',
      'allowed_paths',
    ],
    report,
  )
  const at = forwarding?.at ?? document
  const required = authRequired(
    [members.get('auth_required'), security.get('auth_required')],
    { servers, authenticated, at },
    report,
  )
  const allowedPaths = security.get('allowed_paths')?.value
  const validates = (key: string) => forwarding !== undefined && !isFalse(security.get(key)?.value)
  const cache = cacheOf(members.get('cache'), report)
  return {
    sections: {
      naming: forwarding && namingOf(members, at, report),
      policy: shape(at, {
        allowedServers: withNative(security.get('allowed_namespaces'), 'native', report),
        allowedTools: withNative(toolsOf(security.get('allowed_tools')), 'native.*', report),
        blockedTools: toolsOf(security.get('blocked_tools')),
        requireAuth: required,
      }),
      limits: limitsOf(members.get('rate_limit'), report),
      // In this format, a call that times out is repeated once. Here that applies to calls that are safe to repeat.
      retry: forwarding && shape(at, { onTimeout: leaf(at, true) }),
      cache,
    },
    caches: isTrue(cache?.members.get('enabled')?.value),
    paths: validates('validate_paths')
      ? { roots: allowedPaths?.kind === 'list' ? allowedPaths : undefined }
      : undefined,
    sql: validates('validate_sql'),
  }
}

/** Adds Toolway's native tools to an allow-list. An empty list of tools stays empty, because it allows all tools. */
function withNative(entry: TreeMember | undefined, native: string, report: TranslationReport): TreeMember | undefined {
  if (entry?.value.kind !== 'list') return entry
  const { items } = entry.value
  const written = items.map((item) => (item.kind === 'leaf' ? item.value : undefined))
  const allowsNative = written.some((name) => name === '*' || String(name).startsWith('native'))
  if (allowsNative || (native !== 'native' && items.length === 0)) return entry
  if (native === 'native') {
    report.notes.push(
      'allowed_namespaces applies to forwarded tools only; native tools stay usable (blocked_tools = ["native::*"] blocks them)',
    )
  }
  return { at: entry.at, value: { ...entry.value, items: [...items, leaf(entry.at, native)] } }
}

function namingOf(
  members: ReadonlyMap<string, TreeMember>,
  at: SourceLocation,
  report: TranslationReport,
): BranchNode | undefined {
  const naming = membersOf(members.get('naming')?.value, ['strategy', ...mapKeys], report)
  const strategy = members.get('namespace_strategy') ?? naming.get('strategy')
  const names = mapKeys.flatMap((key) => [members.get(key), naming.get(key)]).find((entry) => entry !== undefined)
  if (!strategy && !names) return undefined
  return shape(strategy?.at ?? at, {
    strategy: strategy
      ? { at: strategy.at, value: strategyOf(strategy.value, report) }
      : leaf(names?.at ?? at, 'custom'),
    aliases: names && aliasesOf(names, report),
  })
}

/** Converts a map of tool names. Accepts maps from `server::tool` to a name, and maps from a name to `server::tool`. */
function aliasesOf(entry: TreeMember, report: TranslationReport): TreeMember {
  const aliases = [...membersOf(entry.value, undefined, report)].map(([key, { at, value }]): [string, TreeMember] => {
    const reversed = !key.includes('::') && value.kind === 'leaf' && String(value.value).includes('::')
    if (reversed && value.kind === 'leaf') return [toolName(String(value.value)), { at, value: instead(value, key) }]
    return [toolName(key), { at, value }]
  })
  return { at: entry.at, value: branch(entry.value.at, aliases) }
}

function strategyOf(part: ConfigTree, report: TranslationReport): ConfigTree {
  if (part.kind !== 'leaf') return part
  const known = strategies[String(part.value)]
  if (known !== undefined) return instead(part, known)
  const near = nearMiss(String(part.value), shownStrategies)
  const help = near === undefined ? '' : `; did you mean ${near}?`
  const expected = `one of ${shownStrategies.join(', ')}`
  report.problems.push(problemAt(part.at, `expected ${expected}, found "${part.value}"${help}`, { expected }))
  return instead(part, 'prefix')
}

/** Converts limits in calls per minute. Keys are `default` (each other server), a server, or `server::tool`. */
function limitsOf(entry: TreeMember | undefined, report: TranslationReport): BranchNode | undefined {
  if (!entry) return undefined
  const members = membersOf(entry.value, undefined, report)
  const servers = [...members].flatMap(([key, limit]) =>
    key.includes('::') ? [] : [[key === 'default' ? '*' : key, limit] as const],
  )
  const tools = [...members].flatMap(([key, limit]) => (key.includes('::') ? [[toolName(key), limit] as const] : []))
  // In this format, the id of the client counts, not its agent.
  const per = leaf(entry.at, 'client')
  return shape(entry.at, { per, servers: branch(entry.at, servers), tools: branch(entry.at, tools) })
}

function cacheOf(entry: TreeMember | undefined, report: TranslationReport): BranchNode | undefined {
  if (!entry) return undefined
  const members = membersOf(entry.value, ['enabled', 'ttl_seconds', 'max_size', 'tools'], report)
  const ttl = members.get('ttl_seconds')
  return shape(entry.at, {
    enabled: members.get('enabled'),
    ttl: ttl && { at: ttl.at, value: inUnit(ttl.value, 's') },
    maxEntries: members.get('max_size'),
    tools: toolsOf(members.get('tools')),
  })
}

/** Converts `server::tool` to `server.tool`. A name without a server matches that tool on any server. */
const toolName = (written: string): string => {
  if (written.includes('::')) return written.replace('::', '.')
  return written === '*' || written.includes('.') ? written : `*.${written}`
}

function toolsOf(entry: TreeMember | undefined): TreeMember | undefined {
  if (entry?.value.kind !== 'list') return entry
  const items = entry.value.items.map((item) => mapText(item, toolName))
  return { at: entry.at, value: { ...entry.value, items } }
}

/**
 * Converts `auth_required` to tool patterns. Its value is true (all forwarded tools), a list of tools and servers, or a
 * table whose keys are servers or tools and whose values are true, false or a list of tools.
 */
function authRequired(
  entries: readonly (TreeMember | undefined)[],
  { servers, authenticated, at }: ForwardingOptions,
  report: TranslationReport,
): ListNode | undefined {
  const wholeServer = (name: string) => (servers.includes(name) || name === 'native' ? `${name}.*` : toolName(name))
  const listed = ({ items }: ListNode, prefix = ''): ConfigTree[] =>
    items.map((item) =>
      mapText(item, (name) => (prefix === '' ? wholeServer(name) : `${prefix}.${name.replace(/^.*::/, '')}`)),
    )
  const patterns = ({ at: place, value }: TreeMember): ConfigTree[] => {
    if (isFalse(value)) return []
    if (isTrue(value)) return servers.map((name) => leaf(place, `${name}.*`))
    if (value.kind === 'list') return listed(value)
    if (value.kind === 'branch') {
      return [...value.members].flatMap(([name, one]) => {
        if (isFalse(one.value)) return []
        if (isTrue(one.value)) return [leaf(one.at, wholeServer(name))]
        return one.value.kind === 'list' ? listed(one.value, name) : unreadable(one.at)
      })
    }
    return unreadable(place)
  }
  const unreadable = (place: SourceLocation): ConfigTree[] => {
    report.problems.push(problemAt(place, 'expected true, false, a list of tools, or a table by server or tool'))
    return []
  }
  const items = [
    ...entries.flatMap((entry) => (entry ? patterns(entry) : [])),
    ...authenticated.map((name) => leaf(at, `${name}.*`)),
  ]
  return items.length === 0 ? undefined : { kind: 'list', at, items }
}
