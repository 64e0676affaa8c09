import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Served } from '../../core/access.ts'
import { identifiersOf, programNames, reservedProperties } from './tool-names.ts'

/** Any half of a character: cheaper to make than whole ones, and worse. */
const anyUnit = fc.nat(0xffff).map((code) => String.fromCharCode(code))

const namesIn = (names: readonly string[]) => Object.fromEntries(identifiersOf(names))

test('B9: a name that is an identifier stays, any other is made one', () => {
  expect(namesIn(['get-sum', 'echo', 'a.b/c', '2fa', 'käse', '$x'])).toEqual({
    'get-sum': 'get_sum',
    echo: 'echo',
    'a.b/c': 'a_b_c',
    '2fa': '_2fa',
    käse: 'k_se',
    $x: '$x',
  })
})

test('B9: names that would be one identifier each get a part of their hash; one that is it already keeps it', () => {
  const two = namesIn(['get-sum', 'get.sum'])
  expect(two['get-sum']).toMatch(/^get_sum_[0-9a-f]{6}$/)
  expect(two['get.sum']).toMatch(/^get_sum_[0-9a-f]{6}$/)
  expect(two['get-sum']).not.toBe(two['get.sum'])
  expect(namesIn(['get-sum', 'get_sum'])).toEqual({ get_sum: 'get_sum', 'get-sum': two['get-sum'] })
})

const names = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b', '-', '_', '.', '$', '1', 'ü'), maxLength: 6 }),
  fc.constantFrom(...reservedProperties, 'a'.repeat(100), `${'a'.repeat(100)}-`, 'a_a', 'a-a'),
  fc.string({ unit: anyUnit }),
)

test('B9: identifiers never collide, are identifiers, and depend on the names alone', () => {
  fc.assert(
    fc.property(fc.uniqueArray(names, { maxLength: 40 }), (all) => {
      const identifiers = identifiersOf(all)
      expect(new Set(identifiers.values()).size).toBe(all.length)
      for (const identifier of identifiers.values()) {
        expect(identifier).toMatch(/^[A-Za-z_$][\w$]{0,80}$/)
        expect(reservedProperties).not.toContain(identifier)
      }
      expect(new Map([...identifiersOf([...all].reverse())].sort())).toEqual(new Map([...identifiers].sort()))
    }),
  )
})

test('B9: a name that equals the hashed identifier of another tool does not replace it', () => {
  const first = identifiersOf(['get-sum', 'get.sum']).get('get-sum') as string
  const identifiers = identifiersOf(['get-sum', 'get.sum', first])
  expect(identifiers.get(first)).toBe(first)
  expect(new Set(identifiers.values()).size).toBe(3)
})

const served = (server: string, name: string): Served =>
  ({ name: `${server}__${name}`, entry: { server, name } }) as Served

test('B9: exact names come before identifiers, for servers and tools alike', () => {
  const list = [
    served('my-files', 'get-sum'),
    served('my-files', 'get_sum'),
    served('my_files', 'x'),
    served('other', 'y-z'),
  ]
  const { find, identifiers, server } = programNames(list)
  expect(find('my-files', 'get-sum')).toBe(list[0])
  expect(find('my-files', 'get_sum')).toBe(list[1])
  expect(find('my_files', 'x')).toBe(list[2])
  expect(find('my_files', 'get_sum')).toBeUndefined()
  expect(find('other', 'y_z')).toBe(list[3])
  expect(find('nobody', 'x')).toBeUndefined()
  expect(server('other')).toBe('other')
  for (const one of list) {
    const spelt = identifiers(one)
    expect(find(spelt.server, spelt.tool)).toBe(one)
  }
})
