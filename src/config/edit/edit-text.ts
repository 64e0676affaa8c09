import { isDeepStrictEqual } from 'node:util'
import { jsonValue } from '../../json/parse-json.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import type { ServerDefinition } from '../import/read-servers.ts'
import { type Syntax, syntaxOf } from '../parse/document.ts'
import { keyPath, type Path } from '../tree.ts'
import { FileProblem } from './file.ts'
import { jsonContent, jsonText } from './json-edit.ts'
import { tomlContent, tomlText } from './toml-edit.ts'
import { entryLines, indented, unit, unsafe, yamlContent, yamlText } from './yaml-edit.ts'

/** One change of a configuration file. Without `value` and `rename`, what is at the path is removed. */
export interface TextChange {
  readonly path: Path
  readonly value?: unknown
  /** The new name of the entry at the path. */
  readonly rename?: string | undefined
  /** Whether a list item is inserted before the one that has this index, instead of replacing it. */
  readonly insert?: boolean
  /** A comment to write above a new entry. */
  readonly comment?: string | undefined
}

/** The content of a configuration file as plain values, as it is written: without variables, defaults and aliases. */
export const contentOf = (file: string, text: string): unknown => parsers[syntaxOf({ path: file, text })](text)

const parsers: Readonly<Record<Syntax, (text: string) => unknown>> = {
  yaml: yamlContent,
  json: jsonContent,
  toml: tomlContent,
}

/** Each change parses the text once, so both limits bound how long an edit blocks the process. */
const maxChanges = 500
const maxParsedLength = 16 * 1024 * 1024

/** Applies changes to the text of a configuration file, as `applyChanges` does, if they are not too many for the file. */
export function editText(file: string, text: string, changes: readonly TextChange[]): string {
  if (changes.length > maxChanges || (changes.length > 1 && changes.length * text.length > maxParsedLength)) {
    const problem = `${changes.length} changes are too many for one edit of a file with ${text.length} characters`
    throw new FileProblem(problem, 'Edit the text of the file instead.')
  }
  return applyChanges(file, text, changes)
}

/**
 * Applies changes to the text of a configuration file and preserves all other text byte for byte, including comments.
 * Throws a FileProblem if parsing the result would not yield the intended content.
 */
export function applyChanges(file: string, text: string, changes: readonly TextChange[]): string {
  if (changes.length === 0) return text
  const syntax = syntaxOf({ path: file, text })
  if (syntax === 'toml') return editToml(text, changes)
  const open = syntax === 'json' ? jsonText : yamlText
  const wanted = withChanges(contentOf(file, text), changes)
  const after = changes.reduce((before, { path, value, rename, insert, comment }) => {
    const edited = open(before)
    if (rename !== undefined) return edited.rename(path, rename)
    if (value === undefined) return edited.remove(path)
    return insert ? edited.insert(path, value) : edited.set(path, value, comment)
  }, text)
  if (says(() => contentOf(file, after), wanted, comparableJson)) return after
  throw unsafe()
}

/** Whether a text that was edited has the intended content, if both are made comparable. */
function says(parse: () => unknown, wanted: unknown, plain: (value: unknown) => unknown): boolean {
  try {
    return isDeepStrictEqual(plain(parse()), plain(wanted))
  } catch {
    return false
  }
}

const comparableJson = (value: unknown): unknown => jsonValue(JSON.stringify(value))

/** Changes values of a TOML file where they are written and, if that is not possible, writes their whole entry again. */
const editToml = (text: string, changes: readonly TextChange[]): string =>
  changes.reduce((before, change) => {
    const content = tomlContent(before)
    const old = valueAt(content, change.path)
    if (!change.insert && isRecord(old) && isRecord(change.value)) {
      return editToml(before, changesBetween(old, change.value, change.path))
    }
    const wanted = withChanges(content, [change])
    const after = [...tomlWith(before, change, wanted)].find((one) => tomlSays(one, wanted))
    if (after !== undefined) return after
    const whole = withWholeEntry(before, change, wanted)
    if (tomlSays(whole, wanted)) return whole
    throw unsafe()
  }, text)

/** The ways to write a change, best first. */
function* tomlWith(text: string, { path, value, rename, insert }: TextChange, wanted: unknown): Generator<string> {
  const edited = tomlText(text)
  if (rename !== undefined) return yield edited.rename(path.map(String), rename)
  if (typeof path.at(-1) === 'number' && (insert || value === undefined)) {
    const list = path.slice(0, -1)
    const written = insert ? edited.insertItem(path, value) : edited.removeItem(path)
    if (written !== undefined) yield written
    return yield edited.setValue(list, valueAt(wanted, list))
  }
  if (value === undefined) return yield edited.remove(path.map(String))
  // A new entry gets a table of its own.
  if (!(isRecord(value) && path.length <= 2)) yield edited.setValue(path, value)
}

/** Writes an entry such as `mcpServers.files`, or a new section, as one table. */
function withWholeEntry(text: string, { path, rename }: TextChange, wanted: unknown): string {
  const entry = path.slice(0, 2).map(String)
  const renamed = rename === undefined ? [] : [entry.with(-1, rename)]
  return [entry, ...renamed].reduce((before, one) => {
    const value = valueAt(wanted, one)
    if (value === undefined) return tomlText(before).remove(one)
    if (isRecord(value)) return tomlText(before).set(one, value)
    throw new FileProblem('this part of a TOML file cannot be edited', 'Change it by hand.')
  }, text)
}

