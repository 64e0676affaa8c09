/** The last lines of a text without end; they outlive the process that wrote them, because they may say why it is gone. */
export interface LastWords {
  push(line: string): void
  /** Oldest first. */
  lines(): readonly string[]
}

/** Enough for a stack trace and what led to it. */
const maxLines = 200

export function createLastWords(most = maxLines): LastWords {
  let kept: string[] = []
  return {
    push(line) {
      kept.push(line)
      // Cut now and then instead of every time.
      if (kept.length > 2 * most) kept = kept.slice(-most)
    },
    lines: () => kept.slice(-most),
  }
}
