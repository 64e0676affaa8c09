import type { Branch } from '../tree.ts'
import type { Report } from './report.ts'

const ownName = 'toolway'

/**
 * An editor's file that we are to read usually points at us already, because that is how the editor reaches us.
 * That entry is left out, with its variables: Toolway is not behind itself.
 */
export function withoutOurselves(tree: Branch, report: Report): Branch {
  const servers = tree.members.get('mcpServers')?.value
  if (servers?.kind !== 'branch' || !servers.members.has(ownName)) return tree
  const others = new Map(servers.members)
  others.delete(ownName)
  const members = new Map(tree.members)
  const known = tree.members.get('mcpServers')
  if (known) members.set('mcpServers', { ...known, value: { ...servers, members: others } })
  report.notes.push('the server toolway is Toolway itself and was left out')
  return { ...tree, members }
}
