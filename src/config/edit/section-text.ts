import { extname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type ParseError, parse as parseJson } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { FileProblem } from './file.ts'
import { jsonText } from './json-edit.ts'
import { tomlText } from './toml-edit.ts'
import { unsafe } from './yaml-edit.ts'

export type Section = Readonly<Record<string, unknown>>

/** Edits only one section of a JSON or TOML file. `find` returns its path; a missing section counts as empty. */
export function sectionText(file: string, text: string, find: (whole: Section) => readonly string[]) {
  const syntax = extname(file) === '.toml' ? toml : json
  const whole = syntax.parse(text)
  const path = find(whole)
  const members = asRecord(valueAt(whole, path))
  return {
    members,
    path,
    /** Adds or replaces members and removes those in `without`. */
    edited(set: Readonly<Record<string, object>>, without: readonly string[] = []): string {
      if (!isRecord(valueAt(whole, path) ?? {})) {
        throw new FileProblem(`${path.join('.')} in it is not a section`, 'Fix it, then try again.')
      }
      let changed = text
      for (const name of without) changed = syntax.remove(changed, [...path, name])
      for (const [name, entry] of Object.entries(set)) changed = syntax.set(changed, [...path, name], entry)
      const kept = Object.entries(members).filter(([name]) => !without.includes(name))
      const wanted = { ...Object.fromEntries(kept), ...set }
      // Return the text only if it parses to exactly the intended content.
      if (says(syntax, changed, replacedAt(whole, path, wanted))) return changed
      throw unsafe()
    },
  }
}

/** Whether a text parses to the intended content. */
export function says(syntax: Syntax, text: string, wanted: unknown): boolean {
  try {
    return isDeepStrictEqual(plain(syntax.parse(text)), plain(wanted))
  } catch {
    return false
  }
}

interface Syntax {
  parse(text: string): Section
  set(text: string, path: readonly string[], value: object): string
  remove(text: string, path: readonly string[]): string
}

export const json: Syntax = {
  parse(text) {
    const faults: ParseError[] = []
    const value: unknown = parseJson(text, faults, { allowTrailingComma: true, allowEmptyContent: true }) ?? {}
    if (faults.length > 0) throw new FileProblem('it is not valid JSON', 'Fix it, then try again.')
    if (!isRecord(value)) throw new FileProblem('it does not contain an object', 'Fix it, then try again.')
    return value
  },
  set: (text, path, value) => jsonText(text).set(path, value),
  remove: (text, path) => jsonText(text).remove(path),
}

export const toml: Syntax = {
  parse(text) {
    try {
      return parseToml(text)
    } catch {
      throw new FileProblem('it is not valid TOML', 'Fix it, then try again.')
    }
  },
  set: (text, path, value) => tomlText(text).set(path, value as Section),
  remove: (text, path) => tomlText(text).remove(path),
}

export const valueAt = (whole: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((part, key) => (isRecord(part) && Object.hasOwn(part, key) ? part[key] : undefined), whole)

function replacedAt(whole: unknown, [key, ...rest]: readonly string[], value: Section): unknown {
  if (key === undefined) return value
  const section = asRecord(whole)
  return { ...section, [key]: replacedAt(valueAt(section, [key]), rest, value) }
}

/** Normalizes a value for comparison: ignores prototypes and treats empty sections as absent. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isRecord(value) || value instanceof Date) return typeof value === 'bigint' ? String(value) : value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, part]) => [key, plain(part)] as const)
      .filter(([, part]) => !(isRecord(part) && Object.keys(part).length === 0)),
  )
}
