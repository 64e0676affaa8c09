import { basename } from 'node:path'
import { pluralize } from '../../lib/message-text.ts'
import { escapeVariables, isDisabled } from '../interpolate.ts'
import { problemAt } from '../problems.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  itemsIn,
  keyLocation,
  type LeafNode,
  leaf,
  leafText,
  list,
  mapLeaves,
  mapMembers,
  mapServers,
  membersIn,
  scalarAt,
  toPlain,
  withKeyAt,
  withMember,
} from '../tree.ts'
import { plainName } from '../validate.ts'
import { folderOf, workspaceOf } from './client-kind.ts'
import {
  bareVariables,
  bracedVariables,
  clientServer,
  clientServers,
  editorVariables,
  inputVariable,
  inUnit,
} from './client-server.ts'
import { dependsOnFolder, fingerprint } from './server-identity.ts'
import { expectedMembers, type FormatReader, instead, mapText, shape, type TranslationReport } from './shape.ts'

const typeOf = (part: ConfigTree) => scalarAt(part, ['type'])

/**
 * OpenCode's file: `{"mcp": {NAME: {"type": "local" | "remote", …}}}`, or the same under `mcp.servers`. It writes a
 * command and its arguments as one list, and variables as `{env:NAME}`.
 */
export const opencode: FormatReader = {
  dialect: 'opencode',
  recognises(tree) {
    if (String(scalarAt(tree, ['$schema'])).includes('opencode.ai')) return true
    const servers = [find(tree, ['mcp']), find(tree, ['mcp', 'servers'])].flatMap((part) => [
      ...membersIn(part).values(),
    ])
    return servers.some((server) => typeOf(server) === 'local' || typeOf(server) === 'remote')
  },
  translate(tree, report) {
    const newer = find(tree, ['mcp', 'servers'])
    const servers = newer?.kind === 'branch' && typeOf(newer) === undefined ? newer : tree.members.get('mcp')
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
  const members = renamedMembers(server, { environment: 'env' })
  // `remote` does not name a transport; the URL determines it.
  if (typeOf(server) === 'remote') members.delete('type')
  const command = members.get('command')
  const [program, ...words] = itemsIn(command)
  if (command && program) members.set('command', withKeyAt(program, keyLocation(command)))
  if (command && words.length > 0) members.set('args', withKeyAt(list(command.at, words), keyLocation(command)))
  return branch(server.at, members)
}

/** The members of a section under other names. */
function renamedMembers(section: BranchNode, names: Readonly<Record<string, string>>): Map<string, ConfigTree> {
  const members = new Map(section.members)
  for (const [name, other] of Object.entries(names)) {
    const part = members.get(name)
    if (part) members.set(other, part)
    members.delete(name)
  }
  return members
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
    const allowed = find(tree, ['mcp', 'allowed'])
    const excluded = find(tree, ['mcp', 'excluded'])
    const names = (part: ConfigTree | undefined) => itemsIn(part).map((item) => String(scalarAt(item, [])))
    return mapServers(read, (server, name) => {
      const isAllowed = allowed?.kind !== 'list' || names(allowed).includes(name)
      if (isAllowed && !names(excluded).includes(name)) return server
      report.notes.push(`the server ${name} is excluded by mcp.allowed or mcp.excluded, so it is disabled`)
      return withMember(server, 'disabled', leaf(keyLocation(server), true))
    })
  },
}

