const maxPattern = 200

/**
 * How well a text matches a pattern: 0 if not at all, higher is better. All words of the pattern must occur. The whole
 * text, its start, the start of a word and any part count more than letters with others between them.
 */
export function fuzzyScore(pattern: string, text: string): number {
  const offered = text.toLowerCase()
  let score = 0
  for (const word of pattern.slice(0, maxPattern).toLowerCase().split(/\s+/).filter(Boolean)) {
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
  const span = spanOf(word, text)
  return span === undefined ? 0 : (200 * word.length) / span + brevity
}

/** The length of the part of a text in which all letters occur in order, from the first place where they do. */
function spanOf(word: string, text: string): number | undefined {
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
