/** A list of names and patterns, taken apart once so that a decision does not have to. */
export interface Patterns {
  /** Where the list has this very text; -1 where it does not. */
  exact(text: string): number
  /** Where the first pattern with a star stands that matches; -1 where none does. */
  wildcard(text: string): number
  /** Where the first of either kind stands. */
  first(text: string): number
}

/** Names are found by hash; patterns are tried one after the other, each in linear time. */
export function compilePatterns(written: readonly string[]): Patterns {
  const names = new Map<string, number>()
  const stars: { readonly index: number; readonly matches: (text: string) => boolean }[] = []
  written.forEach((text, index) => {
    if (text.includes('*')) stars.push({ index, matches: compilePattern(text) })
    else if (!names.has(text)) names.set(text, index)
  })
  const exact = (text: string) => names.get(text) ?? -1
  const wildcard = (text: string) => {
    for (const star of stars) if (star.matches(text)) return star.index
    return -1
  }
  return {
    exact,
    wildcard,
    first(text) {
      const name = exact(text)
      const star = name === 0 ? -1 : wildcard(text)
      return star < 0 || (name >= 0 && name < star) ? name : star
    },
  }
}

/** The same meaning as `matches` of core, for a pattern that is used many times. */
export function compilePattern(pattern: string): (text: string) => boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return (text) => text === pattern
  const middle = rest.filter((part) => part !== '')
  const shortest = first.length + last.length
  if (middle.length === 0) {
    if (shortest === 0) return () => true
    return (text) => text.length >= shortest && text.startsWith(first) && text.endsWith(last)
  }
  return (text) => {
    if (text.length < shortest || !text.startsWith(first) || !text.endsWith(last)) return false
    let from = first.length
    const end = text.length - last.length
    for (const part of middle) {
      const at = text.indexOf(part, from)
      if (at < 0 || at + part.length > end) return false
      from = at + part.length
    }
    return true
  }
}
