import { isDisabled } from './interpolate.ts'
import { fits, keyPath, type Path, type Tree } from './tree.ts'

/** A key that is accepted although its feature comes later. */
export interface InactiveKey {
  readonly key: string
  readonly feature: string
}

interface Row {
  readonly keys: readonly string[]
  readonly feature: string
  /** Only these values are ahead of their time. */
  readonly values?: readonly unknown[]
}

/** What is accepted but not active yet; a feature that lands takes its row away. */
const table: readonly Row[] = [{ feature: 'audit in PostgreSQL', keys: ['stores.postgres'] }]

/** The keys of a document that are accepted but have no effect yet. What is disabled or empty asks for nothing. */
export function inactiveKeys(tree: Tree): InactiveKey[] {
  const found: InactiveKey[] = []
  const visit = (part: Tree, path: Path) => {
    const row = table.find(({ keys }) => keys.some((pattern) => fits(pattern, path)))
    if (row && asksForSomething(part, row)) {
      const value = row.values && part.kind === 'leaf' ? ` (${part.value})` : ''
      found.push({ key: keyPath(path), feature: `${row.feature}${value}` })
    }
    if (row || isDisabled(part)) return
    if (part.kind === 'branch') for (const [key, { value }] of part.members) visit(value, [...path, key])
    if (part.kind === 'list') for (const [index, item] of part.items.entries()) visit(item, [...path, index])
  }
  visit(tree, [])
  return found
}

function asksForSomething(part: Tree, { values }: Row): boolean {
  if (part.kind === 'leaf') return values ? values.includes(part.value) : part.value !== null && part.value !== false
  if (part.kind === 'list') return part.items.length > 0
  const sections = [...part.members.values()].map(({ value }) => value)
  return (
    sections.length > 0 &&
    !isDisabled(part) &&
    !sections.every((section) => section.kind === 'branch' && isDisabled(section))
  )
}
