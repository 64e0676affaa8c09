import { expect, test } from 'vitest'
import { bytesAt, pathSteps } from './json-path.ts'

test.each([
  ['', []],
  ['$', []],
  ['$.a[0].b', ['a', '0', 'b']],
  ['$[\'a b\']["c.d"]', ['a b', 'c.d']],
  ['/a/0/b~1c~0d', ['a', '0', 'b/c~d']],
  ['a.b', undefined],
  ['$.a[', undefined],
  ['$..a', undefined],
])('pathSteps reads %s', (path, steps) => {
  expect(pathSteps(path)).toEqual(steps)
})

test('bytesAt returns the bytes of a value', () => {
  const json = Buffer.from('{"a": [ {"b": 12345678901234567890 }, "x" ], "": 1}')
  const at = (path: string) => bytesAt(json, pathSteps(path) ?? [])?.toString()
  expect(at('$.a[0].b')).toBe('12345678901234567890')
  expect(at('/a/1')).toBe('"x"')
  expect(at('/')).toBe('1')
  for (const path of ['$.b', '$.a[2]', '$.a.length', '/a/-1', '$.a[0].b.c']) expect(at(path)).toBeUndefined()
})
