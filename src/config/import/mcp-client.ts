import { pluralize } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import { problemAt } from '../problems.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  itemsIn,
  keyLocation,
  type LeafNode,
  type ListNode,
  leaf,
  leafList,
  leafText,
  list,
  mapLeaves,
  mapMembers,
  membersIn,
  type SourceLocation,
  scalarAt,
  toPlain,
  withKeyAt,
  withMember,
  withoutMember,
} from '../tree.ts'
import { normaliseServer, serverKeys } from './aliases.ts'
import { inUnit } from './client-server.ts'
import {
  expectedMembers,
  type FormatReader,
  instead,
  isFalse,
  isTrue,
  mapText,
  namedServers,
  otherSections,
  sectionMembers,
  shape,
  type TranslationReport,
} from './shape.ts'

const sections = ['mcp_client', 'mcp', 'tool_forwarding']

/** A file with `[mcp_client]` and `[tool_forwarding]`, or the simpler format with `[mcp]`. */
export const mcpClient: FormatReader = {
  dialect: 'mcp-client',
  recognises: ({ members }) =>
    members.has('mcp_client') || members.has('tool_forwarding') || members.get('mcp')?.kind === 'branch',
  translate: translateMcpClient,
}

function translateMcpClient(document: BranchNode, report: TranslationReport): BranchNode {
  otherSections(document, sections, report)
  const tree = mapLeaves(document, withVariable) as BranchNode
  const forwarding = tree.members.get('tool_forwarding')
  const forwardingOff = isFalse(find(forwarding, ['enabled']))
  if (forwardingOff) report.notes.push('tool_forwarding.enabled is false: every server is disabled')
  const servers = new Map<string, ConfigTree>()
  for (const section of ['mcp', 'mcp_client']) {
    const members = expectedMembers(tree.members.get(section), ['enabled', 'servers'], report)
    const off = isFalse(members.get('enabled'))
    if (off) report.notes.push(`${section}.enabled is false: its servers are disabled`)
    const translate = (name: string, fields: BranchNode) => serverOf(name, fields, off || forwardingOff, report)
    const named = namedServers(members.get('servers'), translate, report)
    for (const [name, server] of membersIn(named)) servers.set(name, server)
  }
  const authenticated = [...servers.keys()].filter((name) => isTrue(find(servers.get(name), [authKey])))
  const read = readForwarding(forwarding, { servers: [...servers.keys()], authenticated, at: tree.at }, report)
  const kind = tree.members.has('mcp') ? 'an mcp file' : 'an mcp_client file with tool forwarding'
  report.notes.push(`read as ${kind}: ${pluralize(servers.size, 'server')}`)
  if (read.caches && servers.size > 0) {
    report.notes.push(
      'cache.enabled: tools in readTools and tools with readOnlyHint are cached (trustAnnotations: true)',
    )
  }
  const finished = mapMembers(branch(tree.at, servers), (server, name) =>
    server.kind === 'branch' ? finishedServer(server, name, read, report) : server,
  )
  return shape(tree.at, { mcpServers: finished, ...read.sections })
}

/** A key in a server entry: if true, all of the server's tools require an authenticated caller. */
const authKey = 'auth_required'

/** Applies the `tool_forwarding` section to a server; the server's own keys win. */
function finishedServer(
  server: BranchNode,
  name: string,
  { caches, paths, sql }: Forwarding,
  report: TranslationReport,
): BranchNode {
  const kept = withoutMember(server, authKey)
  const trusting =
    caches && !kept.members.has('trustAnnotations') ? withMember(kept, 'trustAnnotations', leaf(server.at, true)) : kept
  if (trusting.members.has('guards')) return trusting
  const database = sql ? sqlGuard(trusting, name) : undefined
  if (database)
    report.notes.push(`${name}: arguments with SQL are checked; security.validate_sql = false turns this off`)
  const guards = [...(paths ? [pathGuard(trusting, paths.roots)] : []), ...(database ? [database] : [])]
  return guards.length === 0 ? trusting : withMember(trusting, 'guards', list(server.at, guards))
}

