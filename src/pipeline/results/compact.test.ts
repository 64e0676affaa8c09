import { expect, test } from 'vitest'
import { compactTable } from './compact.ts'

const rows = Array.from({ length: 5 }, (_, id) => ({ identifier: id, fullName: `Name ${id}`, isActive: id > 2 }))

test('W7: compactTable writes uniform flat objects as a header line and rows', () => {
  expect(compactTable(JSON.stringify(rows))?.split('\n')).toEqual([
    'identifier,fullName,isActive',
    ...rows.map(({ identifier, fullName, isActive }) => `${identifier},${fullName},${isActive}`),
  ])
})

test('W7: compactTable writes strings as JSON where they could be mistaken, and numbers with all digits', () => {
  const odd = ['', 'null', '12', 'a,b', 'a\nb', ' a', '"a"', null]
  const json = JSON.stringify(odd.map((valueOfTheCell) => ({ valueOfTheCell, anotherNumber: 0 })))
  const table = compactTable(json.replace('"anotherNumber":0', '"anotherNumber":12345678901234567890'))
  expect(table?.split('\n').slice(1)).toEqual([
    '"",12345678901234567890',
    ...['"null",0', '"12",0', '"a,b",0', '"a\\nb",0', '" a",0', '"\\"a\\"",0', 'null,0'],
  ])
})

test.each([
  ['few objects', rows.slice(1)],
  ['other members', [...rows, { identifier: 5, fullName: 'Name', other: true }]],
  ['another order', [...rows, { fullName: 'Name', identifier: 5, isActive: true }]],
  ['nested values', rows.map((row) => ({ ...row, list: [] }))],
  ['little to save', rows.map(({ fullName }) => ({ a: fullName.repeat(10) }))],
  ['no objects', [1, 2, 3, 4, 5]],
  ['an object', { rows }],
])('W7: compactTable leaves %s alone', (_, value) => {
  expect(compactTable(JSON.stringify(value))).toBeUndefined()
})

test('W7: compactTable leaves text alone that only begins like JSON', () => {
  expect(compactTable('[1] A footnote')).toBeUndefined()
})
