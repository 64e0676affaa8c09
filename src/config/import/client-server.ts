import { basename, resolve } from 'node:path'
import { pluralize } from '../../lib/message-text.ts'
import { nearMiss } from '../../lib/similar-text.ts'
import { escapeVariables, interpolate } from '../interpolate.ts'
import { isRelative } from '../paths.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  keyLocation,
  keyPath,
  type ListNode,
  leaf,
  leafList,
  leafText,
  list,
  mapLeaves,
  mapMembers,
  mapServers,
  serverNodes,
  toPlain,
  withKeyAt,
  withMember,
} from '../tree.ts'
import { unknownKeyAt, validate } from '../validate.ts'
import { normaliseServer, serverKeys } from './aliases.ts'
import { keepsState, statefulNote } from './server-identity.ts'
import { instead, isFalse, mapText, shape, type TranslationReport } from './shape.ts'

/** Converts a client's server entry to Toolway's format. Reports dropped keys, except those in `harmless`. */
export function clientServer(
  written: BranchNode,
  name: string,
  format: ClientFormat,
  report: TranslationReport,
): BranchNode {
  const { respell } = format
  const server = respell ? (mapLeaves(written, (part) => mapText(part, respell)) as BranchNode) : written
  const members = new Map<string, ConfigTree>()
  for (const [key, value] of server.members) {
    const reason = leftAside[key]
    if (key === 'timeout' && format.timeout) members.set(key, inUnit(value, format.timeout))
    else if (key === 'oauth' || (key === 'auth' && isForeignAuth(value))) {
      const auth = oauthOf(value, keyPath(['mcpServers', name]), report)
      if (auth) members.set('auth', withKeyAt(auth, keyLocation(value)))
    } else if (reason !== undefined) report.warnings.push(`${keyPath(['mcpServers', name, key])} ${reason}`)
    else if (key === 'tools' && value.kind === 'list') {
      const [listed, names] = toolsOf(value)
      if (listed && !server.members.has(listed)) members.set(listed, withKeyAt(names, keyLocation(value)))
    } else if (serverKeys.includes(key)) members.set(key, value)
    else if (startTimeouts.has(key) || harmless.includes(key)) continue
    else if (!format.tolerant) members.set(key, value)
    else if (nearMiss(key, serverKeys) !== undefined) {
      report.problems.push(unknownKeyAt(keyLocation(value), key, serverKeys))
    } else {
      const warning = `is ignored: Toolway does not support this key from ${format.label}`
      report.warnings.push(`${keyPath(['mcpServers', name, key])} ${warning}`)
    }
  }
  for (const [key, unit] of startTimeouts) {
    const value = server.members.get(key)
    if (value) members.set('startTimeout', inUnit(value, unit))
  }
  for (const [key, value] of members) {
    const fault = optional.includes(key) ? faultOf(key, value) : undefined
    if (fault === undefined) continue
    report.warnings.push(`${keyPath(['mcpServers', name, key])} is ignored: ${fault}`)
    members.delete(key)
  }
  const normal = normaliseServer(branch(server.at, members), name, report)
  return inFolder(withSession(normal, name, report), format.folder)
}

/** Converts Copilot's list of enabled tools; `*` stands for all of them, and an empty list enables none. */
function toolsOf(tools: ListNode): ['includeTools' | 'excludeTools' | undefined, ListNode] {
  if (tools.items.length === 0) return ['excludeTools', list(tools.at, [leaf(tools.at, '*')])]
  return [tools.items.some((item) => leafText(item) === '*') ? undefined : 'includeTools', tools]
}

/**
 * Keys of ours that a server can do without. Another program may give them a different meaning, so an invalid value is
 * ignored. Keys that restrict a server are not among them.
 */
const optional: readonly string[] = [
  ...['description', 'session', 'era', 'connect', 'idle', 'restarts', 'spares', 'refresh', 'capture', 'breaker'],
  ...['timeout', 'maxTimeout', 'startTimeout', 'toolTimeouts', 'priority'],
]

/** Why the value of a key is invalid. Variables are not expanded yet, so their values count as valid. */
function faultOf(key: string, value: ConfigTree): string | undefined {
  const { at } = value
  if (/timeout$/i.test(key) && toPlain(value) === Number(toPlain(value))) {
    return 'a number without a unit may mean seconds or milliseconds; add it with a unit, such as 60s'
  }
  const server = shape(at, { command: leaf(at, 'x'), [key]: value })
  const outcome = validate(interpolate(shape(at, { mcpServers: shape(at, { any: server }) }), {}).tree)
  return 'problems' in outcome ? outcome.problems[0]?.message : undefined
}

