import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { canonical, TooLong } from './canonical-json.ts'
import { jsonValue } from './parse-json.ts'

describe('F11: canonical JSON', () => {
  test('F11: any JSON value keeps its meaning, and a second pass changes nothing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonical(value)
        expect(jsonValue(text)).toEqual(jsonValue(JSON.stringify(value)))
        expect(canonical(jsonValue(text))).toBe(text)
      }),
      runs(100, 5_000),
    )
  })

  test('F11: the order in which members were set does not matter', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse())
        expect(canonical(reversed)).toBe(canonical(value))
      }),
    )
  })

  test('F11: values that JSON does not have are left out or null, as JSON.stringify does it', () => {
    const sparse: unknown[] = [1]
    sparse[2] = 3
    expect(canonical({ b: undefined, a: [undefined, () => 1], c: Number.NaN, d: -0, when: new Date(0), sparse })).toBe(
      '{"a":[null,null],"c":null,"d":0,"sparse":[1,null,3],"when":"1970-01-01T00:00:00.000Z"}',
    )
  })

  test('F11: members are sorted by code units, numbers among them', () => {
    expect(canonical({ é: 1, b: 2, 10: 3, 9: 4, B: 5, '😀': 6, '\ufb33': 7 })).toBe(
      '{"10":3,"9":4,"B":5,"b":2,"é":1,"😀":6,"\ufb33":7}',
    )
  })

  test('F11: a cycle, deep nesting and a BigInt throw; a value that is too long throws before it is fully written', () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    expect(() => canonical(circle)).toThrow(RangeError)
    expect(() => canonical(jsonValue('['.repeat(100_000) + ']'.repeat(100_000)))).toThrow(RangeError)
    expect(() => canonical({ big: 1n })).toThrow(TypeError)
    const long = Array.from({ length: 100 }, () => 'x')
    expect(() => canonical(long, { characters: 200 })).toThrow(TooLong)
  })
})
