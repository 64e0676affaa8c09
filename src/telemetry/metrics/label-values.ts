/** What every value is called that came too late for a name of its own. */
export const other = 'other'

/** Longer names are cut: a page of bounded many labels must not be unbounded by their length. */
const longest = 120
/** And what nobody could have meant as a name is not even remembered. */
const absurd = 1000

export interface LabelValuesOptions {
  /** How many different values get a label of their own. */
  readonly most: number
  /** Names of ours: they have labels from the beginning, and are no secret. */
  readonly own?: readonly string[]
  redact(text: string): string
}

/**
 * Gives names of tools, agents and the like a label each, until there are enough of them; all the others are `other`.
 * What a name is called is decided when it is first met and stays, so that no series ever changes its meaning.
 */
export function labelValues({ most, own = [], redact }: LabelValuesOptions): (name: string) => string {
  const known = new Map<string, string>(own.map((name) => [name, name]))
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    // Nothing is remembered of those that come too late: they may be any number.
    if (known.size >= most || name.length > absurd) return other
    const value = shortened(redact(name))
    known.set(name, value)
    return value
  }
}

/** Half of a surrogate pair would become another character on the wire, and two series might become one. */
const shortened = (text: string): string =>
  (text.length <= longest ? text : `${text.slice(0, longest - 1)}…`).toWellFormed()
