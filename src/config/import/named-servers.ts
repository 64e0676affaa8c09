import { problemAt } from '../problems.ts'
import { type Branch, branch, type Member, type Tree } from '../tree.ts'
import type { Report } from './report.ts'

/** Turns a list of `{name, …}` into servers by name, as two of the dialects write them. */
export function namedServers(
  servers: Tree | undefined,
  translate: (name: string, fields: ReadonlyMap<string, Member>, entry: Branch) => Branch,
  report: Report,
): Branch | undefined {
  if (servers === undefined) return undefined
  const named = new Map<string, Member>()
  if (servers.kind !== 'list') {
    if (servers.kind !== 'leaf' || servers.value !== null) {
      report.problems.push(problemAt(servers.at, 'expected a list of servers'))
    }
    return branch(servers.at, named)
  }
  for (const entry of servers.items) {
    const name = entry.kind === 'branch' ? entry.members.get('name')?.value : undefined
    if (entry.kind !== 'branch' || name?.kind !== 'leaf' || typeof name.value !== 'string' || name.value === '') {
      report.problems.push(problemAt(name?.at ?? entry.at, 'expected a server with a name'))
    } else if (named.has(name.value)) {
      report.problems.push(problemAt(name.at, `a second server is called ${name.value}; give it another name`))
    } else {
      const fields = new Map(entry.members)
      fields.delete('name')
      named.set(name.value, { at: name.at, value: translate(name.value, fields, entry) })
    }
  }
  return branch(servers.at, named)
}
