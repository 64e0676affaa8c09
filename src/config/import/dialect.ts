import { basename } from 'node:path'
import type { ReferenceScheme } from '../interpolate.ts'
import { type BranchNode, withMember, withoutMember } from '../tree.ts'
import { claudeCode, codex, gemini, opencode, vscode, vscodeSettings, zed } from './client-formats.ts'
import { type ClientKind, kindOf } from './client-kind.ts'
import { endpoints, gatewayRules } from './gateway-files.ts'
import { mcpClient } from './mcp-client.ts'
import { isOwnFile, libreChat, ownFormat, plainClients, plainFile, plainFileOf, serverList } from './mcp-json.ts'
import { type ConfigDialect, createReport, type FormatReader, isForeign, type TranslationReport } from './shape.ts'

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

const ownName = 'toolway'

/** Drops the entry for Toolway, including its references to variables, so that Toolway does not connect to itself. */
function withoutOurselves(tree: BranchNode, report: TranslationReport): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.kind !== 'branch' || !servers.members.has(ownName)) return tree
  report.notes.push('the server toolway is Toolway itself and was ignored')
  return withMember(tree, 'mcpServers', withoutMember(servers, ownName))
}
