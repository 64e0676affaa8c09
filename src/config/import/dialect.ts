import { basename } from 'node:path'
import type { ReferenceScheme } from '../interpolate.ts'
import { type BranchNode, withMember, withoutMember } from '../tree.ts'
import { isClaudeCode, translateClaudeCode } from './claude-code.ts'
import {
  isGemini,
  isOpencode,
  isVscode,
  isVscodeSettings,
  isZed,
  translateGemini,
  translateOpencode,
  translateVscode,
  translateZed,
} from './client-formats.ts'
import { type ClientKind, kindOf } from './client-kind.ts'
import { isCodex, translateCodex } from './codex.ts'
import { isEndpoints, isRules, translateEndpoints, translateRules } from './gateway-files.ts'
import { isMcpClient, translateMcpClient } from './mcp-client.ts'
import {
  isLibreChat,
  isMcpJson,
  isOwnFile,
  isPlain,
  isPlainClient,
  isServerList,
  isWithoutSections,
  translateLibreChat,
  translateMcpJson,
  translateOwn,
  translateServerList,
} from './mcp-json.ts'
import { createReport, type TranslationReport } from './shape.ts'

/** Formats of files that belong to other programs. These files usually list Toolway as a server too. */
const foreignDialects = ['mcpServers', 'vscode', 'claude-code', 'codex', 'opencode', 'gemini', 'zed'] as const

export type ConfigDialect =
  | 'toolway'
  | 'gateway-rules'
  | 'mcp-client'
  | 'mcp-endpoints'
  | (typeof foreignDialects)[number]

export const isForeign = (dialect: ConfigDialect): boolean => (foreignDialects as readonly string[]).includes(dialect)

export interface Translation extends TranslationReport {
  readonly dialect: ConfigDialect
  /** The document in Toolway's format. Nodes keep their source locations. */
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

type Translate = (tree: BranchNode, report: TranslationReport, home: string) => BranchNode

type Reader = { readonly dialect: ConfigDialect; readonly translate: Translate }

/** The formats in order of detection; the first match wins. Toolway's own is last because it accepts anything. */
const readers: readonly (Reader & { readonly recognises: (tree: BranchNode) => boolean })[] = [
  { dialect: 'mcp-endpoints', recognises: isEndpoints, translate: translateEndpoints },
  { dialect: 'opencode', recognises: isOpencode, translate: translateOpencode },
  { dialect: 'gemini', recognises: isGemini, translate: translateGemini },
  { dialect: 'vscode', recognises: isVscodeSettings, translate: translateVscode },
  { dialect: 'mcp-client', recognises: isMcpClient, translate: translateMcpClient },
  { dialect: 'gateway-rules', recognises: isRules, translate: translateRules },
  { dialect: 'codex', recognises: isCodex, translate: translateCodex },
  { dialect: 'zed', recognises: isZed, translate: translateZed },
  { dialect: 'claude-code', recognises: isClaudeCode, translate: translateClaudeCode },
  { dialect: 'vscode', recognises: isVscode, translate: translateVscode },
  { dialect: 'mcpServers', recognises: isServerList, translate: translateServerList },
  { dialect: 'mcpServers', recognises: isLibreChat, translate: translateLibreChat },
  { dialect: 'mcpServers', recognises: isPlain, translate: translatePlain },
  { dialect: 'toolway', recognises: () => true, translate: translateOwn },
]

/** Converts a file that contains only `mcpServers`. A file named toolway.* is validated strictly, as our own. */
function translatePlain(tree: BranchNode, report: TranslationReport, home: string): BranchNode {
  const own = basename(tree.at.file.path).startsWith('toolway.')
  return own ? translateOwn(tree, report) : translateMcpJson(tree, report, home)
}

/** The reader for a known client's file; undefined if the content does not match that client's format. */
function readerOf(kind: ClientKind, tree: BranchNode): Reader | undefined {
  if (kind === 'vscode') {
    return tree.members.has('mcpServers') ? undefined : { dialect: 'vscode', translate: translateVscode }
  }
  if (kind === 'claude-code' && basename(tree.at.file.path) !== '.mcp.json') {
    return { dialect: 'claude-code', translate: translateClaudeCode }
  }
  if (isPlainClient(kind)) {
    // A project's .mcp.json with Toolway sections is a Toolway configuration, not a client's file.
    const fits = kind === 'claude-code' ? isWithoutSections(tree) : isMcpJson(tree)
    return fits ? { dialect: 'mcpServers', translate: (...given) => translateMcpJson(...given, kind) } : undefined
  }
  return readers.find(({ dialect }) => dialect === kind)
}

/** Detects the dialect and converts the document; `kind` is the client that owns the file, if known. */
export function translate(
  tree: BranchNode,
  home: string,
  kind: ClientKind | undefined = kindOf(tree.at.file.path),
): Translation {
  const report = createReport()
  const reader = (kind && readerOf(kind, tree)) ?? (readers.find(({ recognises }) => recognises(tree)) as Reader)
  const read = reader.translate(tree, report, home)
  return { dialect: reader.dialect, tree: isForeign(reader.dialect) ? withoutOurselves(read, report) : read, ...report }
}

const ownName = 'toolway'

/** Drops the entry for Toolway, including its references to variables, so that Toolway does not connect to itself. */
function withoutOurselves(tree: BranchNode, report: TranslationReport): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.value.kind !== 'branch' || !servers.value.members.has(ownName)) return tree
  report.notes.push('the server toolway is Toolway itself and was ignored')
  return withMember(tree, 'mcpServers', { at: servers.at, value: withoutMember(servers.value, ownName) })
}
