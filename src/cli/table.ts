import { stripVTControlCharacters } from 'node:util'
import { pluralize } from '../lib/message-text.ts'

export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string
  /** Never truncate this column, because users copy its values. */
  readonly whole?: boolean
  /** Colours a finished cell; must not change its width. */
  readonly style?: (cell: string, row: Row) => string
}

const gap = '  '
const minWidth = 6

/** Narrows the widest column, one character at a time, until the line fits. */
function narrow(columns: readonly { width: number; readonly whole?: boolean }[], available: number): void {
  const total = columns.reduce((sum, { width }) => sum + width, 0)
  for (let excess = total - available; excess > 0; excess--) {
    const shrinkable = columns.filter(({ whole, width }) => !whole && width > minWidth)
    if (shrinkable.length === 0) return
    shrinkable.reduce((widest, column) => (column.width > widest.width ? column : widest)).width--
  }
}

/** The lines of a table, at most `width` cells wide. Truncated text ends with `…`; empty columns are omitted. */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, heading = (title) => title }: { width: number; heading?: (title: string) => string },
): string[] {
  const filled = columns
    .map((column) => {
      const cells = rows.map((row) => oneLine(column.value(row)))
      const width = cells.reduce((max, cell) => Math.max(max, widthOf(cell)), column.title.length)
      return { ...column, cells, width }
    })
    .filter(({ cells }) => cells.some((cell) => cell !== ''))
  narrow(filled, width - gap.length * (filled.length - 1))

  type Cell = readonly [text: string, style?: (cell: string) => string]
  const line = (cellOf: (column: (typeof filled)[number]) => Cell) =>
    filled
      .map((column) => {
        const [text, style = String] = cellOf(column)
        const cell = cut(text, column.width)
        const padding = column === filled.at(-1) ? 0 : column.width - widthOf(cell)
        return (cell === '' ? '' : style(cell)) + ' '.repeat(padding)
      })
      .join(gap)
      .trimEnd()

  return [
    line(({ title }) => [title, heading]),
    ...rows.map((row, index) => line(({ cells, style }) => [cells[index] ?? '', (cell) => style?.(cell, row) ?? cell])),
  ]
}

let segmenter: Intl.Segmenter | undefined

function graphemesOf(text: string): Intl.Segments {
  // Created on first use: the first one loads all locales, which takes 15 ms, and most texts are plain.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return segmenter.segment(text)
}

const plain = /^[\x20-\x7e]*$/
const combining = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]+$/u
const emoji = /\p{Emoji_Presentation}|\ufe0f/u

/** Ranges of code points that terminals draw two cells wide (East Asian Wide and Fullwidth, roughly). */
const wide: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x20000, 0x3fffd],
]

function cellsOf(grapheme: string): number {
  if (combining.test(grapheme)) return 0
  const point = grapheme.codePointAt(0) as number
  return emoji.test(grapheme) || wide.some(([from, to]) => point >= from && point <= to) ? 2 : 1
}

/** How many terminal cells the text takes up, roughly. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemesOf(text)) width += cellsOf(segment)
  return width
}

/** Truncates text to this many cells, with `…` at the end. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 1
  for (const { segment } of graphemesOf(text)) {
    used += cellsOf(segment)
    if (used > width) break
    kept += segment
  }
  return width > 0 ? kept.trimEnd() + '…' : ''
}

const harmful = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

/** Removes characters that could move the cursor, change colours or hide words on a terminal. */
export const printable = (text: string): string =>
  stripVTControlCharacters(text).replaceAll('\r\n', '\n').replace(harmful, '')

/** Like `printable`, but on one line, for table cells. */
export const oneLine = (text: string): string => printable(text.replace(/\s+/g, ' ')).trim()

/** The first sentence of a description, for lists. */
export const firstSentence = (text: string): string => /^.*?[.!?](?=\s|$)|^.*/.exec(text.trim())?.[0] ?? ''

const units = ['bytes', 'KB', 'MB', 'GB'] as const

/** A size in bytes, in readable form: `12 KB`. */
export function sizeText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  const digits = unit === 0 || value >= 10 ? 0 : 1
  return `${value.toFixed(digits)} ${bytes === 1 ? 'byte' : units[unit]}`
}

/** A duration: `12 ms`, `1.5 s`. */
export const took = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`)

const spans: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
]

/** A duration, rounded down to its largest unit: `3 hours`. */
export function span(ms: number): string {
  const [unit, name] = spans.find(([size]) => ms >= size) ?? [1_000, 'second']
  return pluralize(Math.floor(ms / unit), name)
}
