import fc from 'fast-check'
import { expect, test } from 'vitest'
import { table, widthOf } from './table.ts'

const columns = [
  { title: 'NAME', value: (row: readonly string[]) => row[0] as string },
  { title: 'STATUS', value: (row: readonly string[]) => row[1] as string },
  { title: 'ABOUT', value: (row: readonly string[]) => row[2] as string },
]

test('B11: a table lines its columns up, also around wide characters', () => {
  const lines = table(
    columns,
    [
      ['memory', 'healthy', 'Remembers'],
      ['日本', 'stale', 'Files'],
    ],
    { width: 80 },
  )
  expect(lines).toEqual(['NAME    STATUS   ABOUT', 'memory  healthy  Remembers', '日本    stale    Files'])
})

test('B11: a table fits the terminal; the long column is cut, the short ones stay whole', () => {
  const lines = table(columns, [['memory', 'healthy', 'A long description that nobody reads to the end']], {
    width: 30,
  })
  expect(lines[1]).toBe('memory  healthy  A long descr…')
})

test('B11: whatever the cells hold, no line is wider than the terminal', () => {
  const cell = fc.string({ unit: 'grapheme', maxLength: 60 })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(cell, cell, cell), { minLength: 1 }),
      fc.integer({ min: 24, max: 100 }),
      (rows, width) => {
        for (const line of table(columns, rows, { width })) expect(widthOf(line)).toBeLessThanOrEqual(width)
      },
    ),
  )
})

test('B11: a column without any value is left out', () => {
  expect(table(columns, [['memory', '', 'x']], { width: 80 })[0]).toBe('NAME    ABOUT')
})

test('B11: colours do not disturb the layout', () => {
  const red = columns.map((column) => ({ ...column, style: (cell: string) => `\x1b[31m${cell}\x1b[39m` }))
  const rows = [
    ['a', 'b', 'c'],
    ['longer', 'b', 'c'],
  ]
  const plain = table(columns, rows, { width: 80 })
  expect(table(red, rows, { width: 80 }).map((line) => line.replace(/\x1b\[\d+m/g, ''))).toEqual(plain)
})

test('B11: a column to copy from is never truncated', () => {
  const rows = [['everything__trigger-long-running-operation', 'Runs for a long time and tells how far it is']]
  const columns = [
    { title: 'NAME', value: (row: string[]) => row[0] as string, whole: true },
    { title: 'ABOUT', value: (row: string[]) => row[1] as string },
  ]
  const [, line = ''] = table(columns, rows, { width: 60 })
  expect(line).toMatch(/^everything__trigger-long-running-operation {2}Runs .*…$/)
})
