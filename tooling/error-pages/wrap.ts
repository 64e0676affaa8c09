const width = 120

/** Words, and what stands between backticks as one. */
const unbroken = /(?:`[^`]*`|[^ `])+/g

/** Breaks prose into lines of the width that the other documents have. */
export function wrap(text: string, first = '', rest = ''): string {
  const lines: string[] = []
  let line = first
  let empty = true
  for (const word of text.match(unbroken) ?? []) {
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line)
      line = rest
      empty = true
    }
    line += empty ? word : ` ${word}`
    empty = false
  }
  return [...lines, line].join('\n')
}

/** A list with one point for each. */
export const points = (texts: readonly string[]): string => texts.map((text) => wrap(text, '- ', '  ')).join('\n')
