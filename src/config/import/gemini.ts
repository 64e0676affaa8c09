import { type BranchNode, type ConfigTree, find, leaf, mapServers, member, withMember } from '../tree.ts'
import { folderOf } from './client-kind.ts'
import { clientServers } from './client-server.ts'
import type { TranslationReport } from './shape.ts'
import { bareVariables } from './variables.ts'

/** Settings that occur only in Gemini CLI files. */
const signs = [
  ['selectedAuthType'],
  ['contextFileName'],
  ['hasSeenIdeIntegrationNudge'],
  ['security', 'auth', 'selectedType'],
  ['mcp', 'allowed'],
  ['mcp', 'excluded'],
  ['mcp', 'serverCommand'],
]

/** Recognizes Gemini CLI's `settings.json`, which has `mcpServers` among other settings. */
export const isGemini = (tree: BranchNode): boolean =>
  find(tree, ['mcpServers'])?.kind === 'branch' && signs.some((path) => find(tree, path) !== undefined)

/** Converts Gemini CLI's file. Servers excluded by `mcp.allowed` or `mcp.excluded` become disabled. */
export function translateGemini(tree: BranchNode, report: TranslationReport): BranchNode {
  const folder = folderOf(tree.at.file.path)
  const format = { label: 'Gemini CLI', timeout: 'ms', respell: bareVariables, folder, tolerant: true } as const
  const servers = tree.members.get('mcpServers')
  const read = clientServers({ tree, servers, format, called: "Gemini CLI's settings", known: ['mcp'] }, report)
  const allowed = namesIn(find(tree, ['mcp', 'allowed']))
  const excluded = namesIn(find(tree, ['mcp', 'excluded'])) ?? []
  return mapServers(read, (server, name, at) => {
    if (!excluded.includes(name) && (allowed === undefined || allowed.includes(name))) return server
    report.notes.push(`the server ${name} is excluded by mcp.allowed or mcp.excluded, so it is disabled`)
    return withMember(server, 'disabled', member(leaf(at, true)))
  })
}

const namesIn = (part: ConfigTree | undefined): string[] | undefined =>
  part?.kind === 'list' ? part.items.flatMap((item) => (item.kind === 'leaf' ? [String(item.value)] : [])) : undefined