/** VS Code's `mcp.json`: `{"inputs": […], "servers": {…}}`. Inputs, which VS Code asks the user for, become variables. */
export const vscode: FormatReader = {
  dialect: 'vscode',
  recognises: ({ members }) => members.get('servers')?.kind === 'branch' && !members.has('mcpServers'),
  translate(file, report, home) {
    const document = settingsOf(file) ?? file
    expectedMembers(document, ['servers', 'inputs', '$schema'], report)
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
  const dotted = shape(at, { servers: members.get('mcp.servers'), inputs: members.get('mcp.inputs') })
  const section = members.get('mcp') ?? dotted
  return section.kind === 'branch' && find(section, ['servers'])?.kind === 'branch' ? section : undefined
}

/** Replaces `${input:id}` with `${INPUT_ID}`, or `${INPUT_ID:-default}` if the input has a default. */
function inputs(section: ConfigTree | undefined, report: TranslationReport): (part: LeafNode) => LeafNode {
  const defaults = new Map<string, string>()
  for (const input of itemsIn(section)) {
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
  recognises: ({ members }) => members.get('context_servers')?.kind === 'branch',
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
  if (membersIn(members.get('settings')).size > 0) {
    report.warnings.push(`mcpServers.${name}.settings is ignored: it applies only to Zed extensions`)
  }
  members.delete('settings')
  const command = members.get('command')
  if (command?.kind !== 'branch') return branch(server.at, members)
  members.delete('command')
  for (const [key, source] of Object.entries({ command: 'path', args: 'args', env: 'env' })) {
    const part = find(command, [source])
    if (part && !members.has(key)) members.set(key, withKeyAt(part, keyLocation(command)))
  }
  return branch(server.at, members)
}

/**
 * Codex's `config.toml`, which has `[mcp_servers.NAME]` tables among other settings. Settings that name environment
 * variables become `${NAME}` references.
 */
export const codex: FormatReader = {
  dialect: 'codex',
  recognises: ({ members }) => members.get('mcp_servers')?.kind === 'branch',
  translate(document, report) {
    const tree = mapLeaves(document, (part) => mapText(part, escapeVariables)) as BranchNode
    const servers = tree.members.get('mcp_servers')
    const change = (server: BranchNode, name: string) => codexServer(server, name, report)
    const format = { label: 'Codex', folder: folderOf(tree.at.file.path), tolerant: true }
    return clientServers({ tree, servers, format, called: "Codex's config.toml", change }, report)
  },
}

function codexServer(server: BranchNode, name: string, report: TranslationReport): BranchNode {
  const members = renamedMembers(server, { enabled_tools: 'includeTools', disabled_tools: 'excludeTools' })
  const take = (key: string): ConfigTree | undefined => {
    const found = members.get(key)
    members.delete(key)
    return found
  }
  const timeout = take('tool_timeout_sec')
  if (timeout) members.set('timeout', inUnit(timeout, 's'))
  addVariables(members, 'env', forwarded(take('env_vars'), name, report))
  const headers = take('http_headers')
  if (headers) members.set('headers', headers)
  addVariables(members, 'headers', headerVariables(take('env_http_headers'), report))
  const bearer = asVariable(take('bearer_token_env_var'), report) ?? take('bearer_token')
  const scopes = take('scopes')
  const oauth = take('oauth')
  const authorization = scopes ?? oauth
  if (bearer) members.set('auth', shape(bearer.at, { type: leaf(bearer.at, 'bearer'), token: bearer }))
  else if (authorization) {
    members.set('oauth', shape(authorization.at, { ...Object.fromEntries(membersIn(oauth)), scopes }))
  }
  if (take('tools')) {
    report.warnings.push(`mcpServers.${name}.tools is ignored: Codex decides which calls need approval`)
  }
  return branch(server.at, members)
}

/** A reference to the variable that a setting names. Other text must not become a reference. */
function asVariable(part: ConfigTree | undefined, report: TranslationReport): LeafNode | undefined {
  const name = leafText(part)
  if (part?.kind !== 'leaf' || name === undefined) return undefined
  if (/^[A-Za-z_]\w*$/.test(name)) return instead(part, `\${${name}}`)
  report.problems.push(problemAt(part.at, 'expected the name of an environment variable'))
  return undefined
}

/** Converts `env_vars`, a list of variables to pass on to the server, each a name or `{name, source}`. */
const forwarded = (part: ConfigTree | undefined, server: string, report: TranslationReport): [string, LeafNode][] =>
  itemsIn(part).flatMap((item): [string, LeafNode][] => {
    const name = item.kind === 'branch' ? find(item, ['name']) : item
    const variable = asVariable(name, report)
    if (scalarAt(item, ['source']) === 'remote') {
      report.warnings.push(`mcpServers.${server}.env_vars: ignored a variable that comes from a remote machine`)
      return []
    }
    return variable ? [[String(leafText(name)), variable]] : []
  })

const headerVariables = (part: ConfigTree | undefined, report: TranslationReport): [string, LeafNode][] =>
  [...membersIn(part)].flatMap(([header, name]): [string, LeafNode][] => {
    const variable = asVariable(name, report)
    return variable ? [[header, variable]] : []
  })

/** Adds variables to a section; existing keys win. */
function addVariables(members: Map<string, ConfigTree>, key: string, variables: readonly [string, LeafNode][]): void {
  const [first] = variables
  if (!first) return
  const section = members.get(key)
  members.set(key, branch(section?.at ?? first[1].at, [...variables, ...membersIn(section)]))
}

/**
 * Claude Code's `~/.claude.json`, which contains the user's servers and each project's servers. Identical servers from
 * several projects are merged into one. If projects define different servers with the same name, the project's name is
 * appended to the name of the later one.
 */
export const claudeCode: FormatReader = {
  dialect: 'claude-code',
  recognises: (tree) =>
    [...membersIn(find(tree, ['projects'])).values()].some((one) => find(one, ['mcpServers'])?.kind === 'branch'),
  translate(tree, report) {
    const found = new Map<string, ConfigTree>()
    const read = (section: ConfigTree | undefined, folder: string | undefined) => {
      const format = { label: 'Claude Code', timeout: 'ms', tolerant: true, folder: folder || undefined } as const
      for (const [name, written] of membersIn(section)) {
        const server = written.kind === 'branch' ? clientServer(written, name, format, report) : written
        addProjectServer(found, name, withKeyAt(server, keyLocation(written)), folder, report)
      }
    }
    const servers = find(tree, ['mcpServers'])
    read(servers, undefined)
    for (const [folder, one] of membersIn(find(tree, ['projects']))) read(enabledServers(one), folder)
    report.notes.push(`read as Claude Code's own file: ${pluralize(found.size, 'server')}`)
    const at = servers ?? tree
    return shape(tree.at, { mcpServers: withKeyAt(branch(at.at, found), keyLocation(at)) })
  },
}

/** A project's servers. Those in `disabledMcpServers` are marked as disabled. */
function enabledServers(project: ConfigTree): ConfigTree | undefined {
  const section = find(project, ['mcpServers'])
  const off = itemsIn(find(project, ['disabledMcpServers'])).map((item) => scalarAt(item, []))
  if (section?.kind !== 'branch') return section
  return mapMembers(section, (server, name) =>
    off.includes(name) && server.kind === 'branch'
      ? withMember(server, 'disabled', leaf(keyLocation(server), true))
      : server,
  )
}

function addProjectServer(
  found: Map<string, ConfigTree>,
  name: string,
  server: ConfigTree,
  folder: string | undefined,
  report: TranslationReport,
): void {
  const known = found.get(name)
  const isSame = known !== undefined && serverMark(known) === serverMark(server)
  // A server that is enabled in any project is enabled.
  if (!known || (isSame && isDisabled(known))) found.set(name, server)
  if (!known || isSame) return
  const project = plainName(basename(folder ?? '')) ?? basename(folder ?? '')
  let other = `${name}-${project}`
  for (let number = 2; found.has(other); number++) other = `${name}-${project}-${number}`
  report.notes.push(`the project ${folder} has a different server named ${name}, which is renamed to ${other}`)
  found.set(other, server)
}

/** A string that identifies a server; the working folder is included only if the command depends on it. */
function serverMark(server: ConfigTree): string {
  const { cwd, ...rest } = toPlain(server) as Record<string, unknown>
  return fingerprint(dependsOnFolder(rest) ? { ...rest, cwd } : rest)
}
