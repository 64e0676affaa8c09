import { isDeepStrictEqual } from 'node:util'
import {
  Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  type ParsedNode,
  parse,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import { jsonValue } from '../../json/parse-json.ts'
import { keyPath, type Path } from '../tree.ts'
import { FileProblem } from './file.ts'
import { lineStart, nested, removeItem } from './list-items.ts'

/** Indentation of what is written below a key. */
export const unit = '  '

/** Indents all lines except empty ones. `^` would also match after U+2028, which is not a line break in YAML. */
export const indented = (text: string, indent: string): string => text.replace(/(?<![^\n])(?=[^\n])/g, indent)

export function documentOf(text: string): Document.Parsed {
  const document = parseDocument(text, { keepSourceTokens: true })
  const [fault] = document.errors
  if (fault) throw new FileProblem(`it is not valid YAML: ${fault.message.split('\n', 1)[0]}`)
  return document
}

export function yamlContent(text: string): unknown {
  const document = documentOf(text)
  try {
    return document.toJS() ?? {}
  } catch {
    // Aliases can expand a short text exponentially, which the parser refuses.
    throw new FileProblem('its YAML aliases cannot be expanded')
  }
}

type Collection = YAMLMap.Parsed | YAMLSeq.Parsed
type Value = ParsedNode | null

/** One entry of a collection: a key with its value, or an item of a list. */
interface Entry {
  readonly parent: Collection
  readonly index: number
  readonly value: Value
  /** Where its key or its dash begins; in a flow list, where its value begins. */
  readonly start: number
  /** The offset after its value or, if it has none, after its key or dash. */
  readonly end: number
}

/** Edits YAML at a path. Text outside the edited entry does not change. */
export const yamlText = (text: string) => new YamlText(text)

class YamlText {
  readonly #text: string
  readonly #root: Value
  readonly #eol: string

  constructor(text: string) {
    this.#text = text
    this.#root = documentOf(text).contents
    this.#eol = text.includes('\r\n') ? '\r\n' : '\n'
  }

  /** The entries on the way to a path, as far as they exist. */
  #entriesTo(path: Path): Entry[] {
    const found: Entry[] = []
    let node: Value = this.#root
    for (const key of path) {
      const entry: Entry | undefined = isCollection(node) ? entryOf(node as Collection, key) : undefined
      if (!entry) return found
      found.push(entry)
      node = entry.value
    }
    return found
  }

  #at(path: Path): Entry {
    const entries = this.#entriesTo(path)
    const last = entries.at(-1)
    if (last && entries.length === path.length) return last
    throw new FileProblem(`it has no ${keyPath(path)}`)
  }

  #spaces(offset: number): string {
    const before = this.#text.slice(lineStart(this.#text, offset), offset)
    return /^\s*$/.test(before) ? before : ' '.repeat(before.length)
  }

  /** Formats the entry at a path, with the sections that lead to it. */
  #lines([key = '', ...rest]: Path, value: unknown, indent: string, comment?: string): string {
    const isSection = rest.length > 0 && rest.every((part) => typeof part === 'string')
    const own = isSection
      ? entryLines(key, {}).replace(/ \{\}\n$/, '\n')
      : entryLines(key, nested(rest, value), comment)
    const written = indented(own, indent).replaceAll('\n', this.#eol)
    return isSection ? written + this.#lines(rest, value, indent + unit, comment) : written
  }

  #atEnd(path: Path, value: unknown, comment?: string): string {
    const gap = `${this.#text === '' || this.#text.endsWith('\n') ? '' : this.#eol}${this.#text.trim() === '' ? '' : this.#eol}`
    return `${this.#text}${gap}${this.#lines(path, value, '', comment)}`
  }

  #add(parent: Collection, path: Path, value: unknown, comment?: string): string {
    const [key = '', ...rest] = path
    const index = isSeq(parent) ? Math.min(Number(key), parent.items.length) : parent.items.length
    const before = index > 0 ? entryAt(parent, index - 1) : undefined
    const first = entryAt(parent, 0)
    if (parent.flow) {
      const inner = nested(rest, value)
      const written = isSeq(parent) ? inline(inner) : inline({ [String(key)]: inner }).slice(1, -1)
      if (before) return `${this.#text.slice(0, before.end)}, ${written}${this.#text.slice(before.end)}`
      return `${this.#text.slice(0, first.start)}${written}, ${this.#text.slice(first.start)}`
    }
    if (parent === this.#root && isMap(parent)) return this.#atEnd(path, value, comment)
    const indent = this.#spaces(first.start)
    const place = before ? endOfEntry(this.#text, before, indent.length) : lineStart(this.#text, first.start)
    const gap = place > 0 && this.#text[place - 1] !== '\n' ? this.#eol : ''
    return `${this.#text.slice(0, place)}${gap}${this.#lines(path, value, indent, comment)}${this.#text.slice(place)}`
  }

  /** Replaces the value of an entry that is empty, `null`, `{}` or `[]` by an entry at `path` below its key. */
  #fill(entry: Entry, path: Path, value: unknown, comment?: string): string {
    const content = nested(path, value)
    if (entry.parent.flow || !isMap(entry.parent) || !isBlock(content)) return this.#replace(entry, content)
    const [start, end] = entry.value?.range ?? [this.#colonOf(entry), this.#colonOf(entry)]
    const line = this.#text.indexOf('\n', end)
    const rest = this.#text.slice(end, line < 0 ? this.#text.length : line + 1)
    const head = `${this.#text.slice(0, start).trimEnd()}${rest.trim() === '' ? '' : ` ${rest.trim()}`}`
    const below = this.#lines(path, value, this.#spaces(entry.start) + unit, comment)
    return `${head}${this.#eol}${below}${line < 0 ? '' : this.#text.slice(line + 1)}`
  }

  #colonOf(entry: Entry): number {
    return this.#text.indexOf(':', keyOf(entry).range[1]) + 1
  }

  #replace(entry: Entry, value: unknown, comment?: string): string {
    const { parent, index, value: old, start, end } = entry
    const isInline = old !== null && !(isCollection(old) && !old.flow)
    const staysInline = !isBlock(value) || (isSeq(old) && isFlat(value))
    if (parent.flow || (isInline && staysInline)) {
      if (old === null) throw unsafe()
      const [from, to] = [old.range[0], old.range[1]]
      const tail = this.#text[to - 1] === '\n' ? this.#eol : ''
      return (
        this.#text.slice(0, from) + inline(value, isScalar(old) ? old.type : undefined) + tail + this.#text.slice(to)
      )
    }
    if (old === null && !isBlock(value)) {
      const place = isMap(parent) ? this.#colonOf(entry) : end
      return `${this.#text.slice(0, place)} ${inline(value)}${this.#text.slice(place)}`
    }
    const indent = this.#spaces(start)
    const own = lineStart(this.#text, start)
    const startsLine = indent === this.#text.slice(own, start)
    const head = startsLine ? this.#text.slice(0, own).replace(ownComment, '') : this.#text.slice(0, start)
    const key = isMap(parent) ? this.#text.slice(start, keyOf(entry).range[1]) : '-'
    const written = this.#lines([isMap(parent) ? 'k' : index], value, indent).replace(
      /^([ \t]*)(?:"k"|k|-)/,
      (_, space) => space + key,
    )
    const above = comment === undefined ? '' : `${indent}# ${comment.replaceAll('\n', ' ')}${this.#eol}`
    const tail = this.#text.slice(endOfEntry(this.#text, entry, indent.length))
    return `${head}${startsLine ? above + written : written.trimStart()}${tail}`
  }

  /** Sets `value` at `path` and creates missing sections. `comment` is written above a new entry. */
  set(path: Path, value: unknown, comment?: string): string {
    const entries = this.#entriesTo(path)
    const last = entries.at(-1)
    if (last && entries.length === path.length) return this.#replace(last, value, comment)
    const rest = path.slice(entries.length)
    const node = last ? last.value : this.#root
    if (isCollection(node) && node.items.length > 0) {
      if (last || !node.flow) return this.#add(node as Collection, rest, value, comment)
      throw new FileProblem('its sections are written in flow style ({})', 'Change it by hand.')
    }
    const isEmpty = node === null || isCollection(node) || (isScalar(node) && node.value === null)
    if (!isEmpty)
      throw new FileProblem(`its ${keyPath(path.slice(0, entries.length))} is not a section`, 'Change it by hand.')
    if (last) return this.#fill(last, rest, value, comment)
    if (node === null || isScalar(node)) return this.#atEnd(rest, value, comment)
    return this.#text.replace(/\{\s*\}\s*$/, () => this.#lines(rest, value, '', comment))
  }

  /** Inserts an item into a list, before the item that has this index. */
  insert(path: Path, value: unknown): string {
    const list = this.#entriesTo(path.slice(0, -1)).at(-1)
    if (!list) return this.set(path.slice(0, -1), [value])
    if (!isSeq(list.value) || list.value.items.length === 0) return this.#fill(list, [0], value)
    return this.#add(list.value as Collection, path.slice(-1), value)
  }

  remove(path: Path): string {
    const entry = this.#at(path)
    const { parent, index, start } = entry
    const next = parent.items.length > index + 1 ? entryAt(parent, index + 1) : undefined
    if (parent.flow) {
      const items = parent.items.map((_, at) => entryAt(parent, at))
      return removeItem(this.#text, { start: parent.range[0], end: parent.range[1], items }, index, 'hash')
    }
    const own = lineStart(this.#text, start)
    const indent = this.#text.slice(own, start)
    // The first key of a list item follows the dash; the next key takes its place.
    if (!/^\s*$/.test(indent) && next) return this.#text.slice(0, start) + this.#text.slice(next.start)
    const head = this.#text.slice(0, own).replace(ownComment, '')
    const tail = this.#text.slice(endOfEntry(this.#text, entry, indent.length))
    if (parent.items.length > 1 || path.length === 1) return head + withoutDoubledGap(head, tail)
    // A section without entries would be parsed as null, so write `{}`.
    const owner = this.#at(path.slice(0, -1))
    if (!isMap(owner.parent)) throw unsafe()
    const colon = this.#colonOf(owner)
    return `${head.slice(0, colon)} ${isSeq(parent) ? '[]' : '{}'}${head.slice(colon)}${tail}`
  }

  rename(path: Path, name: string): string {
    const entry = this.#at(path)
    const [start, end] = isMap(entry.parent) ? keyOf(entry).range : [0, 0]
    if (end === 0) throw unsafe()
    return this.#text.slice(0, start) + inline(name) + this.#text.slice(end)
  }
}

export const unsafe = () =>
  new FileProblem('it cannot be edited safely because of its formatting', 'Change it by hand.')

/** Whether a value is written in lines below its key. */
const isBlock = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0 && !isShortList(value)

/** Short lists are written on one line, which is easier to read. */
const isShortList = (value: unknown): boolean => isFlat(value) && JSON.stringify(value).length <= 90

const isFlat = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item !== 'object' || item === null)