/** Sets `session: caller` for stateful servers: clients start one process each, so the server expects one caller. */
function withSession(server: BranchNode, name: string, report: TranslationReport): BranchNode {
  const command = server.members.get('command')
  if (!command || server.members.has('session')) return server
  if (!keepsState(toPlain(server) as Readonly<Record<string, unknown>>)) return server
  report.notes.push(statefulNote(name))
  return withMember(server, 'session', leaf(keyLocation(command), 'caller'))
}

/** Recognizes a client's `auth` section, which only describes OAuth. Toolway's own `auth` always has a `type`. */
const isForeignAuth = (part: ConfigTree): boolean => part.kind === 'branch' && !part.members.has('type')

/** Adds the client's time unit to a bare number. A string already includes its unit. */
export const inUnit = (part: ConfigTree, unit: 's' | 'ms'): ConfigTree =>
  part.kind === 'leaf' && typeof part.value === 'number' ? instead(part, `${part.value}${unit}`) : part

/** Makes programs start where the client would start them. An added `cwd` gets the source location of `command`. */
function inFolder(server: BranchNode, named: string | undefined): BranchNode {
  const command = server.members.get('command')
  if (named === undefined || !command) return server
  const folder = escapeVariables(named)
  const absolute = (text: string) => (isRelative(text) ? resolve(folder, text) : text)
  const placed = mapMembers(server, (value, key) =>
    key === 'cwd' || key === 'envFile' ? mapText(value, absolute) : value,
  )
  return placed.members.has('cwd') ? placed : withMember(placed, 'cwd', leaf(keyLocation(command), folder))
}

/** The first of these members that exists, as a value: errors about it point to where the value is written. */
function first(part: ConfigTree, keys: readonly string[]): ConfigTree | undefined {
  const found = keys.map((key) => find(part, [key])).find((one) => one !== undefined)
  return found && withKeyAt(found, found.at)
}

/** Converts a client's `oauth` to Toolway's `auth`; undefined if OAuth is disabled. */
function oauthOf(part: ConfigTree, server: string, report: TranslationReport): BranchNode | undefined {
  if (isFalse(part) || isFalse(find(part, ['enabled']))) return undefined
  const clientId = first(part, ['clientId', 'client_id', 'CLIENT_ID'])
  const clientSecret = first(part, ['clientSecret', 'client_secret', 'CLIENT_SECRET'])
  if (clientSecret && !clientId) {
    report.warnings.push(`${server}: the client secret is ignored, because the client id is missing`)
  }
  return shape(part.at, {
    type: leaf(part.at, 'oauth'),
    clientId,
    clientSecret: clientId && clientSecret,
    scopes: scopesOf(first(part, ['scopes', 'scope'])),
  })
}

/** Converts scopes to a list. Accepts a list, or a string of scopes separated by spaces or commas. */
function scopesOf(part: ConfigTree | undefined): ConfigTree | undefined {
  const text = leafText(part)
  if (!part || text === undefined) return part
  const scopes = text.split(/[\s,]+/).filter((scope) => scope !== '')
  return leafList(part.at, scopes)
}

export interface ClientFormat {
  readonly label: string
  /** Unit for a bare number in `timeout`. Undefined if `timeout` must include its unit. */
  readonly timeout?: 's' | 'ms'
  readonly respell?: RewriteVariable
  /** Working folder for the client's servers, if it is not the folder that contains the file. */
  readonly folder?: string
  /** Whether unknown keys only cause a warning. True if the client owns the file. */
  readonly tolerant: boolean
}

/** Keys that only matter to the client. They are dropped without a warning. */
const harmless: readonly string[] = [
  ...['alwaysLoad', 'dev', 'displayName', 'extensionName', 'gallery', 'icon', 'name', 'remote', 'required', 'source'],
  ...['supports_parallel_tool_calls', 'supportsParallelToolCalls', 'version'],
]

/** Aliases of `startTimeout` and their units. If several are present, the last one listed applies. */
const startTimeouts: ReadonlyMap<string, 's' | 'ms'> = new Map([
  ['startup_timeout_ms', 'ms'],
  ['startup_timeout_sec', 's'],
])

const approval =
  'has no effect: the client decides which calls need approval; list tools under approve to have Toolway ask for approval'

/** Keys without which a server cannot be used, because they say how the client gets its credential. */
const credentialKeys = ['headersHelper', 'authProviderType']

