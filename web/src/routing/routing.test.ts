import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { choiceParam, updateQuery, withQuery } from './query.ts'
import { pages, parseRoute, pathTo } from './route.ts'
import { parseRange, rangeBounds, rangeQuery } from './time-range.ts'

describe('G10: addresses', () => {
  test('the path of every menu page parses to that page', () => {
    for (const page of pages) expect(parseRoute(pathTo(page))).toEqual({ page })
  })

  test('any name survives a round trip through a path', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (name) => {
        expect(parseRoute(pathTo('tools', name))).toEqual({ page: 'tools', name })
      }),
    )
  })

  test.each(['/nothing', '/servers/a/b', '/policy/x', '/tools/%', '/overview', '/errors'])(
    '%s is not found',
    (path) => {
      expect(parseRoute(path)).toEqual({ page: 'not-found' })
    },
  )

  test('a trailing slash is ignored', () => {
    expect(parseRoute('/servers/')).toEqual({ page: 'servers' })
  })
})

describe('G10: the query', () => {
  test('changes one parameter and keeps the others', () => {
    expect(updateQuery('?a=1&b=2', { b: '3' })).toBe('?a=1&b=3')
    expect(updateQuery('?a=1&b=2', { a: '', b: undefined })).toBe('')
  })

  test('omits parameters without a value', () => {
    expect(withQuery('/audit', { agent: 'a b', tool: undefined })).toBe('/audit?agent=a+b')
  })

  test('an unknown choice falls back to the first', () => {
    const words = ['all', 'denied'] as const
    expect(choiceParam(new URLSearchParams('show=denied'), 'show', words)).toBe('denied')
    expect(choiceParam(new URLSearchParams('show=x'), 'show', words)).toBe('all')
  })
})

describe('G10: the time range', () => {
  const read = (text: string) => parseRange(new URLSearchParams(text))

  test('survives a round trip through the query', () => {
    for (const range of [{ last: '6h' }, { last: '15m' }, { from: 1000, to: 2000 }] as const) {
      expect(read(updateQuery('?range=5m&from=3&to=4', rangeQuery(range)))).toEqual(range)
    }
  })

  test('falls back to the default if the query is invalid', () => {
    for (const text of ['', 'range=toString', 'from=5&to=5', 'from=x&to=9', 'from=1']) {
      expect(read(text)).toEqual({ last: '15m' })
    }
  })

  test('ends now unless it is fixed', () => {
    expect(rangeBounds({ last: '5m' }, 1_000_000)).toEqual({ from: 700_000, to: 1_000_000 })
    expect(rangeBounds({ from: 1, to: 2 }, 1_000_000)).toEqual({ from: 1, to: 2 })
  })
})