function entryOf(parent: Collection, key: string | number): Entry | undefined {
  const index = isSeq(parent)
    ? typeof key === 'number' && key < parent.items.length
      ? key
      : -1
    : parent.items.findIndex((pair) => isScalar(pair.key) && String(pair.key.value) === String(key))
  return index < 0 ? undefined : entryAt(parent, index)
}

function entryAt(parent: Collection, index: number): Entry {
  if (isMap(parent)) {
    const { key, value: written } = parent.items[index] as Pair<ParsedNode, Value>
    const value = written && isNothing(written) ? null : written
    return { parent, index, value, start: key.range[0], end: value?.range[1] ?? key.range[1] }
  }
  const value = parent.items[index] as Value
  const token = parent.srcToken as { items?: { start: { type: string; offset: number }[] }[] } | undefined
  const dash = parent.flow
    ? undefined
    : token?.items?.[index]?.start.find(({ type }) => type === 'seq-item-ind')?.offset
  const start = dash ?? value?.range[0] ?? 0
  return { parent, index, value, start, end: value?.range[1] ?? start + 1 }
}

/** Whether nothing is written where a value could be, which YAML reads as null. */
const isNothing = (node: ParsedNode): boolean => isScalar(node) && node.range[0] === node.range[1]

const keyOf = ({ parent, index }: Entry): ParsedNode => (parent.items[index] as Pair<ParsedNode>).key

