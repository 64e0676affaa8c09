import { countServers, mapServers } from '../map-servers.ts'
import { type Branch, branch, type Member } from '../tree.ts'
import { clientServer } from './client-server.ts'
import type { Manner } from './manner.ts'
import { count, type Report } from './report.ts'
import { shape } from './shape.ts'

/** What a client's file comes down to. */
interface ClientFile {
  readonly tree: Branch
  /** The part that holds its servers by name. */
  readonly servers: Member | undefined
  readonly manner: Manner
  /** How the note calls the file. */
  readonly called: string
  /** Top-level keys that are about servers, too. */
  readonly known?: readonly string[]
}

/** The servers of a client's file in our own shape. Its other settings are its own: they are left aside, and counted. */
export function clientServers({ tree, servers, manner, called, known = [] }: ClientFile, report: Report): Branch {
  const shaped = shape(tree.at, { mcpServers: servers })
  report.notes.push(`read as ${called}: ${count(countServers(shaped), 'server')}`)
  const others = [...tree.members].filter(
    ([key, entry]) => entry !== servers && key !== '$schema' && !known.includes(key),
  )
  if (others.length > 0) report.notes.push(`${count(others.length, 'setting')} of ${manner.label} itself left aside`)
  return mapServers(shaped, (server, name) => clientServer(server, name, manner, report))
}

/** The same section without the servers for which there is a reason; each reason is said. */
export function withoutThose(
  servers: Member | undefined,
  reasonFor: (server: Branch, name: string) => string | undefined,
  report: Report,
): Member | undefined {
  if (servers?.value.kind !== 'branch') return servers
  const kept = [...servers.value.members].filter(([name, { value }]) => {
    const reason = value.kind === 'branch' ? reasonFor(value, name) : undefined
    if (reason !== undefined) report.warnings.push(`the server ${name} is left out: ${reason}`)
    return reason === undefined
  })
  return { at: servers.at, value: branch(servers.value.at, kept) }
}
