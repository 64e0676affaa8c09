import { parse, TomlError } from 'smol-toml'
import { branch, keyPath, leaf, list, type Path, type Place, type SourceFile, type Tree } from '../tree.ts'
import { createBounds } from './bounds.ts'
import type { Parsed } from './parsed.ts'
import { placeKey, scanToml } from './toml-places.ts'

/** TOML 1.0. The parser knows values but not where they stand, so a second, simpler pass finds that. */
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

  const build = (part: unknown, path: Path, around: number): Tree => {
    const found = places.get(placeKey(path))
    const offset = found?.value ?? around
    check(path, offset)
    const at: Place = { file, offset, key: keyPath(path) }
    if (Array.isArray(part))
      return list(
        at,
        part.map((item, index) => build(item, [...path, index], offset)),
      )
    if (typeof part !== 'object' || part === null)
      return scalarLeaf(part, at, found && file.text.slice(found.value, found.end))
    if (part instanceof Date) return leaf(at, part.toISOString(), found && file.text.slice(found.value, found.end))
    const members = Object.entries(part).map(([key, item]) => {
      const here = [...path, key]
      const keyAt = { file, offset: places.get(placeKey(here))?.key ?? offset, key: keyPath(here) }
      return [key, { at: keyAt, value: build(item, here, keyAt.offset) }] as const
    })
    return branch(at, members)
  }

  return { tree: build(value, [], 0), errors: [] }
}

const scalarLeaf = (part: unknown, at: Place, written: string | undefined) =>
  leaf(at, typeof part === 'number' || typeof part === 'boolean' ? part : String(part), written ?? String(part))

/** The rest of the message repeats lines of the file, and with them perhaps a secret. */
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
