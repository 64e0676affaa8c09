import type { Definition } from '../core/entry.ts'
import { hiddenCharacters, withoutHidden } from '../core/hidden-characters.ts'
import type { Listed } from './sound-definition.ts'

/** A definition as clients are shown it, and why it cannot be shown at all, if so. */
export interface Shown {
  /** The same object where nothing had to be changed. */
  readonly definition: Definition
  readonly problem?: string
}

/** Which members name the thing itself: calls need them as the server spells them. */
const identities: Readonly<Record<Listed, readonly string[]>> = {
  tool: ['name'],
  resource: ['uri'],
  template: ['uriTemplate'],
  prompt: ['name'],
}

/** Members of schemas whose values callers must send or schemas refer to as they are. */
const verbatim: ReadonlySet<string> = new Set([
  'enum',
  'const',
  'pattern',
  'required',
  '$ref',
  '$dynamicRef',
  '$anchor',
])

/**
 * Takes characters that nobody sees out of every text of a definition (B5). What callers must spell exactly (names,
 * members, values to choose from) cannot be changed: a definition that hides something there is not offered.
 */
export function shownDefinition(kind: Listed, definition: Definition): Shown {
  let problem: string | undefined

  const exact = (text: string, where: string): string => {
    if (problem === undefined && hiddenCharacters(text).length > 0) problem = `its ${where} holds hidden characters`
    return text
  }

  const cleaned = (value: unknown, where: string, isExact: boolean): unknown => {
    if (typeof value === 'string') return isExact ? exact(value, where) : withoutHidden(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) {
      const items = value.map((item) => cleaned(item, where, isExact))
      return items.some((item, index) => item !== value[index]) ? items : value
    }
    let changed = false
    const members = Object.entries(value).map(([key, member]) => {
      const given = cleaned(member, exact(key, where), isExact || verbatim.has(key) || isArgumentName(where, key))
      changed ||= given !== member
      return [key, given]
    })
    return changed ? Object.fromEntries(members) : value
  }

  const isArgumentName = (where: string, key: string) => kind === 'prompt' && where === 'arguments' && key === 'name'

  let changed = false
  const members = Object.entries(definition).map(([key, member]) => {
    // For programs, which read it as it is.
    const given = key === '_meta' ? member : cleaned(member, key, identities[kind].includes(key))
    changed ||= given !== member
    return [key, given]
  })
  const shown = changed ? (Object.fromEntries(members) as Definition) : definition
  return problem === undefined ? { definition: shown } : { definition: shown, problem }
}
