import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ToolwayError } from '../core/errors.ts'
import { Json } from '../json/json.ts'
import { readArguments } from './arguments.ts'

const schema = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    count: { type: 'integer' },
    ratio: { type: 'number' },
    deep: { type: 'boolean' },
    maybe: { type: ['integer', 'null'] },
    tags: { type: 'array', items: { type: 'string' } },
    sizes: { type: 'array', items: { $ref: '#/$defs/size' } },
    filter: { type: 'object' },
    either: { anyOf: [{ type: 'number' }, { type: 'string' }] },
    level: { enum: [1, 2, 3] },
    self: { $ref: '#/properties/self' },
  },
  $defs: { size: { type: 'integer' } },
}

describe('B11: key=value is typed by the input schema of the tool', () => {
  test.each([
    ['text=5', { text: '5' }],
    ['text=', { text: '' }],
    ['text=a=b', { text: 'a=b' }],
    ['count=-5', { count: -5 }],
    ['ratio=2.5e3', { ratio: 2500 }],
    ['deep=true', { deep: true }],
    ['maybe=null', { maybe: null }],
    ['maybe=7', { maybe: 7 }],
    ['tags=["a","b"]', { tags: ['a', 'b'] }],
    ['tags=a', { tags: ['a'] }],
    ['sizes=[1,2]', { sizes: [1, 2] }],
    ['filter={"a":{"b":1}}', { filter: { a: { b: 1 } } }],
    ['either=5', { either: '5' }],
    ['either:=5', { either: 5 }],
    ['level=2', { level: 2 }],
    ['self=x', { self: 'x' }],
    ['unknown=5', { unknown: '5' }],
    ['unknown:={"a":[]}', { unknown: { a: [] } }],
  ])('%s', (word, expected) => {
    expect(readArguments([word], schema).value).toEqual(expected)
  })

  test('a repeated key makes a list, with typed elements', () => {
    expect(readArguments(['sizes=1', 'tags=a', 'sizes=2'], schema).value).toEqual({ sizes: [1, 2], tags: ['a'] })
  })

  test('words take precedence over --args', () => {
    expect(readArguments(['count=2'], schema, Json.of({ count: 1, text: 'kept' })).value).toEqual({
      count: 2,
      text: 'kept',
    })
  })

  test('without a schema everything is a string', () => {
    expect(readArguments(['a=1', 'b=true'], undefined).value).toEqual({ a: '1', b: 'true' })
  })

  test('a key cannot reach the prototype', () => {
    const { value: values } = readArguments(['__proto__:={"polluted":1}'], schema)
    expect(Object.getPrototypeOf(values)).toBe(Object.prototype)
    expect(Object.keys(values)).toEqual(['__proto__'])
  })
})

describe('B11: a value that does not fit is refused with an error that names it', () => {
  test.each([
    ['count=many', '"count" must be integer, not "many".'],
    ['count=1.5', '"count" must be integer, not "1.5".'],
    ['count=', '"count" must be integer, not "".'],
    ['ratio=1e999', '"ratio" must be number'],
    ['deep=yes', '"deep" must be true or false, not "yes".'],
    ['filter=a', '"filter" must be a JSON object, not "a".'],
    ['filter={a}', 'The value of "filter" is not valid JSON'],
    ['tags=[a', 'The value of "tags" is not valid JSON'],
    ['loose', '"loose" is not of the form key=value'],
    ['=5', '"=5" is not of the form key=value'],
  ])('%s', (word, message) => {
    expect(() => readArguments([word], schema)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENTS', message: expect.stringContaining(message) }),
    )
  })

  test('a repeated key that is not a list', () => {
    expect(() => readArguments(['text=a', 'text=b'], schema)).toThrow(/"text" .*2 times/)
  })

  test('any input gives arguments or a typed error', () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(schema.properties)), fc.string(), (key, text) => {
        try {
          expect(Object.keys(readArguments([`${key}=${text}`], schema).value)).toEqual([key])
        } catch (error) {
          expect(error).toBeInstanceOf(ToolwayError)
        }
      }),
    )
  })
})
