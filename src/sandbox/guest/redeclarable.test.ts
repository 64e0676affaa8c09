import { expect, test } from 'vitest'
import { redeclarable } from './evaluate.ts'

test.each([
  ['const a = 1', 'var   a = 1'],
  ['let a = 1, b, c = [1, 2]', 'var a = 1, b = void 0, c = [1, 2]'],
  ['let a\nlet {b} = a', 'var a = void 0;\nvar {b} = a'],
  ['let a, b\n[1]', 'var a = void 0, b = void 0;\n[1]'],
  ['let a = 1\nf(b), c', 'var a = 1\nf(b), c'],
  ['let a = 1; f(b), c', 'var a = 1; f(b), c'],
  ['class A {}\n(1)', 'var A = class A {};\n(1)'],
  ['f(); class A extends B { m() {} }', 'f(); var A = class A extends B { m() {} };'],
])('S7: a later program can declare the names of %j again', (code, expected) => {
  expect(redeclarable(code)).toBe(expected)
})

test.each([
  'for (const a of b) { let c; class D {} }',
  '() => { const a = 1 }',
  'x = class A {}',
  'x =\nclass A {}',
  'a.const; a.let; a.class',
  '"const a"; \'let b\'; // const c\n/* let d */',
  '`const a ${ `${ { let: 1 } }` + "}" } let b`',
  '/[/"]const a/.test("const b")',
  'let\n= 5',
])('S7: other uses of the words stay: %j', (code) => {
  expect(redeclarable(code)).toBe(code)
})
