import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Json } from './json.ts'
import { jsonValue } from './parse-json.ts'

test('B2: bytes that are only carried come out as they came in', () => {
  const bytes = Buffer.from('{"big":12345678901234567890, "odd" :1.0}')
  const json = Json.raw<{ big: number }>(bytes)
  expect(json.bytes).toBe(bytes)
  expect(json.value.big).toBe(Number('12345678901234567890'))
  expect(json.bytes).toBe(bytes)
})

test('a value is serialised once, and bytes are parsed once', () => {
  const made = Json.of({ a: 1 })
  expect(made.bytes).toBe(made.bytes)
  const read = Json.raw<object>(Buffer.from('{"a":1}'))
  expect(read.value).toBe(read.value)
})

test('null and undefined-looking values survive', () => {
  expect(Json.raw(Buffer.from('null')).value).toBeNull()
  expect(Json.of(null).bytes.toString()).toBe('null')
})

test('any JSON value makes the round trip', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(Json.raw(Json.of(value).bytes).value).toEqual(jsonValue(JSON.stringify(value)))
    }),
  )
})
