import { escapeVariables } from '../interpolate.ts'
import { problemAt } from '../problems.ts'
import {
  type BranchNode,
  branch,
  type ConfigTree,
  find,
  type LeafNode,
  leaf,
  mapLeaves,
  member,
  scalarAt,
  type TreeMember,
} from '../tree.ts'
import { folderOf } from './client-kind.ts'
import { clientServers, inUnit } from './client-server.ts'
import { type FormatReader, instead, mapText, shape, type TranslationReport } from './shape.ts'

/**
 * Codex's `config.toml`, which has `[mcp_servers.NAME]` tables among other settings. Settings that name environment
 * variables become `${NAME}` references.
 */
export const codex: FormatReader = {
  dialect: 'codex',
  recognises: ({ members }) => members.get('mcp_servers')?.value.kind === 'branch',
  translate(document, report) {
    const tree = mapLeaves(document, (part) => mapText(part, escapeVariables)) as BranchNode
    const servers = tree.members.get('mcp_servers')
    const change = (server: BranchNode, name: string) => codexServer(server, name, report)
    const format = { label: 'Codex', folder: folderOf(tree.at.file.path), tolerant: true }
    return clientServers({ tree, servers, format, called: "Codex's config.toml", change }, report)
  },
}

const aliasOf: Readonly<Record<string, string>> = { enabled_tools: 'includeTools', disabled_tools: 'excludeTools' }

function codexServer(server: BranchNode, name: string, report: TranslationReport): BranchNode {
  const members = new Map(server.members)
  const taken = (key: string): ConfigTree | undefined => {
    const found = members.get(key)?.value
    members.delete(key)
    return found
  }
  for (const [key, alias] of Object.entries(aliasOf)) {
    const entry = members.get(key)
    if (entry) members.set(alias, entry)
    members.delete(key)
  }
  const timeout = taken('tool_timeout_sec')
  if (timeout) members.set('timeout', member(inUnit(timeout, 's')))
  addVariables(members, 'env', forwarded(taken('env_vars'), name, report))
  const headers = taken('http_headers')
  if (headers) members.set('headers', member(headers))
  addVariables(members, 'headers', headerVariables(taken('env_http_headers'), report))
  const bearer = asVariable(taken('bearer_token_env_var'), report) ?? taken('bearer_token')
  const scopes = taken('scopes')
  const oauth = taken('oauth')
  if (bearer) members.set('auth', member(shape(bearer.at, { type: leaf(bearer.at, 'bearer'), token: bearer })))
  else if (scopes || oauth) {
    members.set('oauth', member(shape((scopes ?? oauth ?? server).at, { ...parts(oauth), scopes })))
  }
  if (taken('tools')) {
    report.warnings.push(`mcpServers.${name}.tools is ignored: Codex decides which calls need approval`)
  }
  return branch(server.at, members)
}

const parts = (section: ConfigTree | undefined): Record<string, TreeMember> =>
  section?.kind === 'branch' ? Object.fromEntries(section.members) : {}

/** A reference to the variable that a setting names. Other text must not become a reference. */
function asVariable(part: ConfigTree | undefined, report: TranslationReport): LeafNode | undefined {
  if (part?.kind !== 'leaf' || typeof part.value !== 'string') return undefined
  if (/^[A-Za-z_]\w*$/.test(part.value)) return instead(part, `\${${part.value}}`)
  report.problems.push(problemAt(part.at, 'expected the name of an environment variable'))
  return undefined
}

/** Converts `env_vars`, a list of variables to pass on to the server, each a name or `{name, source}`. */
function forwarded(part: ConfigTree | undefined, server: string, report: TranslationReport): [string, LeafNode][] {
  if (part?.kind !== 'list') return []
  return part.items.flatMap((item): [string, LeafNode][] => {
    const name = item.kind === 'branch' ? find(item, ['name']) : item
    const variable = asVariable(name, report)
    if (scalarAt(item, ['source']) === 'remote') {
      report.warnings.push(`mcpServers.${server}.env_vars: ignored a variable that comes from a remote machine`)
      return []
    }
    return variable && name?.kind === 'leaf' ? [[String(name.value), variable]] : []
  })
}

const headerVariables = (part: ConfigTree | undefined, report: TranslationReport): [string, LeafNode][] =>
  Object.entries(parts(part)).flatMap(([header, { value }]): [string, LeafNode][] => {
    const variable = asVariable(value, report)
    return variable ? [[header, variable]] : []
  })

/** Adds variables to a section; existing keys win. */
function addVariables(members: Map<string, TreeMember>, key: string, variables: readonly [string, LeafNode][]): void {
  const [first] = variables
  if (!first) return
  const section = members.get(key)?.value
  const own = section?.kind === 'branch' ? section.members : new Map<string, TreeMember>()
  const added = variables.map(([name, value]) => [name, member(value)] as const)
  members.set(key, member(branch(section?.at ?? first[1].at, [...added, ...own])))
}
