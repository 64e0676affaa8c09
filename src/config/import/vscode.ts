import { countServers, mapServers } from '../map-servers.ts'
import type { Branch } from '../tree.ts'
import { normaliseServer } from './aliases.ts'
import { count, type Report } from './report.ts'
import { membersOf, shape } from './shape.ts'

/** An editor's `mcp.json`: `{"inputs": […], "servers": {…}}`. */
export const isVscode = ({ members }: Branch): boolean =>
  members.get('servers')?.value.kind === 'branch' && !members.has('mcpServers')

/** Its servers are ours; what it would ask a person for has to come from variables. */
export function translateVscode(tree: Branch, report: Report): Branch {
  const members = membersOf(tree, ['servers', 'inputs', '$schema'], report)
  const inputs = members.get('inputs')?.value
  if (inputs?.kind === 'list' && inputs.items.length > 0) {
    report.warnings.push(
      'inputs are asked for by the editor and left aside; write ${NAME} where a server uses ${input:…}',
    )
  }
  const shaped = shape(tree.at, { mcpServers: members.get('servers') })
  report.notes.push(`read as an editor's mcp.json: ${count(countServers(shaped), 'server')}`)
  return mapServers(shaped, (server, name) => normaliseServer(server, name, report))
}
