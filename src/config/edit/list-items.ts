import type { ReplacedSpan as Span } from '../../lib/replace-spans.ts'
import type { Path } from '../tree.ts'

/** A value with the sections and lists that lead to it. */
export const nested = (path: Path, value: unknown): unknown =>
  path.reduceRight((inner, key) => (typeof key === 'number' ? [inner] : { [key]: inner }), value)

/** A list or map in brackets, with the positions of its entries. */
export interface BracketedList extends Span {
  readonly items: readonly Span[]
}

export type CommentStyle = 'slashes' | 'hash'

const comments = { slashes: String.raw`\/\/[^\r\n]*|\/\*.*?\*\/`, hash: String.raw`#[^\r\n]*` }
const separators = { slashes: new RegExp(`,|${comments.slashes}`, 'gs'), hash: new RegExp(`,|${comments.hash}`, 'g') }
/** The rest of a line, if it is blank or a comment. */
const lineRests = {
  slashes: new RegExp(`^[ \\t]*(?:${comments.slashes})?[ \\t]*(?=\\r?\\n)`),
  hash: new RegExp(`^[ \\t]*(?:${comments.hash})?(?=\\r?\\n)`),
}

interface Separator extends Span {
  readonly kind: 'comma' | 'comment'
}

/** Commas and comments between the offsets `from` and `to`. */
export function between(text: string, from: number, to: number, style: CommentStyle): Separator[] {
  return [...text.slice(from, to).matchAll(separators[style])].map(({ 0: token, index }) => ({
    kind: token === ',' ? 'comma' : 'comment',
    start: from + index,
    end: from + index + token.length,
  }))
}

const commaIn = (text: string, from: number, to: number, style: CommentStyle): number | undefined =>
  between(text, from, to, style).find(({ kind }) => kind === 'comma')?.start

/** Inserts an item before the one at `index`, or appends it. The list must not be empty. Comments stay where they are. */
export function insertItem(
  text: string,
  { start, end, items }: BracketedList,
  index: number,
  written: string,
  style: CommentStyle,
): string {
  const before = items[index - 1]
  const next = items[index]
  const limit = next?.start ?? end - 1
  const comma = before ? commaIn(text, before.end, limit, style) : start
  const after = comma === undefined ? (before?.end ?? limit) : comma + 1
  const head = `${text.slice(0, after)}${comma === undefined ? ',' : ''}`
  const own = `${written}${next || comma !== undefined ? ',' : ''}`
  const line = lineRests[style].exec(text.slice(after, limit))?.[0]
  if (line !== undefined) {
    const eol = text.includes('\r\n') ? '\r\n' : '\n'
    const aligned = (before && startsLine(text, before.start) ? before : next) ?? before
    return `${head}${line}${eol}${indentAt(text, aligned?.start ?? after)}${own}${text.slice(after + line.length)}`
  }
  if (before) return `${head} ${own}${text.slice(after)}`
  return `${text.slice(0, limit)}${own} ${text.slice(limit)}`
}

/** Removes the entry at `index` with its comma. Comments stay. */
export function removeItem(text: string, { end, items }: BracketedList, index: number, style: CommentStyle): string {
  const item = items[index] as Span
  const comma = commaIn(text, item.end, items[index + 1]?.start ?? end - 1, style)
  // A comment between the item and its comma stays, too.
  if (comma !== undefined && text.slice(item.end, comma).trim() !== '') {
    return text.slice(0, item.start) + text.slice(item.end, comma) + text.slice(comma + 1)
  }
  const [from, to] = wholeLines(text, item.start, comma === undefined ? item.end : comma + 1)
  const without = text.slice(0, from) + text.slice(to)
  const before = items[index - 1]
  const leading = before && commaIn(text, before.end, item.start, style)
  // After removing the last entry, also remove the comma before it, unless the file uses trailing commas.
  if (comma !== undefined || leading === undefined) return without
  if (/^,[ \t]*$/.test(text.slice(leading, item.start))) return text.slice(0, leading) + text.slice(item.end)
  return without.slice(0, leading) + without.slice(leading + 1)
}

/** Extends the range to whole lines if they contain nothing else. Otherwise adds the spaces that follow the range. */
function wholeLines(text: string, from: number, to: number): [number, number] {
  const start = lineStart(text, from)
  const feed = text.indexOf('\n', to)
  const alone = feed >= 0 && /^\s*$/.test(text.slice(start, from)) && /^\s*$/.test(text.slice(to, feed))
  if (alone && start > 0) return [start, feed + 1]
  const space = /^[ \t]*/.exec(text.slice(to))?.[0].length ?? 0
  // In YAML, a comment begins after a space.
  if (text[to + space] === '#' && /\S/.test(text.charAt(from - 1))) return [from, to]
  return [from, to + space]
}

export const lineStart = (text: string, offset: number): number => text.lastIndexOf('\n', offset - 1) + 1

export const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(lineStart(text, offset), offset))?.[0] ?? ''

export const startsLine = (text: string, offset: number): boolean =>
  /^[ \t]*$/.test(text.slice(lineStart(text, offset), offset))
