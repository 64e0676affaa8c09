import { basename } from 'node:path'
import { pluralize } from '../../lib/message-text.ts'
import {
  type BranchNode,
  type ConfigTree,
  find,
  keyLocation,
  leaf,
  mapServers,
  membersIn,
  withKeyAt,
  withMember,
} from '../tree.ts'
import { normaliseServer, serverKeys } from './aliases.ts'
import {
  expectedMembers,
  type FormatReader,
  isTrue,
  namedServers,
  otherSections,
  shape,
  type TranslationReport,
} from './shape.ts'

/** A file with `mcp_endpoints: [{name, endpoint, auth_token, read_only, enabled}]`. */
export const endpoints: FormatReader = {
  dialect: 'mcp-endpoints',
  recognises: ({ members }) => members.has('mcp_endpoints'),
  translate: translateEndpoints,
}

const known = ['endpoint', 'auth_token', 'read_only', 'read_tools', 'enabled']

function translateEndpoints(tree: BranchNode, report: TranslationReport): BranchNode {
  otherSections(tree, ['mcp_endpoints'], report)
  const translate = (name: string, fields: BranchNode): BranchNode => {
    const members = Object.fromEntries(expectedMembers(fields, [...known, ...serverKeys], report))
    const { endpoint, url, auth_token, read_only, read_tools, ...rest } = members
    const address = endpoint ?? url
    const token = auth_token && !isEmpty(auth_token) ? auth_token : undefined
    const server = shape(fields.at, {
      ...rest,
      ...(address && { url: withPath(address) }),
      ...(token && { auth: shape(keyLocation(token), { type: leaf(keyLocation(token), 'bearer'), token }) }),
      ...(read_tools && { readTools: read_tools }),
      // Files in this format rarely list the tools that read, so trust the server's annotations.
      ...(read_only && { readOnly: read_only, trustAnnotations: rest.trustAnnotations ?? read_only }),
    })
    return normaliseServer(server, name, report)
  }
  const servers = namedServers(find(tree, ['mcp_endpoints']), translate, report)
  report.notes.push(`read as an mcp_endpoints file: ${pluralize(membersIn(servers).size, 'server')}`)
  const trusted = [...membersIn(servers)].filter(([, server]) => isTrue(find(server, ['readOnly'])))
  if (trusted.length > 0) {
    const names = trusted.map(([name]) => name).join(', ')
    report.notes.push(
      `read_only: tools from ${names} count as reads if they have readOnlyHint (trustAnnotations: true) or read_tools lists them; no other tools can be used`,
    )
  }
  return shape(tree.at, { mcpServers: servers })
}

/** Adds /mcp to an endpoint without a path, after interpolation because a variable may contain the endpoint. */
function withPath(part: ConfigTree): ConfigTree {
  if (part.kind !== 'leaf' || typeof part.value !== 'string') return part
  return { ...part, finish: (url) => (/^https?:\/\/[^/?#]+\/?$/i.test(url) ? `${url.replace(/\/$/, '')}/mcp` : url) }
}

const isEmpty = (part: ConfigTree) => part.kind === 'leaf' && (part.value === null || part.value === '')

export const rulesName = '.mcp-gateway-rules.json'

/**
 * An agent gateway's rules, recognized by the file's name or by `defaults.deny_on_missing_agent`. Callers must name an
 * agent, unless that is false.
 */
export const gatewayRules: FormatReader = {
  dialect: 'gateway-rules',
  recognises: (tree) =>
    basename(tree.at.file.path) === rulesName || find(tree, ['defaults', 'deny_on_missing_agent']) !== undefined,
  translate(tree, report) {
    const members = expectedMembers(tree, ['agents', 'defaults', '$schema'], report)
    const defaults = members.get('defaults')
    const deny = expectedMembers(defaults, ['deny_on_missing_agent'], report).get('deny_on_missing_agent')
    const agents = members.get('agents')
    report.notes.push(
      `read as an agent gateway's rules: ${pluralize(membersIn(agents).size, 'agent')}; each agent of each session gets its own connection (session: caller) unless a server sets session`,
    )
    const at = defaults?.at ?? tree.at
    return shape(tree.at, {
      agents,
      // In this format, an agent's `allow.tools` applies only to servers that `allow.servers` also lists.
      policy: shape(tree.at, { toolsNeedServer: leaf(tree.at, true) }),
      defaults: withKeyAt(
        shape(at, { denyOnMissingAgent: deny ?? leaf(tree.at, true) }),
        defaults ? keyLocation(defaults) : tree.at,
      ),
    })
  },
}

/** Gives each caller its own connection, except to servers that set `session` (docs/decisions/0055). */
export const withCallerSessions = (tree: BranchNode): BranchNode =>
  mapServers(tree, (server) =>
    server.members.has('session') ? server : withMember(server, 'session', leaf(keyLocation(server), 'caller')),
  )
