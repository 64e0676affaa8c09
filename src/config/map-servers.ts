import { type Branch, branch, type Member, type Place } from './tree.ts'

/** The same section with one more member, or another one in its place. */
export const withMember = (section: Branch, key: string, value: Member): Branch =>
  branch(section.at, [...section.members, [key, value]])

/** The same document with each of its servers changed; `at` is where the server's name was written. */
export function mapServers(tree: Branch, change: (server: Branch, name: string, at: Place) => Branch): Branch {
  const servers = tree.members.get('mcpServers')
  if (servers?.value.kind !== 'branch') return tree
  const changed = [...servers.value.members].map(([name, { at, value }]) => {
    return [name, { at, value: value.kind === 'branch' ? change(value, name, at) : value }] as const
  })
  return withMember(tree, 'mcpServers', { at: servers.at, value: branch(servers.value.at, changed) })
}

/** How many servers a document has. */
export function countServers(tree: Branch): number {
  const servers = tree.members.get('mcpServers')?.value
  return servers?.kind === 'branch' ? servers.members.size : 0
}
