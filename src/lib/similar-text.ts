const maxWord = 64

/** Up to three candidates that a misspelt word may stand for, most similar first. */
export function nearMisses(word: string, candidates: Iterable<string>): string[] {
  // Ignore long words: they come from callers, and the comparison takes quadratic time.
  if (word.length > maxWord) return []
  const wanted = foldWord(word)
  const found: { candidate: string; distance: number }[] = []
  for (const candidate of new Set(candidates)) {
    const offered = foldWord(candidate)
    const allowed = Math.floor(Math.min(wanted.length, offered.length) / 3)
    const hopeless = candidate === word || candidate.length > maxWord || offered === ''
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
const foldWord = (word: string) => word.toLowerCase().replace(/[\s_.-]/g, '')

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

const maxFuzzyPattern = 200

/**
 * How well a text matches a pattern: 0 if not at all, higher is better. All words of the pattern must occur. The whole
 * text, its start, the start of a word and any part count more than letters with others between them.
 */
export function fuzzyScore(pattern: string, text: string): number {
  const offered = text.toLowerCase()
  let score = 0
  for (const word of pattern.slice(0, maxFuzzyPattern).toLowerCase().split(/\s+/).filter(Boolean)) {
    const found = scoreOfWord(word, offered)
    if (found === 0) return 0
    score += found
  }
  return score
}

function scoreOfWord(word: string, text: string): number {
  if (text === word) return 1000
  const at = text.indexOf(word)
  // Of two texts that match equally well, the shorter one is meant more often.
  const brevity = word.length / text.length
  if (at === 0) return 800 + brevity
  if (at > 0) return (/[\p{L}\p{N}]/u.test(text.charAt(at - 1)) ? 400 : 600) + brevity
  const span = lettersSpan(word, text)
  return span === undefined ? 0 : (200 * word.length) / span + brevity
}

/** The length of the part of a text in which all letters occur in order, from the first place where they do. */
function lettersSpan(word: string, text: string): number | undefined {
  let start = -1
  let from = 0
  for (const letter of word) {
    const at = text.indexOf(letter, from)
    if (at < 0) return undefined
    if (start < 0) start = at
    from = at + letter.length
  }
  return from - start
}