/** Converts a value that is only `"$NAME"` to a variable; in this dialect, `$NAME` within longer text is literal. */
function withVariable(part: LeafNode): LeafNode {
  return mapText(part, (text) => text.replace(/^\$([A-Za-z_]\w*)$/, (_, name: string) => `\${${name}}`))
}

function serverOf(name: string, fields: BranchNode, off: boolean, report: TranslationReport): BranchNode {
  const members = expectedMembers(fields, [...serverKeys, authKey], report)
  if (scalarAt(members.get('auth'), ['type']) === 'none') members.delete('auth')
  const server = normaliseServer(branch(fields.at, members), name, report)
  return off ? withMember(server, 'disabled', leaf(fields.at, true)) : server
}

/** Words in the name, program, package or URL of a server for SQL databases, by the dialect that they say. */
const databases: Readonly<Record<string, string>> = {
  postgres: 'postgres|postgresql|pg',
  mysql: 'mysql|mariadb',
  sqlite: 'sqlite',
  any: 'databases?|db|dbhub|sql|mssql|sqlserver|oracledb|duckdb|motherduck|clickhouse|snowflake|bigquery|redshift|supabase|cockroachdb|timescaledb',
}

/** Arguments with SQL in the tools of such servers; a guard also covers other spellings of these names. */
const sqlArguments =
  'sql query queries[] statement statements[] stmt sqlQuery sqlStatement sqlText rawSql rawQuery queryText'.split(' ')

/** A guard for SQL if the server's entry is that of a database. Options and folders say nothing about a server. */
function sqlGuard(server: BranchNode, name: string): BranchNode | undefined {
  const { command, url, args } = toPlain(server) as Readonly<Record<string, unknown>>
  const words = (Array.isArray(args) ? args : [])
    .map((word) => String(word).replace(/^--?[\w-]+=/, ''))
    .filter((word) => !/^(?:[-./~]|[a-z]:\\)/i.test(word) || /\.(?:[cm]?[jt]s|py|jar)$/.test(word))
  const text = [name, command, url, ...words].join(' ')
  const found = Object.keys(databases).filter((dialect) =>
    new RegExp(`(?<![a-z])(?:${databases[dialect]})(?![a-z])`, 'i').test(text),
  )
  if (found.length === 0) return undefined
  const [dialect = 'any', ...others] = found.filter((one) => one !== 'any')
  return shape(server.at, {
    kind: leaf(server.at, 'sql'),
    arguments: leafList(server.at, sqlArguments),
    dialect: leaf(server.at, others.length > 0 ? 'any' : dialect),
    readOnly: server.members.get('readOnly') ?? leaf(server.at, false),
  })
}

const always = ['path', 'paths[]', 'file_path', 'directory', 'dir', 'folder']
/** Argument names that are checked as paths only if the server's folders are known. */
const withFolders = ['file', 'source', 'destination']

/**
 * A path guard. The allowed folders are `roots`, or the folders in the server's arguments if `roots` is undefined. If
 * there are no folders, any absolute path without traversal is allowed.
 */
function pathGuard(server: BranchNode, roots: ListNode | undefined): BranchNode {
  const folders = roots?.items ?? itemsIn(server.members.get('args')).filter(isFolder)
  const known = folders.length > 0
  return shape(server.at, {
    kind: leaf(server.at, 'path'),
    arguments: leafList(server.at, known ? [...always, ...withFolders] : always),
    roots: known ? list(server.at, folders) : leafList(server.at, ['/']),
  })
}

/** Whether an argument is an absolute or explicitly relative path, except files with an extension, such as programs. */
function isFolder(argument: ConfigTree): boolean {
  const text = leafText(argument) ?? ''
  return /^(?:\/|~\/|\.{1,2}(?:\/|$))/.test(text) && !/\.[A-Za-z]\w*$/.test(text)
}

