/** Whether text matches a pattern with `*` for any text. */
export const matches = (pattern: string, text: string): boolean => compilePattern(pattern)(text)

export type Matches = (text: string) => boolean

/** Compiles a pattern that is used many times. Matching takes linear time, because callers can choose patterns. */
export function compilePattern(pattern: string): Matches {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return (text) => text === pattern
  const middle = rest.filter((part) => part !== '')
  const shortest = first.length + last.length
  if (middle.length === 0) {
    if (shortest === 0) return () => true
    if (last === '') return (text) => text.startsWith(first)
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
