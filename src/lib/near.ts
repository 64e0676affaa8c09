const maxLength = 64

/** Up to three candidates that a misspelt word may stand for, most similar first. */
export function nearMisses(word: string, candidates: Iterable<string>): string[] {
  // Ignore long words: they come from callers, and the comparison takes quadratic time.
  if (word.length > maxLength) return []
  const wanted = folded(word)
  const found: { candidate: string; distance: number }[] = []
  for (const candidate of new Set(candidates)) {
    const offered = folded(candidate)
    const allowed = Math.floor(Math.min(wanted.length, offered.length) / 3)
    const hopeless = candidate === word || candidate.length > maxLength || offered === ''
    if (hopeless || Math.abs(offered.length - wanted.length) > allowed) continue
    const distance = editDistance(wanted, offered)
    if (distance <= allowed) found.push({ candidate, distance })
  }
  const least = Math.min(...found.map(({ distance }) => distance))
  return found
    .filter(({ distance }) => distance <= least + 1)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}

export const nearMiss = (word: string, candidates: Iterable<string>): string | undefined =>
  nearMisses(word, candidates)[0]

/** The end of a sentence: `; did you mean "a" or "b"?`, or `otherwise` if no candidate is similar. */
export function didYouMean(word: string, candidates: Iterable<string>, otherwise = '.'): string {
  const near = nearMisses(word, candidates)
  return near.length === 0 ? otherwise : `; did you mean ${near.map((name) => `"${name}"`).join(' or ')}?`
}

/** Ignores case and separators, where most mistakes occur: read_only and readonly both mean readOnly. */
const folded = (word: string) => word.toLowerCase().replace(/[\s_.-]/g, '')

export function editDistance(from: string, to: string): number {
  let before: number[] = []
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let least = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) least = Math.min(least, before[column - 2]! + 1)
      current.push(least)
    }
    before = previous
    previous = current
  }
  return previous[to.length]!
}
