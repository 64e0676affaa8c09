import { parse } from 'smol-toml'
import { placeKey, scanToml, unescaped } from '../parse/toml.ts'
import type { Path } from '../tree.ts'
import { FileProblem } from './file.ts'
import { type BracketedList, insertItem, removeItem } from './list-items.ts'

/** Part of a TOML file: a table (header and body, up to the next header), or a single `key = value`. */
interface Part {
  readonly path: readonly string[]
  readonly start: number
  readonly end: number
  /** For each part of the path that is written here, its position. */
  readonly keyed: readonly (Span | undefined)[]
}

interface Span {
  readonly start: number
  readonly end: number
}

export function tomlContent(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text)
  } catch {
    throw new FileProblem('it is not valid TOML', 'Fix it, then try again.')
  }
}

/** Edits a TOML file. Text outside the edited table or value does not change. */
export function tomlText(text: string) {
  tomlContent(text)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const { tables, statements } = partsIn(text)
  const below = (parts: readonly Part[], path: readonly string[]) => parts.filter((part) => isBelow(part.path, path))
  const listAt = (path: Path): BracketedList | undefined => {
    const places = scanToml(text)
    const place = places.get(placeKey(path))
    if (!place || place.value < place.key) return undefined
    const items: { start: number; end: number }[] = []
    for (let item = places.get(placeKey([...path, 0])); item; item = places.get(placeKey([...path, items.length]))) {
      items.push({ start: item.value, end: item.end })
    }
    return items.length > 0 ? { start: place.value, end: place.end, items } : undefined
  }
  /** Returns the text without the table at `path` and its subtables, in any notation. */
  const without = (path: readonly string[]): string => {
    const own = below(tables, path)
    const alone = below(statements, path).filter(
      ({ start }) => !own.some((one) => one.start <= start && start < one.end),
    )
    const parts = [...own, ...alone].sort((a, b) => a.start - b.start)
    return parts.reduceRight((rest, { start, end }) => rest.slice(0, start) + rest.slice(end), text)
  }

  return {
    /** Replaces the table at `path`, or appends it. */
    set(path: readonly string[], values: Readonly<Record<string, unknown>>): string {
      const lines = Object.entries(values).map(([key, value]) => `${word(key)} = ${inline(value)}`)
      const table = [`[${path.map(word).join('.')}]`, ...lines, ''].join(eol)
      const rest = without(path)
      const [first] = below(tables, path)
      // Replace in place only if nothing before the table was removed; otherwise later keys could end up in the table.
      if (first && rest.startsWith(text.slice(0, first.start))) {
        const follows = rest.slice(first.start)
        return `${rest.slice(0, first.start)}${table}${follows.trim() === '' || /^\s*\r?\n/.test(follows) ? '' : eol}${follows}`
      }
      return `${rest}${gapAfter(rest, eol)}${table}`
    },
    /**
     * Replaces only the value at `path`, or adds it to its table. The result may say something else, because a table
     * can be written in several ways: parse it before using it.
     */
    setValue(path: Path, value: unknown): string {
      const place = scanToml(text).get(placeKey(path))
      // The place of a table is its header, which begins before its key.
      if (place && place.value >= place.key) return text.slice(0, place.value) + inline(value) + text.slice(place.end)
      const parent = path.slice(0, -1).map(String)
      const line = `${word(String(path.at(-1)))} = ${inline(value)}${eol}`
      const table = tables.find((one) => placeKey(one.path) === placeKey(parent))
      const end = parent.length === 0 ? bodyEnd(text, 0, tables[0]?.start ?? text.length) : table?.end
      if (end === undefined) return `${text}${gapAfter(text, eol)}[${parent.map(word).join('.')}]${eol}${line}`
      return `${text.slice(0, end)}${/[^\n]$/.test(text.slice(0, end)) ? eol : ''}${line}${text.slice(end)}`
    },
    remove: without,
    /** Inserts an item into a list, or returns undefined if the list is not written in brackets or is empty. */
    insertItem(path: Path, value: unknown): string | undefined {
      const list = listAt(path.slice(0, -1))
      return list && insertItem(text, list, Number(path.at(-1)), inline(value), 'hash')
    },
    removeItem(path: Path): string | undefined {
      const list = listAt(path.slice(0, -1))
      return list && removeItem(text, list, Number(path.at(-1)), 'hash')
    },
    /** Renames a table wherever its name is written: in headers, dotted keys or an inline table. */
    rename(path: readonly string[], name: string): string {
      const keys = [...below(tables, path), ...below(statements, path)].flatMap(
        ({ keyed }) => keyed[path.length - 1] ?? [],
      )
      const place = scanToml(text).get(placeKey(path))
      if (keys.length === 0 && place) keys.push({ start: place.key, end: place.key + writtenKey(text, place.key) })
      const sorted = keys.sort((a, b) => b.start - a.start)
      return sorted.reduce((rest, { start, end }) => rest.slice(0, start) + word(name) + rest.slice(end), text)
    },
  }
}

