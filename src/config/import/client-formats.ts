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
  withMember,
} from '../tree.ts'
import { folderOf, workspaceOf } from './client-kind.ts'
import { bareVariables, bracedVariables, clientServers, editorVariables, inputVariable } from './client-server.ts'
import { type FormatReader, mapText, membersOf, type TranslationReport } from './shape.ts'

const typeOf = (part: ConfigTree) => scalarAt(part, ['type'])

/**
 * OpenCode's file: `{"mcp": {NAME: {"type": "local" | "remote", …}}}`, or the same under `mcp.servers`. It writes a
 * command and its arguments as one list, and variables as `{env:NAME}`.
 */
export const opencode: FormatReader = {
  dialect: 'opencode',
  recognises(tree) {
    if (String(scalarAt(tree, ['$schema'])).includes('opencode.ai')) return true
    const sections = [find(tree, ['mcp']), find(tree, ['mcp', 'servers'])]
    const servers = sections.flatMap((section) => (section?.kind === 'branch' ? [...section.members.values()] : []))
    return servers.some(({ value }) => typeOf(value) === 'local' || typeOf(value) === 'remote')
  },
  translate(tree, report) {
    const section = tree.members.get('mcp')
    const newer = section?.value.kind === 'branch' ? section.value.members.get('servers') : undefined
    const servers = newer?.value.kind === 'branch' && typeOf(newer.value) === undefined ? newer : section
    const format = { label: 'OpenCode', timeout: 'ms', respell: bracedVariables, tolerant: true } as const
    const skip = ({ members }: BranchNode) =>
      members.has('command') || members.has('url')
        ? undefined
        : 'it only enables or disables a server that is defined elsewhere'
    const file = { tree, servers, format, called: "OpenCode's configuration", known: ['mcp'] }
    return clientServers({ ...file, skip, change: opencodeServer }, report)
  },
}

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
const geminiSettings = [
  ['selectedAuthType'],
  ['contextFileName'],
  ['hasSeenIdeIntegrationNudge'],
  ['security', 'auth', 'selectedType'],
  ['mcp', 'allowed'],
  ['mcp', 'excluded'],
  ['mcp', 'serverCommand'],
]

/**
 * Gemini CLI's `settings.json`, which has `mcpServers` among other settings. Servers that `mcp.allowed` or
 * `mcp.excluded` excludes become disabled.
 */
export const gemini: FormatReader = {
  dialect: 'gemini',
  recognises: (tree) =>
    find(tree, ['mcpServers'])?.kind === 'branch' && geminiSettings.some((path) => find(tree, path) !== undefined),
  translate(tree, report) {
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
  },
}

const namesIn = (part: ConfigTree | undefined): string[] | undefined =>
  part?.kind === 'list' ? part.items.flatMap((item) => (item.kind === 'leaf' ? [String(item.value)] : [])) : undefined

/** VS Code's `mcp.json`: `{"inputs": […], "servers": {…}}`. Inputs, which VS Code asks the user for, become variables. */
export const vscode: FormatReader = {
  dialect: 'vscode',
  recognises: ({ members }) => members.get('servers')?.value.kind === 'branch' && !members.has('mcpServers'),
  translate(file, report, home) {
    const document = settingsOf(file) ?? file
    membersOf(document, ['servers', 'inputs', '$schema'], report)
    const tree = mapLeaves(document, inputs(find(document, ['inputs']), report)) as BranchNode
    const { path } = tree.at.file
    const respell = editorVariables(workspaceOf(path, home))
    const format = { label: 'the editor', respell, folder: folderOf(path), tolerant: true }
    const servers = tree.members.get('servers')
    return clientServers({ tree, servers, format, called: "an editor's mcp.json", known: ['inputs'] }, report)
  },
}

/** Sections of files that have `mcp` or `mcp.servers` too, but are not VS Code's. */
const notSettings = ['mcp_client', 'tool_forwarding', 'mcpServers', 'agents', 'policy', 'auth', 'limits']

/** VS Code's older `settings.json`, with the content of `mcp.json` under `mcp`. */
export const vscodeSettings: FormatReader = {
  ...vscode,
  recognises: (tree) => settingsOf(tree) !== undefined && !notSettings.some((key) => tree.members.has(key)),
}

/** The section `mcp` of VS Code's `settings.json`, whose keys can also be written as `mcp.servers`. */
function settingsOf({ at, members }: BranchNode): BranchNode | undefined {
  const dotted = ['servers', 'inputs'].flatMap((key) => {
    const entry = members.get(`mcp.${key}`)
    return entry ? [[key, entry] as const] : []
  })
  const section = members.get('mcp')?.value ?? branch(at, dotted)
  return section.kind === 'branch' && find(section, ['servers'])?.kind === 'branch' ? section : undefined
}

/** Replaces `${input:id}` with `${INPUT_ID}`, or `${INPUT_ID:-default}` if the input has a default. */
function inputs(section: ConfigTree | undefined, report: TranslationReport): (part: LeafNode) => LeafNode {
  const defaults = new Map<string, string>()
  for (const input of section?.kind === 'list' ? section.items : []) {
    const fallback = scalarAt(input, ['default'])
    if (typeof fallback === 'string') defaults.set(String(scalarAt(input, ['id'])), fallback)
  }
  const said = new Set<string>()
  const variable = (id: string): string => {
    const name = inputVariable(id)
    if (!said.has(name)) report.notes.push(`the editor's prompt ${id} is read from the variable ${name}`)
    said.add(name)
    const fallback = defaults.get(id)
    return fallback === undefined || /[{}]/.test(fallback) ? `\${${name}}` : `\${${name}:-${fallback}}`
  }
  return (part) => mapText(part, (text) => text.replace(/(?<!\$)\$\{input:([^}]+)\}/g, (_, id: string) => variable(id)))
}

/** Zed's `settings.json`, which has servers under `context_servers`, also in the older form `command: {path, args, env}`. */
export const zed: FormatReader = {
  dialect: 'zed',
  recognises: ({ members }) => members.get('context_servers')?.value.kind === 'branch',
  translate(tree, report) {
    const folder = folderOf(tree.at.file.path)
    const format = { label: 'Zed', timeout: 's', respell: escapeVariables, folder, tolerant: true } as const
    const servers = tree.members.get('context_servers')
    const skip = ({ members }: BranchNode) =>
      members.has('command') || members.has('url') ? undefined : 'a Zed extension runs it'
    const change = (server: BranchNode, name: string) => zedServer(server, name, report)
    return clientServers({ tree, servers, format, called: "Zed's settings", skip, change }, report)
  },
}

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
