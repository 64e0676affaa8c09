import { createHash } from 'node:crypto'
import { serverName } from '../schema/mcp-servers.ts'
import { type BranchNode, branch, type TreeMember, withMember } from '../tree.ts'
import { plainName } from '../validate.ts'
import type { TranslationReport } from './shape.ts'

/** Renames servers whose names are invalid in Toolway, with a note: some clients allow sentences or URLs as names. */
export function withPlainNames(tree: BranchNode, report: TranslationReport): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.value.kind !== 'branch') return tree
  const renamed = new Map<string, TreeMember>()
  for (const [name, entry] of servers.value.members) {
    const other = validName(name)
    if (other !== name) report.notes.push(`the server ${name} was renamed to ${other}`)
    renamed.set(other, entry)
  }
  return withMember(tree, 'mcpServers', { at: servers.at, value: branch(servers.value.at, renamed) })
}

/**
 * Replaces an invalid name by a valid one that depends only on it. The hash keeps it apart from other servers, also in
 * other files: servers with one name are merged, and rules and pins refer to a server by its name.
 */
export function validName(name: string): string {
  if (serverName.safeParse(name).success) return name
  // JSON is unambiguous for any characters, including lone surrogates.
  const hash = createHash('sha256').update(JSON.stringify(name)).digest('hex').slice(0, 8)
  return `${readable(name).slice(0, 55)}-${hash}`
}

/** The valid characters of a name. For a path, prefers the last segment, which is the most specific. */
function readable(name: string): string {
  const last = name.split('/').at(-1) ?? ''
  if (/^[A-Za-z]/.test(last) && plainName(last) === undefined) return last
  return plainName(name) ?? (/^[A-Za-z0-9]/.test(name) ? name : 'server')
}
