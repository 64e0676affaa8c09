import { nearMiss } from '../../core/near.ts'
import { unknownKeyAt } from '../issues.ts'
import { problemAt } from '../problems.ts'
import type { Branch } from '../tree.ts'
import type { Report } from './report.ts'

/** Leaving one of these aside would let through what somebody meant to forbid. */
const neverIgnored = ['agents', 'policy', 'auth', 'limits', 'mcpServers']

/** Sections beside the ones of a dialect belong to another program: they are left aside, and that is said. */
export function otherSections(tree: Branch, known: readonly string[], report: Report): void {
  const ignored: string[] = []
  for (const [key, { at }] of tree.members) {
    if (known.includes(key)) continue
    if (neverIgnored.includes(key)) {
      const message = `Toolway's own section ${key} has no effect beside ${known.find((name) => tree.members.has(name))}; put it into a file of its own and name both with --config`
      report.problems.push(problemAt(at, message))
    } else if (nearMiss(key, known) !== undefined) report.problems.push(unknownKeyAt(at, key, known))
    else ignored.push(key)
  }
  if (ignored.length > 0) {
    report.warnings.push(`${tree.at.file.path}: ${ignored.join(', ')} left aside: not about servers or their tools`)
  }
}
