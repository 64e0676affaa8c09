import { basename } from 'node:path'
import { pluralize } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import type { ReferenceScheme } from '../interpolate.ts'
import { configSchema } from '../schema.ts'
import { knownKeysAt } from '../schema-lookup.ts'
import {
  type BranchNode,
  type ConfigTree,
  find,
  mapServers,
  scalarAt,
  serverNodes,
  toPlain,
  withMember,
  withoutMember,
} from '../tree.ts'
import { normaliseServer } from './aliases.ts'
import { claudeCode, codex, gemini, opencode, vscode, vscodeSettings, zed } from './client-formats.ts'
import { type ClientKind, clientLabels, folderOf, kindOf, workspaceOf } from './client-kind.ts'
import { type ClientFormat, clientServers, editorVariables } from './client-server.ts'
import { endpoints, gatewayRules } from './gateway-files.ts'
import { mcpClient } from './mcp-client.ts'
import { isOwnEntry } from './own-entry.ts'
import {
  type ConfigDialect,
  createReport,
  type FormatReader,
  isForeign,
  namedServers,
  type TranslationReport,
} from './shape.ts'

export interface Translation extends TranslationReport {
  readonly dialect: ConfigDialect
  /** The document in Toolway's format. */
  readonly tree: BranchNode
}

/**
 * The schemes that the program that owns a file does not resolve. In its file, such references are plain text, and must
 * stay plain text if a server is copied to Toolway's configuration. `tree` is the document before its translation.
 */
export function plainSchemes(tree: BranchNode, dialect: ConfigDialect, kind?: ClientKind): readonly ReferenceScheme[] {
  if ((dialect === 'toolway' || dialect === 'mcpServers') && kind === undefined && isOwnFile(tree)) return []
  // The translation of OpenCode's file escapes what OpenCode does not resolve.
  return dialect === 'opencode' || kind === 'windsurf' ? ['exec'] : ['file', 'exec']
}

/** Clients whose file has the form `{"mcpServers": {…}}`. */
const plainClients: readonly ClientKind[] = ['claude-code', 'claude-desktop', 'cursor', 'windsurf', 'cline']

const units: Partial<Record<ClientKind, 's' | 'ms'>> = { cline: 's', 'claude-code': 'ms' }

/** Units that other clients document for a bare number in `timeout`, by the folder of their files. */
const unitsByFolder: readonly (readonly [RegExp, 's' | 'ms'])[] = [
  [/[/\\]\.roo[/\\]/, 's'],
  [/[/\\]\.?amazonq[/\\]/, 'ms'],
]

/** Sections that make a file a Toolway configuration: ignoring one could allow what the author meant to forbid. */
const ours = ['agents', 'policy', 'auth', 'limits', 'defaults', 'server', 'version']

const sections = knownKeysAt(configSchema, [])

const hasOwnSection = (tree: BranchNode, besides?: string): boolean =>
  ours.some((key) => key !== besides && tree.members.has(key))

/** Whether a file has servers and, apart from these, only members that `allows` accepts. */
const hasServersAnd = ({ members }: BranchNode, allows: (key: string, part: ConfigTree) => boolean): boolean =>
  members.has('mcpServers') &&
  [...members].every(([key, part]) => key === 'mcpServers' || key === '$schema' || allows(key, part))

/** Recognizes a Toolway configuration by its name, or by a section that only Toolway has. */
const isOwnFile = (tree: BranchNode): boolean =>
  !isServerList(tree) && !isLibreChat(tree) && (isNamedOurs(tree) || hasOwnSection(tree))

const isNamedOurs = ({ at }: BranchNode): boolean => basename(at.file.path).startsWith('toolway.')

/** Whether it is a file of Continue, which has a list of `{name, …}` under `mcpServers`, and also a `version`. */
const isServerList = (tree: BranchNode): boolean =>
  find(tree, ['mcpServers'])?.kind === 'list' && !isNamedOurs(tree) && !hasOwnSection(tree, 'version')

/** A file whose servers are a list. */
const serverList: FormatReader = {
  dialect: 'mcpServers',
  recognises: isServerList,
  translate(tree, report, home) {
    const servers = namedServers(find(tree, ['mcpServers']), (_, fields) => fields, report)
    return translateMcpJson(servers ? withMember(tree, 'mcpServers', servers) : tree, report, home)
  },
}

/** Whether it is a file of LibreChat, which has servers and a version such as 1.2.8; Toolway's own version is 1. */
const isLibreChat = (tree: BranchNode): boolean =>
  find(tree, ['mcpServers'])?.kind === 'branch' &&
  /^\d+\.\d+\.\d+$/.test(String(scalarAt(tree, ['version']))) &&
  !isNamedOurs(tree) &&
  // LibreChat has a `cache`, too, but as a switch. Any other section is Toolway's and must not be ignored.
  hasServersAnd(
    tree,
    (key, part) => key === 'version' || !sections.includes(key) || (key === 'cache' && part.kind === 'leaf'),
  )

