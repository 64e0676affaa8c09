import { extname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type ParseError, parse as parseJson } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import type { ClientKind } from '../config/import/client-kind.ts'
import { shapes } from './entry.ts'
import { FileProblem } from './file-problem.ts'
import { jsonText } from './json-edit.ts'
import { tomlText } from './toml-edit.ts'

/** The name under which clients know us. */
export const ownName = 'toolway'

type Section = Readonly<Record<string, unknown>>

/** A client's file as text that can be changed without touching anything else in it. */
export interface ClientText {
  /** The servers in it, by name. */
  readonly servers: Section
  /** Where they stand. */
  readonly path: readonly string[]
  /** With our entry, or without it, and without the servers named. */
  edited(entry: object | undefined, without?: readonly string[]): string
}

export function clientText(client: ClientKind, file: string, text: string): ClientText {
  const syntax = extname(file) === '.toml' ? toml : json
  const whole = syntax.parse(text)
  const path = serversPath(client, whole)
  const servers = sectionAt(whole, path)
  return {
    servers,
    path,
    edited(entry, without = []) {
      let changed = text
      for (const name of without) changed = syntax.remove(changed, [...path, name])
      if (entry) changed = syntax.set(changed, [...path, ownName], entry)
      else if (Object.hasOwn(servers, ownName)) changed = syntax.remove(changed, [...path, ownName])
      const kept = Object.entries(servers).filter(([name]) => !without.includes(name) && name !== ownName)
      const wanted = { ...Object.fromEntries(kept), ...(entry && { [ownName]: entry }) }
      // Whatever the file looks like: it says exactly this afterwards, or it is left alone.
      if (!isDeepStrictEqual(plain(syntax.parse(changed)), plain(replacedAt(whole, path, wanted)))) {
        throw new FileProblem('it is written in a way that cannot be edited safely', 'Put the entry in by hand.')
      }
      return changed
    },
  }
}

interface Syntax {
  parse(text: string): Section
  set(text: string, path: readonly string[], value: object): string
  remove(text: string, path: readonly string[]): string
}

const json: Syntax = {
  parse(text) {
    const faults: ParseError[] = []
    const value: unknown = parseJson(text, faults, { allowTrailingComma: true, allowEmptyContent: true }) ?? {}
    if (faults.length > 0) throw new FileProblem('it is not valid JSON', 'Mend it first, then try again.')
    if (!isSection(value)) throw new FileProblem('it does not hold an object', 'Mend it first, then try again.')
    return value
  },
  set: (text, path, value) => jsonText(text).set(path, value),
  remove: (text, path) => jsonText(text).remove(path),
}

const toml: Syntax = {
  parse(text) {
    try {
      return parseToml(text)
    } catch {
      throw new FileProblem('it is not valid TOML', 'Mend it first, then try again.')
    }
  },
  set: (text, path, value) => tomlText(text).set(path, value as Section),
  remove: (text, path) => tomlText(text).remove(path),
}

/** The newer form of OpenCode has its servers one level deeper. */
function serversPath(client: ClientKind, whole: Section): readonly string[] {
  const { servers } = shapes[client]
  const deeper = [...servers, 'servers']
  return client === 'opencode' && isSection(valueAt(whole, deeper)) ? deeper : servers
}

const isSection = (value: unknown): value is Section =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const valueAt = (whole: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((part, key) => (isSection(part) ? part[key] : undefined), whole)

const sectionAt = (whole: unknown, path: readonly string[]): Section => {
  const found = valueAt(whole, path)
  return isSection(found) ? found : {}
}

function replacedAt(whole: unknown, [key, ...rest]: readonly string[], value: Section): unknown {
  if (key === undefined) return value
  const section = isSection(whole) ? whole : {}
  return { ...section, [key]: replacedAt(section[key], rest, value) }
}

/** Without what the order of members or a class makes different; an empty section says as much as none. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isSection(value) || value instanceof Date) return typeof value === 'bigint' ? String(value) : value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, part]) => [key, plain(part)] as const)
      .filter(([, part]) => !(isSection(part) && Object.keys(part).length === 0)),
  )
}
