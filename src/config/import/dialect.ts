import type { Branch } from '../tree.ts'
import { isEndpoints, translateEndpoints } from './endpoints.ts'
import { isRules, translateRules } from './gateway-rules.ts'
import { isMcpClient, translateMcpClient } from './mcp-client.ts'
import { withoutOurselves } from './ourselves.ts'
import { isPlain, translateOwn } from './own.ts'
import { createReport, type Report } from './report.ts'
import { isVscode, translateVscode } from './vscode.ts'

/** Whose way of writing a file follows. */
export type Dialect = 'toolway' | 'mcpServers' | 'vscode' | 'gateway-rules' | 'mcp-client' | 'mcp-endpoints'

export interface Translation extends Report {
  readonly dialect: Dialect
  /** The document in our own shape; every part still knows where it was written. */
  readonly tree: Branch
}

interface Reader {
  readonly dialect: Dialect
  readonly recognises: (tree: Branch) => boolean
  readonly translate: (tree: Branch, report: Report) => Branch
}

/** The first one that recognises a document reads it; our own shape comes last because it takes anything. */
const readers: readonly Reader[] = [
  { dialect: 'mcp-endpoints', recognises: isEndpoints, translate: translateEndpoints },
  { dialect: 'mcp-client', recognises: isMcpClient, translate: translateMcpClient },
  { dialect: 'gateway-rules', recognises: isRules, translate: translateRules },
  { dialect: 'vscode', recognises: isVscode, translate: translateVscode },
  { dialect: 'mcpServers', recognises: isPlain, translate: translateOwn },
  { dialect: 'toolway', recognises: () => true, translate: translateOwn },
]

/** Recognises the dialect of a document and puts it into our own shape. */
export function translate(tree: Branch): Translation {
  const report = createReport()
  const reader = readers.find(({ recognises }) => recognises(tree)) as Reader
  const read = reader.translate(tree, report)
  const foreign = reader.dialect === 'mcpServers' || reader.dialect === 'vscode'
  return { dialect: reader.dialect, tree: foreign ? withoutOurselves(read, report) : read, ...report }
}
