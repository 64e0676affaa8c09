import { parse, TomlError } from 'smol-toml'
import {
  branch,
  type ConfigTree,
  keyPath,
  leaf,
  type Path,
  type SourceFile,
  type SourceLocation,
  withKeyAt,
} from '../tree.ts'
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
    const found = places.placeOf(path)
    const offset = found?.start ?? around
    check(path, offset)
    const at: SourceLocation = { file, offset, key: keyPath(path) }
    if (Array.isArray(part))
      return { kind: 'list', at, items: part.map((item, index) => build(item, [...path, index], offset)) }
    const written = found && file.text.slice(found.start, found.end)
    if (typeof part !== 'object' || part === null) return scalarLeaf(part, at, written)
    if (part instanceof Date) return leaf(at, part.toISOString(), written)
    const members = Object.entries(part).map(([key, item]) => {
      const here = [...path, key]
      const keyAt = { file, offset: places.placeOf(here)?.key.start ?? offset, key: keyPath(here) }
      return [key, withKeyAt(build(item, here, keyAt.offset), keyAt)] as const
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
  const above = text.split('\n').slice(0, line - 1)
  return Math.min(text.length, above.reduce((offset, { length }) => offset + length + 1, 0) + column - 1)
}

interface Span {
  readonly start: number
  readonly end: number
}

/** Where a key and its value are written. The place of a table is its header, which begins before its key. */
interface TomlPlace extends Span {
  readonly key: Span
}

/** A table's header, or one `key = value` of a table, with the lines that it takes up. */
export interface TomlStatement extends Span {
  readonly path: readonly string[]
  /** For each part of the path that is written here, its position. */
  readonly keys: readonly (Span | undefined)[]
}

interface DottedKey {
  readonly path: readonly string[]
  readonly keys: readonly Span[]
}

export const placeKey = (path: Path): string => path.join('\0')

/** Matches strings and comments as a whole, because strings may contain what looks like a comment. */
export const tomlToken = /"{3}(?:\\.|(?!"{3}).)*"{3,}|'{3}(?:(?!'{3}).)*'{3,}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\r\n]*/gs

const tokenHere = new RegExp(tomlToken, 'sy')

/** Finds the positions of all keys and values. The text must be valid TOML. */
export const scanToml = (text: string) => new TomlScanner(text)

class TomlScanner {
  readonly headers: TomlStatement[] = []
  readonly statements: TomlStatement[] = []
  readonly places = new Map<string, TomlPlace>()
  readonly #arrays = new Map<string, number>()
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
    let table: Path = []
    for (this.#skipBlank(); this.#at < text.length; this.#skipBlank()) {
      const start = text.lastIndexOf('\n', this.#at) + 1
      if (text[this.#at] === '[') {
        const { key, indexed } = this.#scanHeader()
        this.headers.push({ ...key, start, end: this.#endOfLine() })
        table = indexed
      } else {
        const above = this.headers.at(-1)?.path ?? []
        const { path, keys } = this.#scanAssignment(table)
        const whole = { path: [...above, ...path], keys: [...above.map(() => undefined), ...keys] }
        this.statements.push({ ...whole, start, end: this.#endOfLine() })
      }
    }
  }

  /** Where a value is written, and the key or item that it belongs to. */
  placeOf(path: Path): TomlPlace | undefined {
    return this.places.get(placeKey(path))
  }

  #note(path: Path, key: Span, value: Span): void {
    if (!this.placeOf(path)) this.places.set(placeKey(path), { key, ...value })
  }

  #endOfLine(): number {
    const feed = this.#text.indexOf('\n', this.#at)
    return feed < 0 ? this.#text.length : feed + 1
  }

  /** Skips what matches here, and returns it. */
  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }

  #skipBlank(): void {
    this.#skip(/(?:\s|#[^\n]*)*/y)
  }

  #skipString(): string {
    return this.#skip(tokenHere)
  }

  #scanKey(): DottedKey {
    const path: string[] = []
    const keys: Span[] = []
    do {
      if (keys.length > 0) this.#at++
      this.#skipBlank()
      const start = this.#at
      const bare = this.#skip(/[\w-]+/y)
      path.push(bare === '' ? keyIn(this.#skipString()) : bare)
      keys.push({ start, end: this.#at })
      this.#skipBlank()
    } while (this.#text[this.#at] === '.')
    return { path, keys }
  }

  #scanAssignment(base: Path): DottedKey {
    const key = this.#scanKey()
    this.#at++
    this.#skipBlank()
    const start = this.#at
    this.#scanValue([...base, ...key.path])
    const value = { start, end: this.#at }
    for (const [index, span] of key.keys.entries()) {
      this.#note([...base, ...key.path.slice(0, index + 1)], span, value)
    }
    return key
  }

  #scanValue(path: Path): void {
    const first = this.#text[this.#at]
    if (first === '[' || first === '{') this.#scanItems(path, first === '[' ? ']' : '}')
    else if (first === '"' || first === "'") this.#skipString()
    else {
      const written = this.#skip(/[^,\]}#\n]*/y)
      this.#at -= written.length - written.trimEnd().length
    }
  }

  #scanItems(path: Path, close: string): void {
    this.#at++
    for (let index = 0; ; index++) {
      this.#skipBlank()
      if (this.#text[this.#at] === ',') this.#at++
      this.#skipBlank()
      if (this.#at >= this.#text.length || this.#text[this.#at] === close) break
      if (close === '}') this.#scanAssignment(path)
      else {
        const start = this.#at
        this.#scanValue([...path, index])
        const item = { start, end: this.#at }
        this.#note([...path, index], item, item)
      }
    }
    this.#at++
  }

  /** The key of a header, and its path with the indexes of the arrays of tables on it. */
  #scanHeader(): { key: DottedKey; indexed: Path } {
    const start = this.#at
    const brackets = this.#skip(/\[+/y).length
    const key = this.#scanKey()
    this.#at += brackets
    const whole = { start, end: this.#at }
    let indexed: Path = []
    for (const [index, part] of key.path.entries()) {
      indexed = [...indexed, part]
      this.#note(indexed, key.keys[index] as Span, whole)
      const count = this.#arrays.get(placeKey(indexed))
      if (index === key.path.length - 1 && brackets === 2) {
        this.#arrays.set(placeKey(indexed), (count ?? 0) + 1)
        indexed = [...indexed, count ?? 0]
        this.#note(indexed, whole, whole)
      } else if (count !== undefined) indexed = [...indexed, count - 1]
    }
    return { key, indexed }
  }
}

/** The key that is written in quotation marks. */
const keyIn = (quoted: string): string => Object.keys(parse(`${quoted} = 0`))[0] ?? ''