const gapAfter = (text: string, eol: string): string => (text === '' ? '' : text.endsWith('\n') ? eol : eol + eol)

const isBelow = (path: readonly string[], above: readonly string[]): boolean =>
  above.every((part, index) => path[index] === part)

const word = (key: string): string => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key))

/** Formats a value on one line. TOML writes strings and lists like JSON, but tables differently. */
function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([key, part]) => `${word(key)} = ${inline(part)}`)
    .join(', ')} }`
}

/** Finds the tables, without trailing comments and blank lines, and each `key = value` with its full path. */
function partsIn(text: string): { readonly tables: readonly Part[]; readonly statements: readonly Part[] } {
  const headers: Part[] = []
  const statements: Part[] = []
  for (const { start, end } of linesIn(text)) {
    const line = text.slice(start, end)
    const header = headerLine.exec(line)
    if (header) {
      const parts = keysIn(header, start)
      headers.push({ path: parts.map(({ key }) => key), start, end, keyed: parts })
    }
    const statement = statementLine.exec(line)
    if (statement) {
      const above = headers.at(-1)?.path ?? []
      const parts = keysIn(statement, start)
      const path = [...above, ...parts.map(({ key }) => key)]
      statements.push({ path, start, end, keyed: [...above.map(() => undefined), ...parts] })
    }
  }
  const tables = headers.map((header, index) => {
    const next = headers[index + 1]?.start ?? text.length
    return { ...header, end: bodyEnd(text, header.end, next) }
  })
  return { tables, statements }
}

/** The end of the last line before `limit` that is neither blank nor a comment. */
function bodyEnd(text: string, from: number, limit: number): number {
  const lines = text.slice(from, limit).split(/(?<=\n)/)
  while (lines.length > 0 && /^\s*(#.*)?\s*$/.test(lines.at(-1) as string)) lines.pop()
  return from + lines.join('').length
}

/** Matches strings and comments as a whole, because their content may look like a header or a line end. */
export const tomlToken =
  /"{3}(?:\\.|(?!"{3}).)*"{3,}|'{3}(?:(?!'{3}).)*'{3,}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\r\n]*|[[\]{}]|\n/gs

/** Splits the text into logical lines. A value that spans several lines belongs to one logical line. */
function linesIn(text: string): { readonly start: number; readonly end: number }[] {
  const lines: { start: number; end: number }[] = []
  let depth = 0
  let start = 0
  for (const { 0: part, index } of text.matchAll(tomlToken)) {
    if (part === '[' || part === '{') depth++
    if (part === ']' || part === '}') depth--
    if (part !== '\n' || depth > 0) continue
    lines.push({ start, end: index + 1 })
    start = index + 1
  }
  return [...lines, { start, end: text.length }]
}

const oneWord = String.raw`(?:"(?:\\.|[^"\\])*"|'[^']*'|[\w-]+)`
const name = String.raw`(${oneWord}(?:\s*\.\s*${oneWord})*)`
const headerLine = new RegExp(String.raw`^[ \t]*\[\[?\s*${name}\s*\]`)
const statementLine = new RegExp(String.raw`^[ \t]*${name}\s*=`)

const dottedPart = /"((?:\\.|[^"\\])*)"|'([^']*)'|([\w-]+)/g

/** The parts of a dotted key that starts a line or header, with their positions in the text. */
function keysIn(line: RegExpExecArray, lineStart: number): (Span & { readonly key: string })[] {
  const dotted = line[1] ?? ''
  const offset = lineStart + line[0].indexOf(dotted)
  return [...dotted.matchAll(dottedPart)].map(({ 0: written, 1: quoted, 2: plain, 3: bare, index }) => ({
    key: quoted !== undefined ? unescaped(quoted) : (plain ?? bare ?? ''),
    start: offset + index,
    end: offset + index + written.length,
  }))
}

const writtenKey = (text: string, at: number): number => new RegExp(oneWord, 'y').exec(text.slice(at))?.[0].length ?? 0
