import { describe, expect, test } from 'vitest'
import { formatSort, nextSort, parseSort, shownRows, sortKey, sortRows } from './table-sort.ts'

describe('G10: sorting a table', () => {
  test('the order survives a round trip through the address', () => {
    for (const text of ['p95', '-limit-per-caller']) expect(formatSort(parseSort(text) as never)).toBe(text)
    expect([parseSort(null), parseSort(''), parseSort('-')]).toEqual([undefined, undefined, undefined])
    expect(sortKey('Limit per caller')).toBe('limit-per-caller')
  })

  test('a header sorts in its usual direction, then in the other one, then not', () => {
    const first = nextSort(undefined, 'calls', true)
    const second = nextSort(first, 'calls', true)
    expect([first, second, nextSort(second, 'calls', true)]).toEqual([
      { key: 'calls', descending: true },
      { key: 'calls', descending: false },
      undefined,
    ])
    expect(nextSort(first, 'name', false)).toEqual({ key: 'name', descending: false })
  })

  test('numbers sort by size, texts by language, rows without a value come last', () => {
    const same = <T>(value: T) => value
    expect(sortRows([2, null, 10, 1], same, false)).toEqual([1, 2, 10, null])
    expect(sortRows([2, undefined, 10, 1], same, true)).toEqual([10, 2, 1, undefined])
    expect(sortRows(['b10', 'B2', 'a'], same, false)).toEqual(['a', 'B2', 'b10'])
  })

  test('all rows are sorted before one page of them is shown', () => {
    const page = { sortBy: (row: number) => row, descending: true, offset: 2, limit: 2 }
    expect(shownRows([1, 5, 3, 2, 4], page)).toEqual([3, 2])
    expect(shownRows([1, 5, 3, 2, 4], { ...page, sortBy: undefined })).toEqual([3, 2])
    expect(shownRows([1, 3, 2], { ...page, offset: 0, limit: undefined })).toEqual([3, 2, 1])
  })

  test('rows with equal values keep their order', () => {
    const rows = ['a1', 'b1', 'c1']
    for (const descending of [true, false]) expect(sortRows(rows, (row) => row[1], descending)).toEqual(rows)
  })
})