/** The servers of LibreChat; its other settings are ignored. */
const libreChat: FormatReader = {
  dialect: 'mcpServers',
  recognises: isLibreChat,
  translate: (tree, report, home) =>
    translateMcpJson(tree, report, home, { label: 'LibreChat', tolerant: true, timeout: 'ms' }),
}

/** Converts a plain file. `owner` describes the client that owns it, if that is known. */
function translateMcpJson(
  tree: BranchNode,
  report: TranslationReport,
  home: string,
  owner: Partial<ClientFormat> = {},
  called = 'a plain mcpServers file',
): BranchNode {
  const { path } = tree.at.file
  const format: ClientFormat = {
    label: 'a client',
    respell: editorVariables(workspaceOf(path, home)),
    folder: folderOf(path),
    tolerant: false,
    timeout: unitsByFolder.find(([folders]) => folders.test(path))?.[1],
    ...owner,
  }
  return clientServers({ tree, servers: tree.members.get('mcpServers'), format, called }, report)
}

/** Whether the file contains only servers and no other settings. */
const isPlain = (tree: BranchNode): boolean => hasServersAnd(tree, () => false)

/** Toolway's own format or a plain `{"mcpServers": …}` file. Other clients' server keys are accepted. */
const ownFormat: FormatReader = {
  dialect: 'toolway',
  recognises: () => true,
  translate(tree, report) {
    const kind = isPlain(tree) ? 'a plain mcpServers file' : "Toolway's own configuration"
    report.notes.push(`read as ${kind}: ${pluralize(serverNodes(tree).size, 'server')}`)
    return mapServers(tree, (server, name) => normaliseServer(server, name, report))
  },
}

/** A file that contains only `mcpServers`. A file named toolway.* is validated strictly, as our own. */
const plainFile: FormatReader = {
  dialect: 'mcpServers',
  recognises: isPlain,
  translate: (tree, report, home) => (isNamedOurs(tree) ? ownFormat.translate : translateMcpJson)(tree, report, home),
}

/** The reader for a file of a client that has only `mcpServers`; undefined for other clients and other contents. */
function plainFileOf(kind: ClientKind, tree: BranchNode): FormatReader | undefined {
  // A project's .mcp.json with Toolway sections, even misspelt ones, is a Toolway configuration, not a client's file.
  const fits =
    kind === 'claude-code'
      ? hasServersAnd(tree, (key) => !sections.includes(key) && nearMiss(key, sections) === undefined)
      : isPlain(tree) || !hasOwnSection(tree)
  if (!fits) return undefined
  const label = clientLabels[kind]
  const owner = { label, tolerant: true, timeout: units[kind] }
  const called = kind === 'claude-code' ? undefined : `${label}'s file`
  return { ...plainFile, translate: (...given) => translateMcpJson(...given, owner, called) }
}

/** The formats in order of detection; the first match wins. Toolway's own is last because it accepts anything. */
const readers: readonly FormatReader[] = [
  ...[endpoints, opencode, gemini, vscodeSettings, mcpClient, gatewayRules, codex, zed, claudeCode, vscode],
  ...[serverList, libreChat, plainFile, ownFormat],
]

/** The reader for a known client's file; undefined if the content does not match that client's format. */
function readerOf(kind: ClientKind, tree: BranchNode): FormatReader | undefined {
  if (kind === 'vscode') return tree.members.has('mcpServers') ? undefined : vscode
  if (kind === 'claude-code' && basename(tree.at.file.path) !== '.mcp.json') return claudeCode
  return plainClients.includes(kind) ? plainFileOf(kind, tree) : readers.find(({ dialect }) => dialect === kind)
}

/** Detects the dialect and converts the document; `kind` is the client that owns the file, if known. */
export function translate(
  tree: BranchNode,
  home: string,
  kind: ClientKind | undefined = kindOf(tree.at.file.path),
): Translation {
  const report = createReport()
  const reader = (kind && readerOf(kind, tree)) ?? readers.find((one) => one.recognises(tree)) ?? ownFormat
  const read = reader.translate(tree, report, home)
  return { dialect: reader.dialect, tree: isForeign(reader.dialect) ? withoutOurselves(read, report) : read, ...report }
}

/** Drops Toolway's entries, including their references to variables, so that Toolway does not connect to itself. */
function withoutOurselves(tree: BranchNode, report: TranslationReport): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.kind !== 'branch') return tree
  const own = [...servers.members].flatMap(([name, entry]) => (isOwnEntry(name, toPlain(entry)) ? [name] : []))
  for (const name of own) report.notes.push(`the server ${name} is Toolway itself and was ignored`)
  return own.length === 0 ? tree : withMember(tree, 'mcpServers', own.reduce(withoutMember, servers))
}
