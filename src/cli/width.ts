import { stripVTControlCharacters } from 'node:util'

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
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

/** How many terminal cells a text takes, roughly. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += cellsOf(segment)
  return width
}

/** Cuts a text to so many cells, with `…` in the place of what is missing. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 1
  for (const { segment } of graphemes.segment(text)) {
    used += cellsOf(segment)
    if (used > width) break
    kept += segment
  }
  return width > 0 ? kept.trimEnd() + '…' : ''
}

const harmful = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

/** A server's text without what would move the cursor, change colours or hide words on the user's terminal. */
export const printable = (text: string): string =>
  stripVTControlCharacters(text).replaceAll('\r\n', '\n').replace(harmful, '')

/** The same on one line, for table cells. */
export const oneLine = (text: string): string => printable(text.replace(/\s+/g, ' ')).trim()

/** What a description begins with: enough to tell tools apart in a list. */
export const firstSentence = (text: string): string => /^.*?[.!?](?=\s|$)|^.*/.exec(text.trim())?.[0] ?? ''
