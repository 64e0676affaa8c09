import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { canonical, canonicalValue } from './key.ts'

const written = (text: string) => canonical(Json.raw(Buffer.from(text)))

describe('F13: arguments that mean the same', () => {
  test.each([
    ['{"a":1,"b":2}', '{ "b" : 2, "a" : 1 }'],
    ['{"a":1}', '{"a":1.0}'],
    ['{"a":100}', '{"a":1e2}'],
    ['{"a":"é/"}', '{"\\u0061":"\\u00e9\\/"}'],
    ['{"a":{"x":[],"y":{}}}', '{"a":{"y":{},"x":[]}}'],
    ['{"a":9007199254740993,"b":1}', '{"b":1.0,"a":9007199254740993}'],
    ['{"a":9007199254740993}', '{"a":900719925474099.30e1}'],
  ])('%s and %s', (one, other) => {
    expect(written(one)).toBe(written(other))
  })
})

describe('F13: arguments that do not', () => {
  test.each([
    ['{"a":1}', '{"a":"1"}'],
    ['{"a":null}', '{}'],
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":[]}', '{"a":{}}'],
    ['{"a":"b","c":"d"}', '{"a":"b\\",\\"c\\":\\"d"}'],
    ['{"a":9007199254740993}', '{"a":9007199254740992}'],
    ['{"a":1326954198812345679}', '{"a":1326954198812345600}'],
    ['{"a":0.1}', '{"a":0.10000000000000000555}'],
    ['{"a":-0}', '{"a":0}'],
    ['{"a":1e400}', '{"a":2e400}'],
    ['{"a":1e400}', '{"a":null}'],
    ['{"a":9007199254740993}', '{"a":"9007199254740993"}'],
    ['{"a":"\\ud800"}', '{"a":"\\udbff"}'],
    ['{"__proto__":1}', '{"__proto__":2}'],
    ['{"__proto__":1}', '{}'],
    ['{"a":true}', '{"a":"true"}'],
    ['{"toJSON":"x"}', '{"toJSON":"y"}'],
  ])('%s and %s', (one, other) => {
    expect(written(one)).not.toBe(written(other))
  })
})

/** The same value with its keys in another order and its numbers in another spelling. */
function respelt(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : `${value}`
  if (Array.isArray(value)) return `[${value.map(respelt).join(' , ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)} : ${respelt(inner)}`)
  return `{${members.reverse().join(', ')}}`
}

const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map((n) => n + 0 || 0),
)
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(fc.constant(null), fc.boolean(), fc.string({ unit: anyCharacter }), number),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', '', '__proto__', 'é"'), tie('value'), { maxKeys: 4 }),
  ),
}))

test('F13: any value has one form, however it is written', () => {
  fc.assert(
    fc.property(anyValue, (value) => {
      const text = JSON.stringify(value)
      expect(written(respelt(jsonValue(text)))).toBe(written(text))
      expect(canonical(Json.of(jsonValue(text)))).toBe(written(text))
      expect(canonicalValue(jsonValue(text))).toBe(written(text))
    }),
    runs(100, 5_000),
  )
})

test('F13: two values have one form only if they are equal', () => {
  const few = fc.oneof(anyValue, fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom(0, 1, '0', null, [], {})))
  fc.assert(
    fc.property(few, few, (one, other) => {
      const [a, b] = [jsonValue(JSON.stringify(one)), jsonValue(JSON.stringify(other))]
      expect(canonicalValue(a) === canonicalValue(b)).toBe(isDeepStrictEqual(a, b))
    }),
    runs(400, 20_000),
  )
})

test('F13: values with a toJSON method are compared by their JSON', () => {
  const at = (ms: number) => canonical(Json.of({ at: new Date(ms) }))
  expect(at(0)).toBe(at(0))
  expect(at(0)).not.toBe(at(1))
  expect(canonical(Json.of({ a: [undefined], b: undefined }))).toBe(written('{"a":[null]}'))
})

test('F13: long arguments are given up early', () => {
  expect(written(`{"a":"${'x'.repeat(65_000)}"}`)).toBeDefined()
  expect(written(`{"a":"${'x'.repeat(66_000)}"}`)).toBeUndefined()
  expect(written(`[${'[],'.repeat(40_000)}1]`)).toBeUndefined()
  expect(written(`[${'true,'.repeat(20_000)}true]`)).toBeUndefined()
  expect(written(`{"big":9007199254740993,"a":"${'x'.repeat(65_000)}"}`)).toMatch(/9007199254740993e0,}$/)
})
