import { parse } from 'smol-toml'
import { FileProblem } from './file-problem.ts'

/** A part of a TOML text: a header and what stands below it, up to the next one. */
interface Table {
  readonly path: readonly string[]
  readonly start: number
  readonly end: number
}

/** The text of a TOML file in which tables are set or removed and nothing else changes. */
export interface TomlText {
  /** A table at `path` with these lines; in the place of the one that is there, else at the end. */
  set(path: readonly string[], values: Readonly<Record<string, unknown>>): string
  /** Without the table at `path` and those below it. */
  remove(path: readonly string[]): string
}

export function tomlText(text: string): TomlText {
  try {
    parse(text)
  } catch {
    throw new FileProblem('it is not valid TOML', 'Mend it first, then try again.')
  }
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const own = (path: readonly string[]) => tablesIn(text).filter((table) => isBelow(table.path, path))
  const without = (path: readonly string[]) =>
    own(path).reduceRight((rest, { start, end }) => rest.slice(0, start) + rest.slice(end), text)

  return {
    set(path, values) {
      const lines = Object.entries(values).map(([key, value]) => `${word(key)} = ${inline(value)}`)
      const table = [`[${path.map(word).join('.')}]`, ...lines, ''].join(eol)
      const [first] = own(path)
      if (first) {
        const rest = without(path)
        const follows = rest.slice(first.start)
        return `${rest.slice(0, first.start)}${table}${follows.trim() === '' || /^\s*\r?\n/.test(follows) ? '' : eol}${follows}`
      }
      const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol
      return `${text}${gap}${table}`
    },
    remove: without,
  }
}

const isBelow = (path: readonly string[], above: readonly string[]): boolean =>
  above.every((part, index) => path[index] === part)

const word = (key: string): string => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key))

/** JSON's way of writing texts and lists is TOML's, too; sections have another one. */
function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([key, part]) => `${word(key)} = ${inline(part)}`)
    .join(', ')} }`
}

/** Where each table stands; comments and blank lines at its end belong to nobody. */
function tablesIn(text: string): Table[] {
  const headers = headersIn(text)
  return headers.map(({ path, start, body }, index) => {
    const next = headers[index + 1]?.start ?? text.length
    const end = bodyEnd(text, body, next)
    return { path, start, end }
  })
}

/** Behind the last line of a table that says something, with the line break. */
function bodyEnd(text: string, from: number, limit: number): number {
  const lines = text.slice(from, limit).split(/(?<=\n)/)
  while (lines.length > 0 && /^\s*(#.*)?\s*$/.test(lines.at(-1) as string)) lines.pop()
  return from + lines.join('').length
}

interface Header {
  readonly path: readonly string[]
  readonly start: number
  /** Where the line after the header begins. */
  readonly body: number
}

/** Texts over several lines and lists may hold lines that look like headers, so they are stepped over. */
const token = /"{3}(?:\\.|(?!"{3}).)*"{3,}|'{3}(?:(?!'{3}).)*'{3,}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[[\]{}]|\n/gs

function headersIn(text: string): Header[] {
  const found: Header[] = []
  let depth = 0
  let lineStart = true
  let previous = 0
  for (const { 0: part, index } of text.matchAll(token)) {
    if (/\S/.test(text.slice(previous, index))) lineStart = false
    previous = index + part.length
    if (part === '\n') {
      if (depth === 0) lineStart = true
      continue
    }
    if (part === '[' && depth === 0 && lineStart) {
      const header = headerAt(text, index)
      if (header) found.push(header)
    }
    if (part === '[' || part === '{') depth++
    if (part === ']' || part === '}') depth--
    lineStart = false
  }
  return found
}

function headerAt(text: string, index: number): Header | undefined {
  const start = text.lastIndexOf('\n', index - 1) + 1
  const feed = text.indexOf('\n', index)
  const line = text.slice(index, feed < 0 ? text.length : feed)
  const name = /^\[\[?\s*((?:"(?:\\.|[^"\\])*"|'[^']*'|[\w-]+|\s*\.\s*)+)\s*\]/.exec(line)?.[1]
  if (name === undefined) return undefined
  const parts = [...name.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|([\w-]+)/g)]
  const path = parts.map(([, quoted, plain, bare]) => (quoted !== undefined ? unquoted(quoted) : (plain ?? bare ?? '')))
  return { path, start, body: feed < 0 ? text.length : feed + 1 }
}

function unquoted(content: string): string {
  try {
    return JSON.parse(`"${content}"`) as string
  } catch {
    return content
  }
}
