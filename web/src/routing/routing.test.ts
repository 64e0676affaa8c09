import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { choiceParam, updateQuery, withQuery } from './query.ts'
import { pages, parseRoute, pathTo } from './route.ts'
import { parseRange, rangeBounds, rangeQuery } from './time-range.ts'

describe('G10: addresses', () => {
  test('every page of the menu has an address that leads back to it', () => {
    for (const page of pages) expect(parseRoute(pathTo(page))).toEqual({ page })
  })

  test('any name survives being put into an address', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (name) => {
        expect(parseRoute(pathTo('tools', name))).toEqual({ page: 'tools', name })
      }),
    )
  })

  test.each(['/nothing', '/servers/a/b', '/policy/x', '/tools/%', '/overview', '/errors'])('%s is nowhere', (path) => {
    expect(parseRoute(path)).toEqual({ page: 'not-found' })
  })

  test('a slash at the end changes nothing', () => {
    expect(parseRoute('/servers/')).toEqual({ page: 'servers' })
  })
})

describe('G10: the query', () => {
  test('changes one value and leaves the others', () => {
    expect(updateQuery('?a=1&b=2', { b: '3' })).toBe('?a=1&b=3')
    expect(updateQuery('?a=1&b=2', { a: '', b: undefined })).toBe('')
  })

  test('is made of what has a value', () => {
    expect(withQuery('/audit', { agent: 'a b', tool: undefined })).toBe('/audit?agent=a+b')
  })

  test('a word that is none of the known ones is the first', () => {
    const words = ['all', 'denied'] as const
    expect(choiceParam(new URLSearchParams('show=denied'), 'show', words)).toBe('denied')
    expect(choiceParam(new URLSearchParams('show=x'), 'show', words)).toBe('all')
  })
})

describe('G10: the time range', () => {
  const read = (text: string) => parseRange(new URLSearchParams(text))

  test('survives being written into the query', () => {
    for (const range of [{ last: '6h' }, { last: '15m' }, { from: 1000, to: 2000 }] as const) {
      expect(read(updateQuery('?range=5m&from=3&to=4', rangeQuery(range)))).toEqual(range)
    }
  })

  test('is the usual one where the query makes no sense', () => {
    for (const text of ['', 'range=toString', 'from=5&to=5', 'from=x&to=9', 'from=1']) {
      expect(read(text)).toEqual({ last: '15m' })
    }
  })

  test('moves along with the time unless it is fixed', () => {
    expect(rangeBounds({ last: '5m' }, 1_000_000)).toEqual({ from: 700_000, to: 1_000_000 })
    expect(rangeBounds({ from: 1, to: 2 }, 1_000_000)).toEqual({ from: 1, to: 2 })
  })
})
