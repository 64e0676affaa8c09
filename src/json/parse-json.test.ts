import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { jsonValue, parseJson, wellFormedJson } from './parse-json.ts'

/** Objects whose member names V8 remembers as long as they exist. */
const kept: unknown[] = []

describe('B6: member names with escapes', () => {
  test.each([
    { before: String.raw`{"NAME":1,"\\u00":1}`, text: String.raw`{"NAME":1,"\u0070ath":"x"}`, name: 'path' },
    { before: String.raw`{"NAME":1,"\\":1}`, text: String.raw`{"NAME":1,"\"":"x"}`, name: '"' },
    { before: String.raw`{"NAME":1,"\\n":1}`, text: String.raw`{"NAME":1,"\na":"x"}`, name: '\na' },
    { before: String.raw`{"NAME":1,"\\/":1}`, text: String.raw`[{"NAME":1 ,  "\/a":"x"}]`, name: '/a' },
    { before: String.raw`{"NAME":1,"a\\":1}`, text: String.raw`{"o":{"NAME":1,"a\t":"x"}}`, name: 'a\t' },
  ])('B6: $name is not taken for a name that was read before', ({ before, text, name }) => {
    const own = (json: string) => json.replace('NAME', `first${kept.length}`)
    const later = own(text)
    kept.push(JSON.parse(own(before)))
    expect(JSON.stringify(jsonValue(later))).toContain(`":1,${JSON.stringify(name)}:"x"`)
  })

  test('B6: a value is read as it was, however names and white space are written', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.infiniteStream(fc.nat(3)), (value, choices) => {
        const text = rewritten(value, () => choices.next().value as number)
        expect(jsonValue(text)).toEqual(value)
      }),
      runs(100, 20_000),
    )
  })

  test('B6: the last of equal names counts, order is kept, and __proto__ is a name like others', () => {
    const text = String.raw`{"b":1,"\u0061":2,"2":3,"1":4,"a":5,"__proto_\u005f":{"admin":true}}`
    const read = jsonValue(text) as object
    expect(Object.entries(read)).toEqual([
      ['1', 4],
      ['2', 3],
      ['b', 1],
      ['a', 5],
      ['__proto__', { admin: true }],
    ])
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype)
  })

  test('B6: text that is not JSON throws, and is undefined to parseJson', () => {
    for (const text of [
      String.raw`{"\u0061":}`,
      String.raw`{"\u0061":1}}`,
      String.raw`{"\x61":1}`,
      String.raw`{"\u0061`,
    ]) {
      expect(() => jsonValue(text)).toThrow(SyntaxError)
      expect(parseJson(text)).toBeUndefined()
    }
  })

  test('B6: nesting deeper than the stack does not overflow it', () => {
    const depth = 200_000
    const text = `${String.raw`{"\u0061":`.repeat(depth)}1${'}'.repeat(depth)}`
    let value = jsonValue(text) as { a?: object }
    let levels = 0
    for (; value.a !== undefined; value = value.a) levels++
    expect(levels).toBe(depth)
  })

  test('B6: numbers are read as the caller wants', () => {
    const text = String.raw`{"\u0061":[1.50,-0,1e2],"b":"1.50"}`
    expect(jsonValue(text, (source) => `<${source}>`)).toEqual({ a: ['<1.50>', '<-0>', '<1e2>'], b: '1.50' })
    expect(jsonValue('{"a":[1.50]}', (source) => `<${source}>`)).toEqual({ a: ['<1.50>'] })
  })
})

/** JSON whose member names are written with or without escapes. */
function rewritten(value: unknown, choose: () => number): string {
  const space = () => ['', ' ', '\n', '\t'][choose()] ?? ''
  if (Array.isArray(value)) return `${space()}[${value.map((item) => rewritten(item, choose)).join(',')}${space()}]`
  if (Object.is(value, -0)) return '-0'
  if (typeof value !== 'object' || value === null) return space() + JSON.stringify(value) + space()
  const members = Object.entries(value).map(
    ([name, inner]) => `${space()}"${escaped(name, choose)}"${space()}:${rewritten(inner, choose)}`,
  )
  return `${space()}{${members.join(',')}${space()}}`
}

const escaped = (name: string, choose: () => number): string =>
  [...Array(name.length).keys()]
    .map((at) =>
      choose() === 0
        ? `\\u${name.charCodeAt(at).toString(16).padStart(4, '0')}`
        : JSON.stringify(name[at]).slice(1, -1),
    )
    .join('')

test('S1: lone surrogates in JSON are replaced, and nothing else', () => {
  const unit = fc.constantFrom('\ud83c', '\udf89', '\\', 'u', 'd83c', '"', '\n', 'a')
  const text = fc.string({ unit })
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text)), (members) => {
      const json = wellFormedJson(JSON.stringify(members))
      expect(JSON.parse(json)).toEqual(members.map((pair) => pair.map((one) => one.toWellFormed())))
    }),
    runs(200, 20_000),
  )
})
