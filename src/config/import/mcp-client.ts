import { pluralize } from '../../lib/message-text.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  type LeafNode,
  type ListNode,
  leaf,
  list,
  mapLeaves,
  mapMembers,
  member,
  scalarAt,
  type TreeMember,
  toPlain,
  withMember,
  withoutMember,
} from '../tree.ts'
import { normaliseServer, serverKeys } from './aliases.ts'
import {
  type FormatReader,
  instead,
  isFalse,
  isTrue,
  membersOf,
  namedServers,
  otherSections,
  shape,
  type TranslationReport,
} from './shape.ts'
import { type Forwarding, readForwarding } from './tool-forwarding.ts'

const sections = ['mcp_client', 'mcp', 'tool_forwarding']

/** A file with `[mcp_client]` and `[tool_forwarding]`, or the simpler format with `[mcp]`. */
export const mcpClient: FormatReader = {
  dialect: 'mcp-client',
  recognises: ({ members }) =>
    members.has('mcp_client') || members.has('tool_forwarding') || members.get('mcp')?.value.kind === 'branch',
  translate: translateMcpClient,
}

function translateMcpClient(document: BranchNode, report: TranslationReport): BranchNode {
  otherSections(document, sections, report)
  const tree = mapLeaves(document, withVariable) as BranchNode
  const forwarding = tree.members.get('tool_forwarding')?.value
  const forwardingOff = forwarding?.kind === 'branch' && isFalse(forwarding.members.get('enabled')?.value)
  if (forwardingOff) report.notes.push('tool_forwarding.enabled is false: every server is disabled')
  const servers = new Map<string, TreeMember>()
  for (const section of ['mcp', 'mcp_client']) {
    const members = membersOf(tree.members.get(section)?.value, ['enabled', 'servers'], report)
    const off = isFalse(members.get('enabled')?.value)
    if (off) report.notes.push(`${section}.enabled is false: its servers are disabled`)
    const translate = (name: string, fields: ReadonlyMap<string, TreeMember>, entry: BranchNode) =>
      serverOf(name, fields, entry, off || forwardingOff, report)
    for (const [name, server] of namedServers(members.get('servers')?.value, translate, report)?.members ?? []) {
      servers.set(name, server)
    }
  }
  const authenticated = [...servers.keys()].filter((name) => isTrue(find(servers.get(name)?.value, [authKey])))
  const read = readForwarding(forwarding, { servers: [...servers.keys()], authenticated, at: tree.at }, report)
  const kind = tree.members.has('mcp') ? 'an mcp file' : 'an mcp_client file with tool forwarding'
  report.notes.push(`read as ${kind}: ${pluralize(servers.size, 'server')}`)
  if (read.caches && servers.size > 0) {
    report.notes.push(
      'cache.enabled: tools in readTools and tools with readOnlyHint are cached (trustAnnotations: true)',
    )
  }
  const finished = mapMembers(branch(tree.at, servers), (value, name) =>
    value.kind === 'branch' ? finishedServer(value, name, read, report) : value,
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
    caches && !kept.members.has('trustAnnotations')
      ? withMember(kept, 'trustAnnotations', member(leaf(server.at, true)))
      : kept
  if (trusting.members.has('guards')) return trusting
  const database = sql ? sqlGuard(trusting, name) : undefined
  if (database)
    report.notes.push(`${name}: arguments with SQL are checked; security.validate_sql = false turns this off`)
  const guards = [...(paths ? [pathGuard(trusting, paths.roots)] : []), ...(database ? [database] : [])]
  if (guards.length === 0) return trusting
  return withMember(trusting, 'guards', member(list(server.at, guards)))
}

/** Converts a value that is only `"$NAME"` to a variable; in this dialect, `$NAME` within longer text is literal. */
function withVariable(part: LeafNode): LeafNode {
  const [, name] = typeof part.value === 'string' ? (/^\$([A-Za-z_]\w*)$/.exec(part.value) ?? []) : []
  return name === undefined ? part : instead(part, `\${${name}}`)
}

function serverOf(
  name: string,
  fields: ReadonlyMap<string, TreeMember>,
  entry: BranchNode,
  off: boolean,
  report: TranslationReport,
): BranchNode {
  const members = membersOf(branch(entry.at, fields), [...serverKeys, authKey], report)
  if (scalarAt(members.get('auth')?.value, ['type']) === 'none') members.delete('auth')
  const server = normaliseServer(branch(entry.at, members), name, report)
  return off ? withMember(server, 'disabled', member(leaf(entry.at, true))) : server
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
    arguments: textList(server, sqlArguments),
    dialect: leaf(server.at, others.length > 0 ? 'any' : dialect),
    readOnly: server.members.get('readOnly') ?? leaf(server.at, false),
  })
}

const textList = ({ at }: BranchNode, texts: readonly string[]): ListNode =>
  list(
    at,
    texts.map((text) => leaf(at, text)),
  )

const always = ['path', 'paths[]', 'file_path', 'directory', 'dir', 'folder']
/** Argument names that are checked as paths only if the server's folders are known. */
const withFolders = ['file', 'source', 'destination']

/**
 * A path guard. The allowed folders are `roots`, or the folders in the server's arguments if `roots` is undefined. If
 * there are no folders, any absolute path without traversal is allowed.
 */
function pathGuard(server: BranchNode, roots: ListNode | undefined): BranchNode {
  const folders = roots?.items ?? foldersIn(server.members.get('args')?.value)
  const known = folders.length > 0
  return shape(server.at, {
    kind: leaf(server.at, 'path'),
    arguments: textList(server, known ? [...always, ...withFolders] : always),
    roots: known ? list(server.at, folders) : textList(server, ['/']),
  })
}

/** The arguments that are absolute or explicitly relative paths, except files with an extension, such as programs. */
function foldersIn(args: ConfigTree | undefined): readonly ConfigTree[] {
  if (args?.kind !== 'list') return []
  return args.items.filter(
    (item) =>
      item.kind === 'leaf' &&
      typeof item.value === 'string' &&
      /^(?:\/|~\/|\.{1,2}(?:\/|$))/.test(item.value) &&
      !/\.[A-Za-z]\w*$/.test(item.value),
  )
}
