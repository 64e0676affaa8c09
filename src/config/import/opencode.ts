import { type BranchNode, branch, type ConfigTree, find, list, mapServers, scalarAt, type TreeMember } from '../tree.ts'
import { clientServers, withoutThose } from './client-server.ts'
import { shape, type TranslationReport } from './shape.ts'
import { bracedVariables } from './variables.ts'

/** Recognizes `opencode.json`: `{"mcp": {NAME: {"type": "local" | "remote", …}}}`, or the same under `mcp.servers`. */
export function isOpencode(tree: BranchNode): boolean {
  if (String(scalarAt(tree, ['$schema'])).includes('opencode.ai')) return true
  return [...entriesOf(tree)].some(({ value }) => typeOf(value) === 'local' || typeOf(value) === 'remote')
}

function* entriesOf(tree: BranchNode): Iterable<TreeMember> {
  for (const path of [['mcp'], ['mcp', 'servers']]) {
    const section = find(tree, path)
    if (section?.kind === 'branch') yield* section.members.values()
  }
}

const typeOf = (part: ConfigTree) => scalarAt(part, ['type'])

/** Converts OpenCode's file, which writes a command and its arguments as one list and variables as `{env:NAME}`. */
export function translateOpencode(tree: BranchNode, report: TranslationReport): BranchNode {
  const section = tree.members.get('mcp')
  const newer = section?.value.kind === 'branch' ? section.value.members.get('servers') : undefined
  const written = newer?.value.kind === 'branch' && typeOf(newer.value) === undefined ? newer : section
  const complete = withoutThose(written, reasonFor, report)
  const shaped = shape(tree.at, { mcpServers: complete })
  const servers = mapServers(shaped, opencodeServer).members.get('mcpServers')
  const format = { label: 'OpenCode', timeout: 'ms', respell: bracedVariables, tolerant: true } as const
  return clientServers({ tree, servers, format, called: "OpenCode's configuration", known: ['mcp'] }, report)
}

/** Returns the reason to exclude an entry that only enables or disables a server defined elsewhere. */
const reasonFor = ({ members }: BranchNode): string | undefined =>
  members.has('command') || members.has('url')
    ? undefined
    : 'it only enables or disables a server that is defined elsewhere'

function opencodeServer(server: BranchNode): BranchNode {
  const members = new Map(server.members)
  // `remote` does not name a transport; the URL determines it.
  if (typeOf(server) === 'remote') members.delete('type')
  const environment = members.get('environment')
  if (environment) members.set('env', environment)
  members.delete('environment')
  const command = members.get('command')
  if (command?.value.kind === 'list') {
    const [program, ...words] = command.value.items
    if (program) members.set('command', { at: command.at, value: program })
    if (words.length > 0) members.set('args', { at: command.at, value: list(command.value.at, words) })
  }
  return branch(server.at, members)
}
