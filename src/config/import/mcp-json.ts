import { basename } from 'node:path'
import { pluralize } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import { configSchema } from '../schema.ts'
import { knownKeysAt } from '../schema-lookup.ts'
import { type BranchNode, find, mapServers, scalarAt, serversIn, withMember } from '../tree.ts'
import { normaliseServer } from './aliases.ts'
import { type ClientKind, clientLabels, folderOf, workspaceOf } from './client-kind.ts'
import { type ClientFormat, clientServers, editorVariables } from './client-server.ts'
import { type FormatReader, namedServers, type TranslationReport } from './shape.ts'

/** Clients whose file has the form `{"mcpServers": {…}}`. */
export const plainClients: readonly ClientKind[] = ['claude-code', 'claude-desktop', 'cursor', 'windsurf', 'cline']

const units: Partial<Record<ClientKind, 's' | 'ms'>> = { cline: 's', 'claude-code': 'ms' }

/** Units that other clients document for a bare number in `timeout`, by the folder of their files. */
const unitsByFolder: readonly (readonly [RegExp, 's' | 'ms'])[] = [
  [/[/\\]\.roo[/\\]/, 's'],
  [/[/\\]\.?amazonq[/\\]/, 'ms'],
]

/** Sections that make a file a Toolway configuration: ignoring one could allow what the author meant to forbid. */
const ours = ['agents', 'policy', 'auth', 'limits', 'defaults', 'server', 'version']

const sections = knownKeysAt(configSchema, [])

/** Recognizes a Toolway configuration by its name, or by a section that only Toolway has. */
export const isOwnFile = (tree: BranchNode): boolean =>
  !isServerList(tree) && !isLibreChat(tree) && (isNamedOurs(tree) || ours.some((key) => find(tree, [key])))

const isNamedOurs = ({ at }: BranchNode): boolean => basename(at.file.path).startsWith('toolway.')

/** Whether it is a file of Continue, which has a list of `{name, …}` under `mcpServers`, and also a `version`. */
const isServerList = (tree: BranchNode): boolean =>
  find(tree, ['mcpServers'])?.kind === 'list' &&
  !isNamedOurs(tree) &&
  !ours.some((key) => key !== 'version' && tree.members.has(key))

/** A file whose servers are a list. */
export const serverList: FormatReader = {
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
  [...tree.members].every(
    ([key, part]) =>
      ['mcpServers', '$schema', 'version'].includes(key) ||
      !sections.includes(key) ||
      (key === 'cache' && part.kind === 'leaf'),
  )

/** The servers of LibreChat; its other settings are ignored. */
export const libreChat: FormatReader = {
  dialect: 'mcpServers',
  recognises: isLibreChat,
  translate: (tree, report, home) =>
    translateMcpJson(tree, report, home, undefined, { label: 'LibreChat', tolerant: true, timeout: 'ms' }),
}

/** Whether it is a client's file, even if the client keeps other settings in it. */
const isMcpJson = (tree: BranchNode): boolean => isPlain(tree) || !ours.some((key) => find(tree, [key]))

/** Converts a plain file; `kind` is the client that owns it, if known, and `special` describes another owner. */
function translateMcpJson(
  tree: BranchNode,
  report: TranslationReport,
  home: string,
  kind?: ClientKind,
  special: Partial<ClientFormat> = {},
): BranchNode {
  const folder = folderOf(tree.at.file.path)
  const format: ClientFormat = {
    label: kind ? clientLabels[kind] : 'a client',
    respell: editorVariables(workspaceOf(tree.at.file.path, home)),
    folder,
    tolerant: kind !== undefined,
    timeout: kind ? units[kind] : unitsByFolder.find(([folders]) => folders.test(tree.at.file.path))?.[1],
    ...special,
  }
  const called =
    kind === undefined || kind === 'claude-code' ? 'a plain mcpServers file' : `${clientLabels[kind]}'s file`
  return clientServers({ tree, servers: tree.members.get('mcpServers'), format, called }, report)
}

/** Whether the file contains only servers and no other settings. */
const isPlain = ({ members }: BranchNode): boolean =>
  members.has('mcpServers') && [...members.keys()].every((key) => key === 'mcpServers' || key === '$schema')

/** Whether the file contains servers, but no section of Toolway's, not even a misspelt one. */
const isWithoutSections = ({ members }: BranchNode): boolean =>
  members.has('mcpServers') &&
  [...members.keys()].every(
    (key) =>
      key === 'mcpServers' || key === '$schema' || (!sections.includes(key) && nearMiss(key, sections) === undefined),
  )

/** Toolway's own format or a plain `{"mcpServers": …}` file. Other clients' server keys are accepted. */
export const ownFormat: FormatReader = {
  dialect: 'toolway',
  recognises: () => true,
  translate(tree, report) {
    const kind = isPlain(tree) ? 'a plain mcpServers file' : "Toolway's own configuration"
    report.notes.push(`read as ${kind}: ${pluralize(serversIn(tree).size, 'server')}`)
    return mapServers(tree, (server, name) => normaliseServer(server, name, report))
  },
}

/** A file that contains only `mcpServers`. A file named toolway.* is validated strictly, as our own. */
export const plainFile: FormatReader = {
  dialect: 'mcpServers',
  recognises: isPlain,
  translate: (tree, report, home) => (isNamedOurs(tree) ? ownFormat.translate : translateMcpJson)(tree, report, home),
}

/** The reader for a file of a client that has only `mcpServers`; undefined for other clients and other contents. */
export function plainFileOf(kind: ClientKind, tree: BranchNode): FormatReader | undefined {
  // A project's .mcp.json with Toolway sections is a Toolway configuration, not a client's file.
  const fits = kind === 'claude-code' ? isWithoutSections(tree) : isMcpJson(tree)
  return fits ? { ...plainFile, translate: (...given) => translateMcpJson(...given, kind) } : undefined
}
