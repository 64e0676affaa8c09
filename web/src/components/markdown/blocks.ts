/** A block of Markdown. Its text may contain inline formatting, except in code. */
export type Block =
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | { readonly kind: 'list'; readonly start: number | undefined; readonly items: readonly (readonly Block[])[] }
  | { readonly kind: 'table'; readonly head: readonly Cell[]; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: 'rule' }

export interface Cell {
  readonly text: string
  readonly align: 'left' | 'center' | 'right' | undefined
}

/** How deep quotes and lists may be nested; deeper ones are text. Each level reads its lines once more. */
const maxDepth = 8

/** Parses Markdown in linear time. The text may end anywhere, as it does while a model is writing. */
export const parseBlocks = (source: string): readonly Block[] => blocksOf(source.replace(/\r\n?/g, '\n').split('\n'), 0)

function blocksOf(lines: readonly string[], depth: number): readonly Block[] {
  const blocks: Block[] = []
  let at = 0
  while (at < lines.length) {
    const read = isBlank(lines[at]) ? { end: at + 1 } : readBlock(lines, at, depth)
    if ('block' in read) blocks.push(read.block)
    at = read.end
  }
  return blocks
}

interface ReadBlock {
  readonly block: Block
  /** The line after the block. */
  readonly end: number
}

const readBlock = (lines: readonly string[], at: number, depth: number): ReadBlock =>
  readCode(lines, at) ??
  readHeading(lines, at) ??
  readRule(lines, at) ??
  (depth < maxDepth ? (readQuote(lines, at, depth) ?? readList(lines, at, depth)) : undefined) ??
  readTable(lines, at) ??
  readParagraph(lines, at, depth)

const fence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/

function readCode(lines: readonly string[], at: number): ReadBlock | undefined {
  const line = lines[at] as string
  const [opening, marks] = fence.exec(line) ?? []
  if (opening === undefined || marks === undefined) return undefined
  const indent = indentOf(line)
  let end = at + 1
  while (end < lines.length && !closes(lines[end] as string, marks)) end++
  const text = lines.slice(at + 1, end).map((one) => dedent(one, indent))
  return { block: { kind: 'code', language: line.slice(opening.length).trim(), text: text.join('\n') }, end: end + 1 }
}

/** Whether a line consists of at least as many of the same marks. */
function closes(line: string, marks: string): boolean {
  const trimmed = line.trim()
  return indentOf(line) < 4 && trimmed.length >= marks.length && consistsOf(trimmed, marks[0] as string)
}

function consistsOf(text: string, character: string): boolean {
  for (const one of text) if (one !== character) return false
  return true
}

function readHeading(lines: readonly string[], at: number): ReadBlock | undefined {
  const line = lines[at] as string
  const [whole, marks] = /^ {0,3}(#{1,6})(?=\s|$)/.exec(line) ?? []
  if (whole === undefined || marks === undefined) return undefined
  const content = line.slice(whole.length).trim()
  let end = content.length
  while (content[end - 1] === '#') end--
  // Marks at the end belong to the text unless a space separates them from it.
  const text = end === 0 || /\s/.test(content[end - 1] as string) ? content.slice(0, end).trimEnd() : content
  return { block: { kind: 'heading', level: marks.length, text }, end: at + 1 }
}

function readRule(lines: readonly string[], at: number): ReadBlock | undefined {
  const line = lines[at] as string
  if (indentOf(line) > 3 || !/^\s*[-*_]/.test(line)) return undefined
  const marks = line.replace(/\s/g, '')
  return marks.length >= 3 && consistsOf(marks, marks[0] as string)
    ? { block: { kind: 'rule' }, end: at + 1 }
    : undefined
}

const quoteMark = /^ {0,3}> ?/

function readQuote(lines: readonly string[], at: number, depth: number): ReadBlock | undefined {
  let end = at
  while (quoteMark.test(lines[end] ?? '')) end++
  if (end === at) return undefined
  const inner = lines.slice(at, end).map((line) => line.replace(quoteMark, ''))
  return { block: { kind: 'quote', blocks: blocksOf(inner, depth + 1) }, end }
}

interface ListMark {
  /** `-`, `*` or `+`; `.` or `)` for numbers. */
  readonly sign: string
  readonly start: number | undefined
  /** The column of the mark and that of the text after it. */
  readonly column: number
  readonly textColumn: number
}

function listMark(line: string | undefined): ListMark | undefined {
  const [whole, space, mark, gap] = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}(?! )| |\t|$)/.exec(line ?? '') ?? []
  if (whole === undefined || space === undefined || mark === undefined) return undefined
  const isNumber = mark.length > 1
  return {
    sign: mark.at(-1) as string,
    start: isNumber ? Number(mark.slice(0, -1)) : undefined,
    column: space.length,
    textColumn: space.length + mark.length + Math.max(1, gap?.length ?? 0),
  }
}

