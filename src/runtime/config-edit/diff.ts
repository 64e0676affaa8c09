import { lineDiff, type MarkedLine } from '../../catalog/pins/definition-diff.ts'

export type ShownLine = MarkedLine | readonly ['…', '']

const contextLines = 3

/** The lines that differ, with a few lines around them; `…` stands for omitted equal lines. */
export function diffOf(before: string, after: string): ShownLine[] {
  const lines = lineDiff(linesOf(before), linesOf(after))
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - contextLines), index + contextLines + 1).some(([mark]) => mark !== ' '),
  )
  return lines.flatMap((line, index): ShownLine[] => {
    if (near[index]) return [line]
    return near[index - 1] || index === 0 ? [['…', '']] : []
  })
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
