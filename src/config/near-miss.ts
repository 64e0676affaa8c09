/** Edits between two words: insert, delete, replace, or swap two neighbours. */
export function distance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (last[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let best = Math.min(replace, (last[j] as number) + 1, (row[j - 1] as number) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] as number) + 1)
      }
      row.push(best)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] as number
}

/** Case and separators are what people get wrong most: read_only and readonly are readOnly. */
const folded = (word: string) => word.toLowerCase().replace(/[^a-z0-9]/g, '')

/** The candidate that was probably meant, if one is near enough. */
export function nearMiss(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > 64) return undefined
  const wanted = folded(word)
  let best: string | undefined
  let fewest = Math.min(3, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    const edits = distance(wanted, folded(candidate))
    if (edits < fewest && candidate !== word) {
      fewest = edits
      best = candidate
    }
  }
  return best
}
