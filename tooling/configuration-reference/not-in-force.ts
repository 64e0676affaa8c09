import { inactiveKeys } from '../../src/config/inactive.ts'
import { branch, leaf, list, member, type Tree } from '../../src/config/tree.ts'

/** What is said of keys that are accepted before their time: of the whole key, or of some of its values. */
export function notInForce(path: readonly string[], values: readonly string[] = []): string[] {
  if (path.length > 1 && isAhead(path.slice(0, 1), 'anything')) return saidOfItsSection
  const candidates = values.length === 0 ? ['anything'] : values
  const ahead = candidates.filter((value) => isAhead(path, value))
  if (ahead.length === 0) return []
  if (ahead.length === candidates.length) return ['**Not in force yet.**']
  return [`Not in force yet: ${ahead.map((value) => `\`${value}\``).join(', ')}.`]
}

const saidOfItsSection: string[] = []

const isAhead = (path: readonly string[], value: string): boolean => inactiveKeys(documentWith(path, value)).length > 0

/** The smallest document with this value at this place. */
function documentWith([part, ...rest]: readonly string[], value: string): Tree {
  const nowhere = { file: { path: '', text: '' }, offset: 0, key: '' }
  if (part === undefined) return leaf(nowhere, value)
  const inner = documentWith(rest, value)
  return part === '[]' ? list(nowhere, [inner]) : branch(nowhere, [[part, member(inner)]])
}
