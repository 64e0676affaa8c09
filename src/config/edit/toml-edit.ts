import { parse } from 'smol-toml'
import { replaceSpans } from '../../lib/replace-spans.ts'
import { placeKey, scanToml, type TomlStatement } from '../parse/toml.ts'
import type { Path } from '../tree.ts'
import { FileProblem } from './file.ts'
import { type BracketedList, insertItem, removeItem } from './list-items.ts'

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
  const scan = scanToml(text)
  const { statements } = scan
  // A table is its header and its body, without trailing comments and blank lines.
  const tables = scan.headers.map((header, index) => ({
    ...header,
    end: bodyEnd(text, header.end, scan.headers[index + 1]?.start ?? text.length),
  }))
  const below = (parts: readonly TomlStatement[], path: readonly string[]) =>
    parts.filter((part) => isBelow(part.path, path))
  const listAt = (path: Path): BracketedList | undefined => {
    const place = scan.placeOf(path)
    if (!place || place.start < place.key.start) return undefined
    const items: { start: number; end: number }[] = []
    for (let item = scan.placeOf([...path, 0]); item; item = scan.placeOf([...path, items.length])) items.push(item)
    return items.length > 0 ? { ...place, items } : undefined
  }
  /** Returns the text without the table at `path` and its subtables, in any notation. */
  const without = (path: readonly string[]): string => {
    const own = below(tables, path)
    const alone = below(statements, path).filter(
      ({ start }) => !own.some((one) => one.start <= start && start < one.end),
    )
    return replaceSpans(text, [...own, ...alone], () => '')
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
      const place = scan.placeOf(path)
      if (place && place.start >= place.key.start)
        return text.slice(0, place.start) + inline(value) + text.slice(place.end)
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
      const written = [...below(tables, path), ...below(statements, path)].flatMap(
        ({ keys }) => keys[path.length - 1] ?? [],
      )
      const place = scan.placeOf(path)
      return replaceSpans(text, written.length === 0 && place ? [place.key] : written, () => word(name))
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

/** The end of the last line before `limit` that is neither blank nor a comment. */
function bodyEnd(text: string, from: number, limit: number): number {
  const lines = text.slice(from, limit).split(/(?<=\n)/)
  while (lines.length > 0 && /^\s*(#.*)?\s*$/.test(lines.at(-1) as string)) lines.pop()
  return from + lines.join('').length
}
