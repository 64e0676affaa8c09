import { escapeVariables } from '../interpolate.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  type LeafNode,
  leaf,
  list,
  mapLeaves,
  mapServers,
  member,
  scalarAt,
  type TreeMember,
  withMember,
} from '../tree.ts'
import { folderOf, workspaceOf } from './client-kind.ts'
import {
  bareVariables,
  bracedVariables,
  clientServers,
  editorVariables,
  inputVariable,
  withoutThose,
} from './client-server.ts'
import { mapText, membersOf, shape, type TranslationReport } from './shape.ts'

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
  const complete = withoutThose(written, overrideReason, report)
  const shaped = shape(tree.at, { mcpServers: complete })
  const servers = mapServers(shaped, opencodeServer).members.get('mcpServers')
  const format = { label: 'OpenCode', timeout: 'ms', respell: bracedVariables, tolerant: true } as const
  return clientServers({ tree, servers, format, called: "OpenCode's configuration", known: ['mcp'] }, report)
}

/** Returns the reason to exclude an entry that only enables or disables a server defined elsewhere. */
const overrideReason = ({ members }: BranchNode): string | undefined =>
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

/** Recognizes VS Code's `mcp.json`: `{"inputs": […], "servers": {…}}`. */
export const isVscode = ({ members }: BranchNode): boolean =>
  members.get('servers')?.value.kind === 'branch' && !members.has('mcpServers')

/** Sections of files that have `mcp` or `mcp.servers` too, but are not VS Code's. */
const notSettings = ['mcp_client', 'tool_forwarding', 'mcpServers', 'agents', 'policy', 'auth', 'limits']

/** Recognizes VS Code's older `settings.json`, with the content of `mcp.json` under `mcp`. */
export const isVscodeSettings = (tree: BranchNode): boolean =>
  settingsOf(tree) !== undefined && !notSettings.some((key) => tree.members.has(key))

/** The section `mcp` of VS Code's `settings.json`, whose keys can also be written as `mcp.servers`. */
function settingsOf({ at, members }: BranchNode): BranchNode | undefined {
  const dotted = ['servers', 'inputs'].flatMap((key) => {
    const member = members.get(`mcp.${key}`)
    return member ? [[key, member] as const] : []
  })
  const section = members.get('mcp')?.value ?? branch(at, dotted)
  return section.kind === 'branch' && find(section, ['servers'])?.kind === 'branch' ? section : undefined
}

/** Converts VS Code's file. Inputs, which VS Code asks the user for, become variables. */
export function translateVscode(file: BranchNode, report: TranslationReport, home: string): BranchNode {
  const document = settingsOf(file) ?? file
  membersOf(document, ['servers', 'inputs', '$schema'], report)
  const tree = mapLeaves(document, inputs(find(document, ['inputs']), report)) as BranchNode
  const folder = folderOf(tree.at.file.path)
  const format = {
    label: 'the editor',
    respell: editorVariables(workspaceOf(tree.at.file.path, home)),
    folder,
    tolerant: true,
  }
  const servers = tree.members.get('servers')
  return clientServers({ tree, servers, format, called: "an editor's mcp.json", known: ['inputs'] }, report)
}

/** Replaces `${input:id}` with `${INPUT_ID}`, or `${INPUT_ID:-default}` if the input has a default. */
function inputs(section: ConfigTree | undefined, report: TranslationReport): (part: LeafNode) => LeafNode {
  const defaults = new Map<string, string>()
  for (const input of section?.kind === 'list' ? section.items : []) {
    const [id, fallback] = ['id', 'default'].map((key) => find(input, [key]))
    if (id?.kind === 'leaf' && fallback?.kind === 'leaf' && typeof fallback.value === 'string') {
      defaults.set(String(id.value), fallback.value)
    }
  }
  const said = new Set<string>()
  const variable = (id: string): string => {
    const name = inputVariable(id)
    const note = `the editor's prompt ${id} is read from the variable ${name}`
    if (!said.has(name)) report.notes.push(note)
    said.add(name)
    const fallback = defaults.get(id)
    return fallback === undefined || /[{}]/.test(fallback) ? `\${${name}}` : `\${${name}:-${fallback}}`
  }
  return (part) => mapText(part, (text) => text.replace(/(?<!\$)\$\{input:([^}]+)\}/g, (_, id: string) => variable(id)))
}

/** Recognizes Zed's `settings.json`, which has servers under `context_servers`. */
export const isZed = ({ members }: BranchNode): boolean => members.get('context_servers')?.value.kind === 'branch'

/** Converts Zed's file, including the older form `command: {path, args, env}`. */
export function translateZed(tree: BranchNode, report: TranslationReport): BranchNode {
  const runnable = withoutThose(tree.members.get('context_servers'), extensionReason, report)
  const shaped = shape(tree.at, { mcpServers: runnable })
  const servers = mapServers(shaped, (server, name) => zedServer(server, name, report)).members.get('mcpServers')
  const folder = folderOf(tree.at.file.path)
  const format = { label: 'Zed', timeout: 's', respell: escapeVariables, folder, tolerant: true } as const
  return clientServers({ tree, servers, format, called: "Zed's settings", known: ['context_servers'] }, report)
}

const extensionReason = ({ members }: BranchNode): string | undefined =>
  members.has('command') || members.has('url') ? undefined : 'a Zed extension runs it'

function zedServer(server: BranchNode, name: string, report: TranslationReport): BranchNode {
  const members = new Map(server.members)
  const settings = members.get('settings')?.value
  members.delete('settings')
  if (settings?.kind === 'branch' && settings.members.size > 0) {
    report.warnings.push(`mcpServers.${name}.settings is ignored: it applies only to Zed extensions`)
  }
  const command = members.get('command')
  if (command?.value.kind !== 'branch') return branch(server.at, members)
  const { value } = command
  members.delete('command')
  for (const [key, source] of Object.entries({ command: 'path', args: 'args', env: 'env' })) {
    const part = find(value, [source])
    if (part && !members.has(key)) members.set(key, { at: command.at, value: part })
  }
  return branch(server.at, members)
}
