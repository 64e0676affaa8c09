import fc from 'fast-check'
import { parse, stringify } from 'smol-toml'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { placeKey, scanToml } from './toml.ts'

const text = `title = "a # b" # comment
"quoted.key" = 'literal "'
a.b.c = 1
multi = """
[not.a.table]
key = "x\\" """
raw = '''
it''s'''
inline = { x = 1, "y z" = [1, { deep = true }], }
list = [ "one", # first
  [2, 3],
  { k = 'v' },
]
date = 1979-05-27T07:32:00Z

[table]
key = -1.5e3
[table.sub."dotted.name"]
key = true

[[many]]
name = "first"
[many.inner]
n = 1
[[many]]
name = "second"
[[many.deep]]
n = 2
[[many.deep]]
n = 3
`

/** Every path of a value. */
function paths(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null || value instanceof Date) return [path]
  const entries: [string | number, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return [...(path.length > 0 ? [path] : []), ...entries.flatMap(([key, item]) => paths(item, [...path, key]))]
}

test('every value of a TOML file has a place, and its text is that value', () => {
  const document = parse(text)
  const { places } = scanToml(text)
  for (const path of paths(document)) {
    const place = places.get(placeKey(path))
    expect(place, path.join('.')).toBeDefined()
    const value = path.reduce<unknown>((part, key) => (part as never)[key], document)
    if (typeof value === 'object') continue
    const written = text.slice(place?.start, place?.end)
    expect(parse(`x = ${written}`).x, path.join('.')).toEqual(value)
  }
  expect(places.size).toBe(paths(document).length)
})

test('keys are found where they are written', () => {
  const { places } = scanToml(text)
  const at = (...path: (string | number)[]) => text.slice(places.get(placeKey(path))?.key.start).split('\n', 1)[0]
  expect(at('title')).toMatch(/^title/)
  expect(at('quoted.key')).toMatch(/^"quoted\.key"/)
  expect(at('a', 'b', 'c')).toMatch(/^c = 1/)
  expect(at('inline', 'y z', 1, 'deep')).toMatch(/^deep = true/)
  expect(at('table', 'sub', 'dotted.name', 'key')).toBe('key = true')
  expect(at('many', 1, 'name')).toBe('name = "second"')
  expect(at('many', 1, 'deep', 1, 'n')).toBe('n = 3')
})

test('any document that TOML can express has a place for every value', () => {
  const key = fc.oneof(
    fc.stringMatching(/^[A-Za-z0-9_-]{1,6}$/),
    fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme-ascii' }),
  )
  const scalar = fc.oneof(
    fc.string(),
    fc.string({ unit: anyCharacter }),
    fc.integer(),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  )
  const { table } = fc.letrec<{ table: Record<string, unknown>; value: unknown }>((tie) => ({
    table: fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    value: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.array(scalar, { maxLength: 3 }),
      tie('table'),
      fc.array(tie('table'), { maxLength: 3 }),
    ),
  }))
  fc.assert(
    fc.property(table, (document) => {
      const written = stringify(document)
      const { places } = scanToml(written)
      for (const path of paths(parse(written))) expect(places.has(placeKey(path)), path.join('.')).toBe(true)
    }),
  )
})
