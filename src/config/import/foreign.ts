import { nearMiss } from '../../lib/similar-text.ts'
import { problemAt } from '../problems.ts'
import { type BranchNode, branch, type ConfigTree, type TreeMember } from '../tree.ts'
import { unknownKeyAt } from '../validate.ts'
import type { TranslationReport } from './shape.ts'

/** Sections that cause an error, because ignoring one of them could allow what the author meant to forbid. */
const neverIgnored = ['agents', 'policy', 'auth', 'limits', 'mcpServers']

/**
 * Reports the sections that are not in `known`. Those in `neverIgnored`, and those whose names look like a misspelt
 * known name, are errors. All others belong to another program, so they are ignored with a warning.
 */
export function otherSections(tree: BranchNode, known: readonly string[], report: TranslationReport): void {
  const ignored: string[] = []
  for (const [key, { at }] of tree.members) {
    if (known.includes(key)) continue
    if (neverIgnored.includes(key)) {
      const message = `Toolway's own section ${key} has no effect in a file with ${known.find((name) => tree.members.has(name))}; put it in a separate file and pass both with --config`
      report.problems.push(problemAt(at, message))
    } else if (nearMiss(key, known) !== undefined) report.problems.push(unknownKeyAt(at, key, known))
    else ignored.push(key)
  }
  if (ignored.length > 0) {
    report.warnings.push(
      `${tree.at.file.path}: ${ignored.join(', ')} ignored: these settings do not concern servers or tools`,
    )
  }
}

/** Converts a list of `{name, …}` entries to servers. Two dialects list their servers in this form. */
export function namedServers(
  servers: ConfigTree | undefined,
  translate: (name: string, fields: ReadonlyMap<string, TreeMember>, entry: BranchNode) => BranchNode,
  report: TranslationReport,
): BranchNode | undefined {
  if (servers === undefined) return undefined
  const named = new Map<string, TreeMember>()
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
      report.problems.push(problemAt(name.at, `duplicate server name ${name.value}; choose another name`))
    } else {
      const fields = new Map(entry.members)
      fields.delete('name')
      named.set(name.value, { at: name.at, value: translate(name.value, fields, entry) })
    }
  }
  return branch(servers.at, named)
}