function readList(lines: readonly string[], at: number, depth: number): ReadBlock | undefined {
  const first = listMark(lines[at])
  if (!first) return undefined
  const items: (readonly Block[])[] = []
  let end = at
  for (
    let mark = listMark(lines[end]);
    mark?.sign === first.sign && !readRule(lines, end);
    mark = listMark(lines[end])
  ) {
    const itemEnd = endOfItem(lines, end, mark)
    const { textColumn } = mark
    const inner = lines
      .slice(end, itemEnd)
      .map((line, index) => (index === 0 ? line.slice(textColumn) : dedent(line, textColumn)))
    items.push(blocksOf(inner, depth + 1))
    end = skipBlank(lines, itemEnd)
  }
  return items.length === 0 ? undefined : { block: { kind: 'list', start: first.start, items }, end }
}

/**
 * The line after an item: the first one that is not indented and follows a blank line or begins a block. Two columns are
 * enough, because models rarely indent by the width of a number.
 */
function endOfItem(lines: readonly string[], start: number, { column }: ListMark): number {
  let at = start + 1
  while (at < lines.length) {
    const next = skipBlank(lines, at)
    const line = lines[next]
    if (line === undefined) return at
    const isIndented = indentOf(line) >= column + 2
    if (!isIndented && (next > at || listMark(line) || beginsBlock(lines, at))) return at
    at = next + 1
  }
  return at
}

function skipBlank(lines: readonly string[], from: number): number {
  let at = from
  while (at < lines.length && isBlank(lines[at])) at++
  return at
}

function readTable(lines: readonly string[], at: number): ReadBlock | undefined {
  if (!isTable(lines, at)) return undefined
  const aligns = cellsOf(lines[at + 1] as string).map(alignOf)
  const rowOf = (line: string): readonly Cell[] =>
    cellsOf(line).map((text, column) => ({ text, align: aligns[column] }))
  let end = at + 2
  while (end < lines.length && !isBlank(lines[end]) && lines[end]?.includes('|')) end++
  const rows = lines.slice(at + 2, end).map(rowOf)
  return { block: { kind: 'table', head: rowOf(lines[at] as string), rows }, end }
}

/** Whether a header and a delimiter row with as many cells begin here. */
function isTable(lines: readonly string[], at: number): boolean {
  const [head, delimiter] = [lines[at], lines[at + 1]]
  if (!head?.includes('|') || !delimiter?.includes('-') || /[^\s|:-]/.test(delimiter)) return false
  const cells = cellsOf(delimiter)
  return cells.every((cell) => /^:?-+:?$/.test(cell)) && cellsOf(head).length === cells.length
}

function alignOf(cell: string): Cell['align'] {
  if (cell.endsWith(':')) return cell.startsWith(':') ? 'center' : 'right'
  return cell.startsWith(':') ? 'left' : undefined
}

/** The cells of a row. A backslash before `|` makes it part of the cell. */
function cellsOf(line: string): readonly string[] {
  const cells: string[] = []
  let cell = ''
  for (let at = 0; at < line.length; at++) {
    const isEscaped = line[at] === '\\' && line[at + 1] === '|'
    if (isEscaped) at++
    if (line[at] === '|' && !isEscaped) {
      cells.push(cell)
      cell = ''
    } else cell += line[at]
  }
  cells.push(cell)
  const trimmed = cells.map((cell) => cell.trim())
  if (trimmed.length > 1 && trimmed[0] === '') trimmed.shift()
  if (trimmed.length > 1 && trimmed.at(-1) === '') trimmed.pop()
  return trimmed
}

function readParagraph(lines: readonly string[], at: number, depth: number): ReadBlock {
  let end = at + 1
  while (end < lines.length && !isBlank(lines[end]) && !(depth < maxDepth && beginsBlock(lines, end))) end++
  const text = lines.slice(at, end).map((line) => line.trim())
  return { block: { kind: 'paragraph', text: text.join('\n') }, end }
}

/** Whether a block begins here that ends a paragraph. A number other than 1, as in "2024.", does not begin a list. */
function beginsBlock(lines: readonly string[], at: number): boolean {
  const line = lines[at] as string
  return (
    fence.test(line) ||
    /^ {0,3}#{1,6}\s/.test(line) ||
    quoteMark.test(line) ||
    /^ {0,3}(?:[-*+]|1[.)])\s+\S/.test(line) ||
    readRule(lines, at) !== undefined ||
    isTable(lines, at)
  )
}

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === ''

/** The width of the white space at the beginning; a tab counts as four columns. */
function indentOf(line: string): number {
  let width = 0
  for (const character of line) {
    if (character === ' ') width++
    else if (character === '\t') width += 4
    else break
  }
  return width
}

/** Removes white space of this width, or less if there is less. */
function dedent(line: string, columns: number): string {
  let width = 0
  let at = 0
  while (width < columns && (line[at] === ' ' || line[at] === '\t')) width += line[at++] === '\t' ? 4 : 1
  return line.slice(at)
}