const tomlSays = (text: string, wanted: unknown): boolean => says(() => tomlContent(text), wanted, comparableToml)

/** Drops prototypes and empty sections, which a TOML file does not always have. */
function comparableToml(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparableToml)
  if (!isRecord(value) || value instanceof Date) return typeof value === 'bigint' ? String(value) : value
  const parts = Object.entries(value).map(([key, part]) => [key, comparableToml(part)] as const)
  return Object.fromEntries(parts.filter(([, part]) => !(isRecord(part) && Object.keys(part).length === 0)))
}

/** The value at a path. Inherited properties such as `__proto__` are not values. */
export const valueAt = (whole: unknown, path: Path): unknown => path.reduce(own, whole)

const own = (part: unknown, key: string | number): unknown =>
  typeof part === 'object' && part !== null && Object.hasOwn(part, key)
    ? (part as Record<string | number, unknown>)[key]
    : undefined

/** A copy of the content with changes. */
export function withChanges(content: unknown, changes: readonly TextChange[]): unknown {
  const whole = structuredClone(content) as Record<string | number, unknown>
  // Copy the values: a later change may be inside an earlier one.
  for (const change of changes) applyChange(whole, { ...change, value: structuredClone(change.value) })
  return whole
}

function applyChange(whole: Record<string | number, unknown>, { path, value, rename, insert }: TextChange): void {
  const [key = '', ...parents] = path.toReversed()
  let part = whole
  for (const name of parents.toReversed()) {
    const next = own(part, name)
    if (Array.isArray(part) && next === undefined) throw new FileProblem(`it has no ${keyPath(path)}`)
    if (typeof next !== 'object' || next === null) define(part, name, typeof key === 'number' ? [] : {})
    part = own(part, name) as Record<string | number, unknown>
  }
  const end = Array.isArray(part) ? part.length - (value === undefined ? 1 : 0) : Number.POSITIVE_INFINITY
  if (Number(key) > end) throw new FileProblem(`it has no ${keyPath(path)}`)
  if (rename !== undefined) {
    if (!Object.hasOwn(part, key)) throw new FileProblem(`it has no ${keyPath(path)}`)
    define(part, rename, part[key])
    delete part[key]
  } else if (value === undefined && Array.isArray(part)) part.splice(Number(key), 1)
  else if (value === undefined) {
    if (!Object.hasOwn(part, key)) throw new FileProblem(`it has no ${keyPath(path)}`)
    delete part[key]
  } else if (insert && Array.isArray(part)) part.splice(Number(key), 0, value)
  else define(part, key, value)
}

/** Defines the property instead of assigning it: an assignment to __proto__ would not create a property. */
const define = (part: object, key: string | number, value: unknown): void =>
  void Object.defineProperty(part, key, { value, enumerable: true, writable: true, configurable: true })

/** The smallest changes that turn one value into another, so that comments inside an edited entry are preserved. */
export function changesBetween(before: unknown, after: unknown, path: Path = []): TextChange[] {
  if (isDeepStrictEqual(before, after)) return []
  if (isRecord(before) && isRecord(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      changesBetween(own(before, key), own(after, key), [...path, key]),
    )
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length > 0 && after.length > 0) {
    return changesInList(before, after, path)
  }
  return [{ path, value: after }]
}

function changesInList(before: readonly unknown[], after: readonly unknown[], path: Path): TextChange[] {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && isDeepStrictEqual(before[start], after[start])) start++
  let end = 0
  while (end < shorter - start && isDeepStrictEqual(before.at(-1 - end), after.at(-1 - end))) end++
  const old = before.slice(start, before.length - end)
  const now = after.slice(start, after.length - end)
  const both = Math.min(old.length, now.length)
  return [
    ...now.slice(0, both).flatMap((item, index) => changesBetween(old[index], item, [...path, start + index])),
    ...old.slice(both).map((_, index) => ({ path: [...path, start + old.length - 1 - index] })),
    ...now.slice(both).map((value, index) => ({ path: [...path, start + both + index], value, insert: true })),
  ]
}

export interface NewServer {
  readonly name: string
  readonly definition: ServerDefinition
  /** A comment to write above the entry. It says where the server was imported from. */
  readonly comment?: string | undefined
}

/** Formats servers for the `mcpServers` section, with each line indented by `indent`. */
export const serversBlock = (servers: readonly NewServer[], indent = unit): string =>
  servers.map(({ name, definition, comment }) => indented(entryLines(name, definition, comment), indent)).join('')

/** A configuration as text. Edits change only `mcpServers`. */
export interface ServersText {
  readonly names: readonly string[]
  /** Adds a server, or replaces the one of this name. */
  set(server: NewServer): string
  /** Removes a server, which must exist. */
  remove(name: string): string
}

/** Edits the servers in a YAML, JSON or TOML configuration. */
export function serversText(path: string, text: string): ServersText {
  const names = Object.keys(asRecord(asRecord(contentOf(path, text)).mcpServers))
  return {
    names,
    set: ({ name, definition, comment }) =>
      editText(path, text, [{ path: ['mcpServers', name], value: definition, comment }]),
    remove(name) {
      if (!names.includes(name)) throw new FileProblem(`it has no server ${name}`)
      return editText(path, text, [{ path: ['mcpServers', name] }])
    },
  }
}

export const addServers = (text: string, servers: readonly NewServer[]): string =>
  editText(
    'toolway.yaml',
    text,
    servers.map(({ name, definition, comment }) => ({ path: ['mcpServers', name], value: definition, comment })),
  )
