export type Writer = ReturnType<typeof createWriter>

const maxIndent = 8

/** Assembles readable text: collapses whitespace, starts blocks on new lines, and stops at a maximum length. */
export function createWriter(maxCharacters: number) {
  const pieces: string[] = []
  let length = 0
  let breaks = 0
  let spaced = false
  let cells = 0
  const indents: string[] = []
  /** The number of indents that apply both before and after the pending line break. */
  let shared = 0
  const margin = (depth: number) => indents.slice(0, Math.min(depth, maxIndent)).join('')

  const put = (piece: string): void => {
    pieces.push(piece)
    length += piece.length
  }

  const settle = (): void => {
    const own = margin(indents.length)
    if (pieces.length === 0) put(own)
    else if (breaks > 0) put(breaks > 1 ? `\n${margin(shared).trimEnd()}\n${own}` : `\n${own}`)
    else if (spaced) put(' ')
    breaks = 0
    spaced = false
  }

  return {
    /** Appends text. With `verbatim`, whitespace and line breaks are kept. */
    text(text: string, verbatim = false) {
      if (length > maxCharacters) return
      if (verbatim && cells === 0) {
        if (text === '') return
        settle()
        return put(text.replaceAll('\n', `\n${margin(indents.length)}`))
      }
      const spelt = text.replace(/[\s\u00a0]+/g, ' ')
      const words = cells > 0 ? spelt.replaceAll('|', '\\|') : spelt
      if (words.startsWith(' ')) spaced = true
      const trimmed = words.trim()
      if (trimmed === '') return
      settle()
      put(trimmed)
      spaced = words.endsWith(' ')
    },
    /** Starts a new line before the text that follows; with `apart`, also leaves a blank line. */
    line(apart = false): void {
      if (cells > 0) spaced = true
      else {
        shared = breaks === 0 ? indents.length : Math.min(shared, indents.length)
        breaks = Math.max(breaks, apart ? 2 : 1)
      }
    },
    indent: (mark: string) => void indents.push(mark),
    outdent: () => void indents.pop(),
    /** Begins or ends a table cell. While a cell is open, everything stays on one line. */
    cell(open: boolean): void {
      cells = Math.max(0, cells + (open ? 1 : -1))
    },
    get inCell() {
      return cells > 0
    },
    mark: () => pieces.length,
    replace(from: number, change: (text: string) => string): void {
      const text = pieces.splice(from).join('')
      const changed = change(text)
      length += changed.length - text.length
      if (changed !== '') pieces.push(changed)
    },
    get full() {
      return length > maxCharacters
    },
    toString: () => pieces.join('').slice(0, maxCharacters),
  }
}