const strategies: Readonly<Record<string, string>> = {
  server_prefix: 'prefix',
  prefix: 'prefix',
  flat: 'flat',
  custom: 'custom',
}
const shownStrategies = ['server_prefix', 'flat', 'custom']

/** Keys that may contain the name map for the strategy `custom`. */
const mapKeys = ['custom', 'custom_names', 'names', 'mappings', 'aliases']

interface Forwarding {
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
function readForwarding(
  forwarding: ConfigTree | undefined,
  { servers, authenticated, at: document }: ForwardingOptions,
  report: TranslationReport,
): Forwarding {
  const keys = ['enabled', 'namespace_strategy', 'naming', 'security', 'rate_limit', 'cache', 'auth_required']
  const members = expectedMembers(forwarding, [...keys, ...mapKeys], report)
  const security = expectedMembers(members.get('security'), securityKeys, report)
  const at = forwarding?.at ?? document
  const requirements = [members.get('auth_required'), security.get('auth_required')]
  const allowedPaths = security.get('allowed_paths')
  const validates = (key: string) => forwarding !== undefined && !isFalse(security.get(key))
  const cache = cacheOf(members.get('cache'), report)
  return {
    sections: {
      naming: forwarding && namingOf(members, at, report),
      policy: shape(at, {
        allowedServers: withNative(security.get('allowed_namespaces'), 'native', report),
        allowedTools: withNative(toolsOf(security.get('allowed_tools')), 'native.*', report),
        blockedTools: toolsOf(security.get('blocked_tools')),
        requireAuth: authRequired(requirements, { servers, authenticated, at }, report),
      }),
      limits: limitsOf(members.get('rate_limit'), report),
      // In this format, a call that times out is repeated once. Here that applies to calls that are safe to repeat.
      retry: forwarding && shape(at, { onTimeout: leaf(at, true) }),
      cache,
    },
    caches: isTrue(cache?.members.get('enabled')),
    paths: validates('validate_paths')
      ? { roots: allowedPaths?.kind === 'list' ? allowedPaths : undefined }
      : undefined,
    sql: validates('validate_sql'),
  }
}

const securityKeys = [
  ...['allowed_namespaces', 'allowed_tools', 'blocked_tools', 'auth_required', 'validate_paths', 'validate_sql'],
  'allowed_paths',
]

/** Adds Toolway's native tools to an allow-list. An empty list of tools stays empty, because it allows all tools. */
function withNative(
  allowed: ConfigTree | undefined,
  native: string,
  report: TranslationReport,
): ConfigTree | undefined {
  if (allowed?.kind !== 'list') return allowed
  const { items } = allowed
  const allowsNative = items.some((item) => /^(?:\*$|native)/.test(String(scalarAt(item, []))))
  if (allowsNative || (native !== 'native' && items.length === 0)) return allowed
  if (native === 'native') {
    report.notes.push(
      'allowed_namespaces applies to forwarded tools only; native tools stay usable (blocked_tools = ["native::*"] blocks them)',
    )
  }
  return { ...allowed, items: [...items, leaf(keyLocation(allowed), native)] }
}

function namingOf(
  members: ReadonlyMap<string, ConfigTree>,
  at: SourceLocation,
  report: TranslationReport,
): BranchNode | undefined {
  const naming = expectedMembers(members.get('naming'), ['strategy', ...mapKeys], report)
  const strategy = members.get('namespace_strategy') ?? naming.get('strategy')
  const names = mapKeys.flatMap((key) => members.get(key) ?? naming.get(key) ?? []).at(0)
  const place = strategy ?? names
  if (!place) return undefined
  return shape(strategy ? keyLocation(strategy) : at, {
    strategy: strategy ? strategyOf(strategy, report) : leaf(keyLocation(place), 'custom'),
    aliases: names && aliasesOf(names, report),
  })
}

/** Converts a map of tool names. Accepts maps from `server::tool` to a name, and maps from a name to `server::tool`. */
function aliasesOf(names: ConfigTree, report: TranslationReport): BranchNode {
  const aliases = [...sectionMembers(names, report)].map(([key, alias]): [string, ConfigTree] => {
    const isReversed = !key.includes('::') && alias.kind === 'leaf' && String(alias.value).includes('::')
    return isReversed ? [toolName(String(alias.value)), instead(alias, key)] : [toolName(key), alias]
  })
  return withKeyAt(branch(names.at, aliases), keyLocation(names))
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
function limitsOf(section: ConfigTree | undefined, report: TranslationReport): BranchNode | undefined {
  if (!section) return undefined
  const at = keyLocation(section)
  const members = sectionMembers(section, report)
  const { tools = [], servers = [] } = Object.groupBy(members, ([key]) => (key.includes('::') ? 'tools' : 'servers'))
  return shape(at, {
    // In this format, the id of the client counts, not its agent.
    per: leaf(at, 'client'),
    servers: branch(
      at,
      servers.map(([key, limit]) => [key === 'default' ? '*' : key, limit] as const),
    ),
    tools: branch(
      at,
      tools.map(([key, limit]) => [toolName(key), limit] as const),
    ),
  })
}

function cacheOf(section: ConfigTree | undefined, report: TranslationReport): BranchNode | undefined {
  if (!section) return undefined
  const members = expectedMembers(section, ['enabled', 'ttl_seconds', 'max_size', 'tools'], report)
  const ttl = members.get('ttl_seconds')
  return shape(keyLocation(section), {
    enabled: members.get('enabled'),
    ttl: ttl && inUnit(ttl, 's'),
    maxEntries: members.get('max_size'),
    tools: toolsOf(members.get('tools')),
  })
}

/** Converts `server::tool` to `server.tool`. A name without a server matches that tool on any server. */
const toolName = (written: string): string => {
  if (written.includes('::')) return written.replace('::', '.')
  return written === '*' || written.includes('.') ? written : `*.${written}`
}

const toolsOf = (tools: ConfigTree | undefined): ConfigTree | undefined =>
  tools?.kind === 'list' ? { ...tools, items: tools.items.map((item) => mapText(item, toolName)) } : tools

/**
 * Converts `auth_required` to tool patterns. Its value is true (all forwarded tools), a list of tools and servers, or a
 * table whose keys are servers or tools and whose values are true, false or a list of tools.
 */
function authRequired(
  requirements: readonly (ConfigTree | undefined)[],
  { servers, authenticated, at }: ForwardingOptions,
  report: TranslationReport,
): ListNode | undefined {
  const wholeServer = (name: string) => (servers.includes(name) || name === 'native' ? `${name}.*` : toolName(name))
  const patterns = (required: ConfigTree, server?: string): ConfigTree[] => {
    const place = keyLocation(required)
    const toolOf = (name: string) => (server ? `${server}.${name.replace(/^.*::/, '')}` : wholeServer(name))
    if (isFalse(required)) return []
    if (isTrue(required)) {
      const all = server === undefined ? servers.map((name) => `${name}.*`) : [wholeServer(server)]
      return all.map((pattern) => leaf(place, pattern))
    }
    if (required.kind === 'list') return required.items.map((item) => mapText(item, toolOf))
    if (required.kind === 'branch' && server === undefined) {
      return [...required.members].flatMap(([name, one]) => patterns(one, name))
    }
    report.problems.push(problemAt(place, 'expected true, false, a list of tools, or a table by server or tool'))
    return []
  }
  const items = [
    ...requirements.flatMap((required) => (required ? patterns(required) : [])),
    ...authenticated.map((name) => leaf(at, `${name}.*`)),
  ]
  return items.length === 0 ? undefined : list(at, items)
}
