import { basename } from 'node:path'
import { pluralize } from '../../lib/message-text.ts'
import { type BranchNode, find, leaf, mapServers, member, withMember } from '../tree.ts'
import { membersOf, shape, type TranslationReport } from './shape.ts'

export const rulesName = '.mcp-gateway-rules.json'

/** Recognizes an agent gateway's rules file by its name or by `defaults.deny_on_missing_agent`. */
export const isRules = (tree: BranchNode): boolean =>
  basename(tree.at.file.path) === rulesName || find(tree, ['defaults', 'deny_on_missing_agent']) !== undefined

/** Converts a rules file. Callers must name an agent, unless `deny_on_missing_agent` is false. */
export function translateRules(tree: BranchNode, report: TranslationReport): BranchNode {
  const members = membersOf(tree, ['agents', 'defaults', '$schema'], report)
  const defaults = members.get('defaults')
  const deny = membersOf(defaults?.value, ['deny_on_missing_agent'], report).get('deny_on_missing_agent')
  const agents = members.get('agents')
  const number = agents?.value.kind === 'branch' ? agents.value.members.size : 0
  report.notes.push(
    `read as an agent gateway's rules: ${pluralize(number, 'agent')}; each agent of each session gets its own connection (session: caller) unless a server sets session`,
  )
  return shape(tree.at, {
    agents,
    // In this format, an agent's `allow.tools` applies only to servers that `allow.servers` also lists.
    policy: shape(tree.at, { toolsNeedServer: leaf(tree.at, true) }),
    defaults: {
      at: defaults?.at ?? tree.at,
      value: shape(defaults?.value.at ?? tree.at, { denyOnMissingAgent: deny ?? leaf(tree.at, true) }),
    },
  })
}

/** Gives each caller its own connection, except to servers that set `session` (docs/decisions/0055). */
export const withCallerSessions = (tree: BranchNode): BranchNode =>
  mapServers(tree, (server, _, at) =>
    server.members.has('session') ? server : withMember(server, 'session', member(leaf(at, 'caller'))),
  )