/** Why a server only works in its client; undefined if it also works here. */
export const clientOnly = (server: Readonly<Record<string, unknown>>): string | undefined => {
  const key = credentialKeys.find((name) => server[name] !== undefined)
  return key && `${key} ${leftAside[key]}`
}

/** Keys that matter but are not supported, with their warnings. */
const leftAside: Readonly<Record<string, string>> = {
  authProviderType: 'has no effect: put the credential under headers or auth',
  default_tools_approval_mode: approval,
  experimental_environment: 'has no effect: Toolway starts programs on the machine where it runs',
  headersHelper: 'has no effect: Toolway does not run programs for headers; write them with ${NAME} or ${file:PATH}',
  oauth_resource: 'has no effect: Toolway gets the resource from the server',
  sandbox: "has no effect: Toolway does not use the editor's sandbox",
  sandboxEnabled: "has no effect: Toolway does not use the editor's sandbox",
  targetAudience: 'has no effect: put the credential under headers or auth',
  targetServiceAccount: 'has no effect: put the credential under headers or auth',
}

interface ClientFile {
  readonly tree: BranchNode
  readonly servers: ConfigTree | undefined
  readonly format: ClientFormat
  /** The file's name in the import note. */
  readonly called: string
  /** Other top-level keys that concern servers; they are not counted as ignored settings. */
  readonly known?: readonly string[]
  /** Why a server is not read; undefined if it is. */
  skip?(server: BranchNode): string | undefined
  /** Converts what only this client writes in another way. */
  change?(server: BranchNode, name: string): BranchNode
}

/** Converts a client's servers. A note says how many of the client's other settings are ignored. */
export function clientServers(
  { tree, servers, format, called, known = [], skip, change = (server) => server }: ClientFile,
  report: TranslationReport,
): BranchNode {
  const isRead = ([name, server]: readonly [string, ConfigTree]) => {
    const reason = server.kind === 'branch' ? skip?.(server) : undefined
    if (reason !== undefined) report.warnings.push(`the server ${name} is ignored: ${reason}`)
    return reason === undefined
  }
  const read =
    servers?.kind === 'branch' ? { ...servers, members: new Map([...servers.members].filter(isRead)) } : servers
  const shaped = shape(tree.at, { mcpServers: read })
  report.notes.push(`read as ${called}: ${pluralize(serverNodes(shaped).size, 'server')}`)
  const others = [...tree.members].filter(
    ([key, entry]) => entry !== servers && key !== '$schema' && !known.includes(key),
  )
  if (others.length > 0) report.notes.push(`${pluralize(others.length, 'setting')} from ${format.label} ignored`)
  return mapServers(shaped, (server, name) => clientServer(change(server, name), name, format, report))
}

/** Rewrites another program's variable references to Toolway's syntax. */
export type RewriteVariable = (text: string) => string

/** Rewrites OpenCode's `{env:NAME}` and `{file:PATH}`. */
export const bracedVariables: RewriteVariable = (text) =>
  escapeVariables(text)
    .replace(/\{env:([A-Za-z_]\w*)\}/g, (_, name: string) => `\${${name}}`)
    .replace(/\{file:([^{}]+)\}/g, (_, path: string) => `\${file:${path}}`)

/** Rewrites Gemini CLI's `$NAME`; its `${NAME}` needs no change. */
export const bareVariables: RewriteVariable = (text) =>
  text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, (_, name: string) => `\${${name}}`)

/**
 * Replaces the variables that an editor defines, such as folders. If the workspace is unknown, `${workspaceFolder}`
 * stays a variable that the user must set. Other editor variables are rejected later, during interpolation.
 */
export const editorVariables = (workspace: string | undefined): RewriteVariable => {
  const separator = process.platform === 'win32' ? '\\' : '/'
  const known: Readonly<Record<string, string>> = {
    userHome: process.platform === 'win32' ? '${USERPROFILE}' : '${HOME}',
    pathSeparator: separator,
    '/': separator,
    ...(workspace !== undefined && {
      workspaceFolder: escapeVariables(workspace),
      workspaceRoot: escapeVariables(workspace),
      cwd: escapeVariables(workspace),
      workspaceFolderBasename: escapeVariables(basename(workspace)),
    }),
  }
  return (text) =>
    text.replace(/(?<!\$)\$\{([\w/]+)\}/g, (written, name: string) =>
      Object.hasOwn(known, name) ? (known[name] as string) : written,
    )
}

/** The variable for an editor's input: `${input:api-key}` becomes `${INPUT_API_KEY}`. */
export const inputVariable = (id: string): string => `INPUT_${id.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`
