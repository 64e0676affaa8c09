/** Caches results by their input text. A full cache is cleared; input longer than `maxLength` is not cached. */
export function memoize<T>(compute: (text: string) => T, maxEntries = 4096, maxLength = 512): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before
    const result = compute(text)
    if (text.length > maxLength) return result
    if (known.size >= maxEntries) known.clear()
    known.set(text, result)
    return result
  }
}
