import { countServers, mapServers } from '../map-servers.ts'
import type { Branch } from '../tree.ts'
import { normaliseServer } from './aliases.ts'
import { count, type Report } from './report.ts'

/** Whether a file is the plain kind that other clients share: servers and nothing else. */
export const isPlain = ({ members }: Branch): boolean =>
  members.has('mcpServers') && [...members.keys()].every((key) => key === 'mcpServers' || key === '$schema')

/** Our own shape, which is also that of a plain `{"mcpServers": …}` file, with other clients' spellings of server keys. */
export function translateOwn(tree: Branch, report: Report): Branch {
  const kind = isPlain(tree) ? 'a plain mcpServers file' : "Toolway's own configuration"
  report.notes.push(`read as ${kind}: ${count(countServers(tree), 'server')}`)
  return mapServers(tree, (server, name) => normaliseServer(server, name, report))
}
