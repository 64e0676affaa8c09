const longest = 64

/** The candidates that a misspelt word may have meant, nearest first: at most three, often none. */
export function nearMisses(word: string, candidates: Iterable<string>): string[] {
  // Words come from callers and the comparison is quadratic: nobody misspells a whole page.
  if (word === '' || word.length > longest) return []
  const wanted = word.toLowerCase()
  const found: { candidate: string; distance: number }[] = []
  for (const candidate of new Set(candidates)) {
    const offered = candidate.toLowerCase()
    const allowed = Math.max(1, Math.floor(Math.min(wanted.length, offered.length) / 3))
    if (candidate.length > longest || Math.abs(offered.length - wanted.length) > allowed) continue
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

/** `, did you mean "a" or "b"?` to end a sentence with, or `otherwise` where nothing comes near. */
export function didYouMean(word: string, candidates: Iterable<string>, otherwise = '.'): string {
  const near = nearMisses(word, candidates)
  return near.length === 0 ? otherwise : `; did you mean ${near.map((name) => `"${name}"`).join(' or ')}?`
}

/** Insertions, deletions, replacements and swapped neighbours between two words. */
function editDistance(from: string, to: string): number {
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
