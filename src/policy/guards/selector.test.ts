import { describe, expect, test } from 'vitest'
import { parseSelector, selectValues } from './selector.ts'

const find = (text: string, args: Record<string, unknown>) => selectValues(parseSelector(text)!, args)

describe('selectors', () => {
  test.each<[string, Record<string, unknown>, { at: string; value: unknown }[]]>([
    ['path', { path: 'a', other: 'b' }, [{ at: 'path', value: 'a' }]],
    [
      'paths[]',
      { paths: ['a', 'b'] },
      [
        { at: 'paths[0]', value: 'a' },
        { at: 'paths[1]', value: 'b' },
      ],
    ],
    ['options.path', { options: { path: 'a' } }, [{ at: 'options.path', value: 'a' }]],
    [
      'items[].url',
      { items: [{ url: 'a' }, {}, { url: 'b' }] },
      [
        { at: 'items[0].url', value: 'a' },
        { at: 'items[2].url', value: 'b' },
      ],
    ],
    [
      'rows[][]',
      { rows: [['a'], ['b']] },
      [
        { at: 'rows[0][0]', value: 'a' },
        { at: 'rows[1][0]', value: 'b' },
      ],
    ],
    ['path', { path: null }, [{ at: 'path', value: null }]],
    [
      'file_path',
      {
        filePath: 'a',
        'FILE PATH': 'b',
        'file_path ': 'c',
        'fi\u200ble_path': 'd',
        'file_р\u0430th': 'e',
        ｆｉｌｅ_path: 'f',
      },
      [
        { at: 'filePath', value: 'a' },
        { at: 'FILE PATH', value: 'b' },
        { at: 'file_path ', value: 'c' },
        { at: 'fi\u200ble_path', value: 'd' },
        { at: 'file_р\u0430th', value: 'e' },
        { at: 'ｆｉｌｅ_path', value: 'f' },
      ],
    ],
    [
      'Sinks.k',
      { sinks: { K: 'a' }, SINKS: { k: 'b', '\u212a': 'c' }, '\u017finks': { k: 'd' }, sink: { k: 'e' } },
      [
        { at: 'sinks.K', value: 'a' },
        { at: 'SINKS.k', value: 'b' },
        { at: 'SINKS.\u212a', value: 'c' },
        { at: '\u017finks.k', value: 'd' },
      ],
    ],
  ])('F9: %s finds what it stands for', (text, args, expected) => {
    expect(find(text, args)).toEqual(expected)
  })

  test.each([
    ['path', {}],
    ['options.path', {}],
    ['options.path', { options: {} }],
    ['paths[]', { paths: [] }],
    ['items[].url', { items: [{}] }],
  ])('F9: %s of %j finds nothing', (text, args) => {
    expect(find(text, args)).toEqual([])
  })

  test.each([
    ['options.path', { options: 'a' }, { at: 'options', expected: 'an object' }],
    ['options.path', { options: null }, { at: 'options', expected: 'an object' }],
    ['paths[]', { paths: null }, { at: 'paths', expected: 'a list' }],
    ['options.path', { options: ['a'] }, { at: 'options', expected: 'an object' }],
    ['paths[]', { paths: 'a' }, { at: 'paths', expected: 'a list' }],
    ['paths[]', { paths: { 0: 'a' } }, { at: 'paths', expected: 'a list' }],
    ['items[].url', { items: [{ url: 'a' }, 'b'] }, { at: 'items[1]', expected: 'an object' }],
  ])('F9: %s of %j is a mismatch', (text, args, expected) => {
    expect(find(text, args)).toEqual(expected)
  })

  test('inherited members are not arguments', () => {
    expect(find('constructor', {})).toEqual([])
    expect(find('__proto__', JSON.parse('{"__proto__":"a"}'))).toEqual([{ at: '__proto__', value: 'a' }])
  })

  test.each(['', '.', 'a.', '.a', 'a..b', '[]', 'a[0]', 'a[', 'a]', 'a[].[]', 'a[]b'])(
    '%j is not a selector',
    (text) => {
      expect(parseSelector(text)).toBeUndefined()
    },
  )
})
