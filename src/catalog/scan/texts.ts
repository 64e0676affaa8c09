/** One text of a definition and where it stands. */
export interface DefinitionText {
  readonly where: string
  readonly text: string
}

export interface DefinitionTexts {
  readonly texts: readonly DefinitionText[]
  /** Whether something was left out because there is too much of it, or because it lies too deep. */
  readonly cut: boolean
}

/** More than any definition for a model's context should hold. */
const maxCharacters = 262_144
const maxTexts = 20_000
const maxDepth = 64

/** Every text of a definition: values and names of members, at any depth. `_meta` is for programs and changes freely. */
export function textsOf(
  definition: Readonly<Record<string, unknown>>,
  skipped: ReadonlySet<string> = none,
): DefinitionTexts {
  const texts: DefinitionText[] = []
  let characters = 0
  let cut = false

  const add = (where: string, text: string) => {
    const room = maxCharacters - characters
    if (texts.length >= maxTexts || room <= 0) {
      cut = true
      return
    }
    if (text.length > room) cut = true
    texts.push({ where, text: text.length > room ? text.slice(0, room) : text })
    characters += text.length
  }

  const walk = (value: unknown, where: string, depth: number): void => {
    if (typeof value === 'string') add(where, value)
    if (typeof value !== 'object' || value === null) return
    if (depth > maxDepth || cut) {
      cut = true
      return
    }
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) walk(item, `${where}[${index}]`, depth + 1)
      return
    }
    for (const [key, item] of Object.entries(value)) {
      if ((depth === 0 && key === '_meta') || skipped.has(key)) continue
      const inside = where === '' ? key : `${where}.${key.slice(0, maxKey)}`
      // Words of the protocol and of JSON Schema say nothing; names that the server chose may.
      if (!isPlainKey(key)) add(inside, key)
      walk(item, inside, depth + 1)
    }
  }

  walk(definition, '', 0)
  return { texts, cut }
}

const none: ReadonlySet<string> = new Set()
const maxKey = 100

/** A key too short to say anything, made of letters alone. */
const isPlainKey = (key: string): boolean => key.length < 16 && /^[A-Za-z$][A-Za-z0-9]*$/.test(key)