/** The offset after the entry's last line and the comments below it that are indented deeper than its key. */
function endOfEntry(text: string, { end }: Entry, indent: number): number {
  const lineAfter = (offset: number) => {
    const found = text.indexOf('\n', offset)
    return found < 0 ? text.length : found + 1
  }
  let at = text[end - 1] === '\n' ? end : lineAfter(end)
  for (;;) {
    const comment = /^([ \t]*)#/.exec(text.slice(at, lineAfter(at)))
    if (!comment || (comment[1] as string).length <= indent) return at
    at = lineAfter(at)
  }
}

/**
 * Matches the comment that an import wrote above a server. The comment is removed together with the server. Other
 * comments stay, because they may also be about other servers.
 */
const ownComment = /(?<=^|\n)[ \t]*# (?:from|disabled because it needs) [^\n]*\n$/

/** Avoids two blank lines in a row where an entry was removed. */
const withoutDoubledGap = (head: string, tail: string): string =>
  /\n[ \t]*\r?\n$/.test(head) ? tail.replace(/^[ \t]*\r?\n/, '') : tail

/** A key with its value, or a list item, in lines without indentation. */
export function entryLines(key: string | number, value: unknown, comment?: string): string {
  const content = typeof key === 'number' ? [value] : { [key]: value }
  const document = new Document(content)
  visit(document, {
    Seq(_, list) {
      if (list !== document.contents) list.flow = isShortList(list.toJSON())
    },
    Scalar: (_, scalar) => quoteControls(scalar),
  })
  const text = document.toString({ lineWidth: 0, flowCollectionPadding: false })
  // Fall back to JSON, which is valid YAML, if the text does not parse back to the same value.
  const json = JSON.stringify(value)
  const lines = isExact(text, content) ? text : `${typeof key === 'number' ? '-' : `${JSON.stringify(key)}:`} ${json}\n`
  return `${comment === undefined ? '' : `# ${comment.replaceAll('\n', ' ')}\n`}${lines}`
}

const isExact = (text: string, value: unknown): boolean => {
  try {
    return isDeepStrictEqual(parse(text), jsonValue(JSON.stringify(value)))
  } catch {
    return false
  }
}

function quoteControls(scalar: Scalar): void {
  if (typeof scalar.value === 'string' && /[\0-\x1f]/.test(scalar.value)) scalar.type = 'QUOTE_DOUBLE'
}

/** Formats a value on one line, quoted like the value that it replaces. */
function inline(value: unknown, type?: Scalar['type'] | null): string {
  const document = new Document([value])
  const quoted = type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE' ? type : undefined
  visit(document, {
    Collection(_, part) {
      part.flow = true
    },
    Scalar(_, scalar) {
      if (quoted && typeof scalar.value === 'string' && typeof value === 'string') scalar.type = quoted
      quoteControls(scalar)
    },
  })
  const text = document.toString({ lineWidth: 0, flowCollectionPadding: false }).trimEnd()
  return isExact(text, [value]) ? text.slice(1, -1) : JSON.stringify(value)
}
