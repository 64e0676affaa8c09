import { type BranchNode, countServers, find, mapServers } from '../tree.ts'
import { normaliseServer } from './aliases.ts'
import { type ClientKind, clientLabels, folderOf, workspaceOf } from './client-kind.ts'
import { type ClientFormat, clientServers } from './client-server.ts'
import { count, type TranslationReport } from './shape.ts'
import { editorVariables } from './variables.ts'

/** Clients that share one form: `{"mcpServers": {…}}`. */
type PlainClient = Extract<ClientKind, 'claude-code' | 'claude-desktop' | 'cursor' | 'windsurf' | 'cline'>

const plainClients: readonly string[] = ['claude-code', 'claude-desktop', 'cursor', 'windsurf', 'cline']

export const isPlainClient = (kind: ClientKind | undefined): kind is PlainClient =>
  kind !== undefined && plainClients.includes(kind)

const units: Partial<Record<ClientKind, 's' | 'ms'>> = { cline: 's', 'claude-code': 'ms' }

/** Whose section beside the servers would be ours: leaving it out would let through what somebody meant to forbid. */
const ours = ['agents', 'policy', 'auth', 'limits', 'defaults', 'server', 'version']

/** A file of one of these clients, also where the client keeps other settings in it. */
export const isMcpJson = (tree: BranchNode): boolean => isPlain(tree) || !ours.some((key) => find(tree, [key]))

/** The servers of a file in the form that most clients share; `kind` says whose it is, where that is known. */
export function translateMcpJson(
  tree: BranchNode,
  report: TranslationReport,
  home: string,
  kind?: PlainClient,
): BranchNode {
  const folder = folderOf(tree.at.file.path)
  const unit = kind && units[kind]
  const manner: ClientFormat = {
    label: kind ? clientLabels[kind] : 'a client',
    respell: editorVariables(workspaceOf(tree.at.file.path, home)),
    folder,
    tolerant: kind !== undefined,
    ...(unit && { timeout: unit }),
  }
  const called =
    kind === undefined || kind === 'claude-code' ? 'a plain mcpServers file' : `the file of ${clientLabels[kind]}`
  return clientServers({ tree, servers: tree.members.get('mcpServers'), manner, called }, report)
}

/** Whether a file is the plain kind that other clients share: servers and nothing else. */
export const isPlain = ({ members }: BranchNode): boolean =>
  members.has('mcpServers') && [...members.keys()].every((key) => key === 'mcpServers' || key === '$schema')

/** Our own shape, which is also that of a plain `{"mcpServers": …}` file, with other clients' spellings of server keys. */
export function translateOwn(tree: BranchNode, report: TranslationReport): BranchNode {
  const kind = isPlain(tree) ? 'a plain mcpServers file' : "Toolway's own configuration"
  report.notes.push(`read as ${kind}: ${count(countServers(tree), 'server')}`)
  return mapServers(tree, (server, name) => normaliseServer(server, name, report))
}
