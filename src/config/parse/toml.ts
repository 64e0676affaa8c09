import { parse, TomlError } from 'smol-toml'
import { parseJson } from '../../json/parse-json.ts'
import { branch, type ConfigTree, keyPath, leaf, type Path, type SourceFile, type SourceLocation } from '../tree.ts'
import { createBounds, type Parsed } from './parsed.ts'

/** Parses TOML 1.0. The parser does not return positions, so `scanToml` finds them in a second pass. */
export function parseToml(file: SourceFile): Parsed {
  let value: unknown
  try {
    value = parse(file.text)
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw thrown
    return { errors: [{ message: firstLine(thrown.message), offset: offsetOf(file.text, thrown.line, thrown.column) }] }
  }
  const places = scanToml(file.text)
  const check = createBounds()

  const build = (part: unknown, path: Path, around: number): ConfigTree => {
    const found = places.get(placeKey(path))
    const offset = found?.value ?? around
    check(path, offset)
    const at: SourceLocation = { file, offset, key: keyPath(path) }
    if (Array.isArray(part))
      return { kind: 'list', at, items: part.map((item, index) => build(item, [...path, index], offset)) }
    const written = found && file.text.slice(found.value, found.end)
    if (typeof part !== 'object' || part === null) return scalarLeaf(part, at, written)
    if (part instanceof Date) return leaf(at, part.toISOString(), written)
    const members = Object.entries(part).map(([key, item]) => {
      const here = [...path, key]
      const keyAt = { file, offset: places.get(placeKey(here))?.key ?? offset, key: keyPath(here) }
      return [key, { at: keyAt, value: build(item, here, keyAt.offset) }] as const
    })
    return branch(at, members)
  }

  return { tree: build(value, [], 0), errors: [] }
}

const scalarLeaf = (part: unknown, at: SourceLocation, written: string | undefined) =>
  leaf(at, typeof part === 'number' || typeof part === 'boolean' ? part : String(part), written ?? String(part))

/** Keeps only the first line of an error message: the others quote lines of the file, which may contain a secret. */
const firstLine = (message: string) =>
  (message.split('\n', 1)[0] as string).replace(/^Invalid TOML document:\s*/, '').trim()

function offsetOf(text: string, line: number, column: number): number {
  let offset = 0
  for (let current = 1; current < line; current++) {
    const end = text.indexOf('\n', offset)
    if (end < 0) break
    offset = end + 1
  }
  return Math.min(text.length, offset + column - 1)
}

interface TomlPlace {
  readonly key: number
  readonly value: number
  readonly end: number
}

export const placeKey = (path: Path): string => path.join('\0')

/** Finds the positions of all keys and values. The text must be valid TOML. */
export function scanToml(text: string): Map<string, TomlPlace> {
  const places = new Map<string, TomlPlace>()
  const arrays = new Map<string, number>()
  let at = 0
  let table: Path = []

  const note = (path: Path, key: number, value: number, end: number) => {
    if (!places.has(placeKey(path))) places.set(placeKey(path), { key, value, end })
  }
  const blank = () => {
    for (;;) {
      while (/\s/.test(text[at] ?? '')) at++
      if (text[at] !== '#') return
      while (at < text.length && text[at] !== '\n') at++
    }
  }
  const quoted = (): string => {
    const start = at
    const quote = text[at] as string
    const fence = text.startsWith(quote.repeat(3), at) ? quote.repeat(3) : quote
    at += fence.length
    while (at < text.length && !text.startsWith(fence, at)) at += quote === '"' && text[at] === '\\' ? 2 : 1
    at += fence.length
    // Up to two quotes may directly precede the three closing quotes.
    while (fence.length === 3 && text[at] === quote) at++
    return text.slice(start + fence.length, at - fence.length)
  }
  const word = (): string => {
    if (text[at] === '"') return unescaped(quoted())
    if (text[at] === "'") return quoted()
    const start = at
    while (/[\w-]/.test(text[at] ?? '')) at++
    return text.slice(start, at)
  }
  const dotted = (): { parts: string[]; starts: number[] } => {
    const parts: string[] = []
    const starts: number[] = []
    do {
      if (parts.length > 0) at++
      blank()
      starts.push(at)
      parts.push(word())
      blank()
    } while (text[at] === '.')
    return { parts, starts }
  }
  const assignment = (base: Path) => {
    const { parts, starts } = dotted()
    at++
    blank()
    const start = at
    value([...base, ...parts])
    for (let index = 1; index <= parts.length; index++) {
      note([...base, ...parts.slice(0, index)], starts[index - 1] as number, start, at)
    }
  }
  const value = (path: Path) => {
    const start = at
    if (text[at] === '[' || text[at] === '{') {
      const close = text[at] === '[' ? ']' : '}'
      at++
      for (let index = 0; ; index++) {
        blank()
        if (text[at] === ',') at++
        blank()
        if (at >= text.length || text[at] === close) break
        if (close === '}') assignment(path)
        else item([...path, index])
      }
      at++
    } else if (text[at] === '"' || text[at] === "'") quoted()
    else {
      while (at < text.length && !/[,\]}#\n]/.test(text[at] as string)) at++
      while (at > start && /\s/.test(text[at - 1] as string)) at--
    }
  }
  const item = (path: Path) => {
    const start = at
    value(path)
    note(path, start, start, at)
  }
  const header = () => {
    const start = at
    const many = text.startsWith('[[', at)
    at += many ? 2 : 1
    const { parts, starts } = dotted()
    at += many ? 2 : 1
    let path: Path = []
    parts.forEach((part, index) => {
      path = [...path, part]
      note(path, starts[index] as number, start, at)
      const count = arrays.get(placeKey(path))
      if (index === parts.length - 1 && many) {
        arrays.set(placeKey(path), (count ?? 0) + 1)
        path = [...path, count ?? 0]
        note(path, start, start, at)
      } else if (count !== undefined) path = [...path, count - 1]
    })
    table = path
  }

  for (blank(); at < text.length; blank()) {
    if (text[at] === '[') header()
    else assignment(table)
  }
  return places
}

/** Unescapes a basic string's content. Content that is not valid as JSON is returned unchanged. */
export function unescaped(content: string): string {
  const text = parseJson(`"${content}"`)
  return typeof text === 'string' ? text : content
}
