import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import { Json } from '../json/json.ts'
import { errorBytes, type Message, notificationBytes, readMessage, requestBytes, resultBytes } from './message.ts'

const read = (json: string): Message => readMessage(Buffer.from(json))
const object = fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ maxDepth: 4, stringUnit: anyCharacter }))
const id = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, min: -1e6, max: 1e6 }),
)
const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))

describe('readMessage', () => {
  test('reads each kind of message', () => {
    expect(read('{"jsonrpc":"2.0","id":1,"method":"ping"}')).toEqual({
      kind: 'request',
      id: 1,
      method: 'ping',
      params: undefined,
    })
    expect(read('{"method":"a/b","params":{"x":1},"jsonrpc":"2.0"}')).toEqual({
      kind: 'notification',
      method: 'a/b',
      params: Buffer.from('{"x":1}'),
    })
    expect(read('{"jsonrpc":"2.0","id":"1","result":{}}')).toEqual({
      kind: 'response',
      id: '1',
      result: Buffer.from('{}'),
      notes: { isError: false, special: false, blocks: 0 },
    })
    expect(read('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}')).toEqual({
      kind: 'error',
      id: null,
      error: Buffer.from('{"code":1,"message":""}'),
    })
    expect(read('{"jsonrpc":"2.0","error":{}}')).toMatchObject({ kind: 'error', id: null })
  })

  test('protocol: an id keeps its type', () => {
    expect(read('{"jsonrpc":"2.0","id":7,"result":{}}')).toMatchObject({ id: 7 })
    expect(read('{"jsonrpc":"2.0","id":"7","result":{}}')).toMatchObject({ id: '7' })
    expect(read('{"jsonrpc":"2.0","id":-1.5,"result":{}}')).toMatchObject({ id: -1.5 })
    expect(read('{"jsonrpc":"2.0","id":"\\u0037","result":{}}')).toMatchObject({ id: '7' })
  })

  test.each([
    ['no JSON', 'hello', /not JSON/, true],
    ['an empty text', '', /not JSON/, true],
    ['bytes after the end', '{"jsonrpc":"2.0","id":1,"result":{}}}', /not JSON/, true],
    ['a text', '"hello"', /must be a JSON object/, false],
    ['a batch', ' [{"jsonrpc":"2.0","method":"a"}]', /batches/, false],
    ['a key twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}', /twice/, false],
    ['too much nesting', `{"a":${'['.repeat(300)}${']'.repeat(300)}}`, /deeper than 256/, false],
    ['a line feed inside a string', '{"jsonrpc":"2.0","id":1,"result":{"a":"b\nc"}}', /not JSON/, true],
    ['a carriage return inside a string', '{"jsonrpc":"2.0",\n"id":1,"result":{"a":"b\rc"}}', /not JSON/, true],
    ['a line feed inside a name', '{"jsonrpc":"2.0","id":1,"method":"a","params":{"b\nc":1}}', /not JSON/, true],
    ['an id without end', `{"jsonrpc":"2.0","id":"${'x'.repeat(1_024)}","method":"a"}`, /at most 1024 bytes/, false],
    ['no version', '{"id":1,"method":"a"}', /jsonrpc/, false],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"a"}', /jsonrpc/, false],
    ['a version that is a number', '{"jsonrpc":2.0,"id":1,"method":"a"}', /jsonrpc/, false],
    ['a request with the id null', '{"jsonrpc":"2.0","id":null,"method":"a"}', /null/, false],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"a"}', /"id"/, false],
    ['an id that is true', '{"jsonrpc":"2.0","id":true,"method":"a"}', /"id"/, false],
    ['an id without end', '{"jsonrpc":"2.0","id":1e999,"method":"a"}', /"id"/, false],
    ['an id that would come back changed', '{"jsonrpc":"2.0","id":9007199254740993,"method":"a"}', /"id"/, false],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":1}', /method/, false],
    ['params in an array', '{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}', /params/, false],
    ['params that are null', '{"jsonrpc":"2.0","id":1,"method":"a","params":null}', /params/, false],
    ['a method with a result', '{"jsonrpc":"2.0","id":1,"method":"a","result":{}}', /a request and a response/, false],
    ['a result with an error', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', /both/, false],
    ['a result without id', '{"jsonrpc":"2.0","result":{}}', /"id"/, false],
    ['a result for null', '{"jsonrpc":"2.0","id":null,"result":{}}', /"id"/, false],
    ['a result that is a text', '{"jsonrpc":"2.0","id":1,"result":"x"}', /result/, false],
    ['an error that is a text', '{"jsonrpc":"2.0","id":1,"error":"x"}', /error/, false],
    ['nothing to do', '{"jsonrpc":"2.0","id":1}', /needs/, false],
  ])('E1: %s is invalid', (_, json, reason, parse) => {
    expect(read(json)).toMatchObject({ kind: 'invalid', reason: expect.stringMatching(reason), parse })
  })

  test('E1: an invalid message keeps the id that could be read', () => {
    expect(read('{"jsonrpc":"2.0","id":"x","method":1}')).toMatchObject({ kind: 'invalid', id: 'x' })
    expect(read('{"jsonrpc":"2.0","id":{},"method":"a"}')).toMatchObject({ kind: 'invalid', id: null })
  })

  test.each([
    ['{}', expect.any(String)],
    ['{"code":"E_FAIL","message":"broken"}', 'broken'],
    ['{"code":1.5,"message":"broken"}', 'broken'],
    ['{"code":null,"message":"broken","data":{"a":[1]}}', 'broken'],
    ['{"code":-32050}', expect.any(String)],
    ['{"code":-32050,"message":null}', expect.any(String)],
    ['{"code":1,"code":2,"message":"broken"}', expect.any(String)],
  ])('E1: the malformed error %s becomes a valid one, with the original as data', (error, text) => {
    const message = read(`{"jsonrpc":"2.0","id":1,"error":${error}}`)
    const valid = message.kind === 'error' ? JSON.parse(String(message.error)) : undefined
    expect(valid).toEqual({ code: -32603, message: text, data: JSON.parse(error) })
  })

  test('T2: a valid error is a slice of the input', () => {
    const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"a","data":{"b":1}}}')
    const message = readMessage(bytes)
    expect(message.kind === 'error' && message.error.buffer).toBe(bytes.buffer)
  })

  test('F14: a result is a slice of the input', () => {
    const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
    const message = readMessage(bytes)
    expect(message.kind === 'response' && message.result.buffer).toBe(bytes.buffer)
  })

  test('security: line breaks between tokens cannot end a line or an event further on', () => {
    const message = read('{\r\n  "jsonrpc": "2.0",\n  "id": 1,\r  "result": {\n    "a": "b\\nc"\n  }\n}\n')
    const result = message.kind === 'response' ? message.result.toString() : ''
    expect(result).not.toMatch(/[\r\n]/)
    expect(JSON.parse(result)).toEqual({ a: 'b\nc' })
  })

  test('security: invalid UTF-8 becomes U+FFFD, so that nothing broken is passed on', () => {
    const bytes = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"a":"'),
      Buffer.from([0x66, 0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0xc0, 0xa2]),
      Buffer.from('"}}'),
    ])
    const message = readMessage(bytes)
    const result = message.kind === 'response' ? message.result.toString() : ''
    expect(JSON.parse(result).a).toMatch(/^f\ufffd+\(\ufffd+$/)
  })

  test('a byte order mark is passed over', () => {
    expect(read('\ufeff{"jsonrpc":"2.0","id":1,"result":{}}')).toMatchObject({ kind: 'response', id: 1 })
  })

  test('security: any bytes give a message, never an exception', () => {
    const start = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"a":"')
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (array) => {
        readMessage(Buffer.from(array))
        const message = readMessage(Buffer.concat([start, Buffer.from(array), Buffer.from('"}}')]))
        if (message.kind === 'response') JSON.parse(message.result.toString())
      }),
      runs(200, 10_000),
    )
  })
})

describe('encode', () => {
  test('F14: a value that is spliced into an envelope is parsed back unchanged', () => {
    fc.assert(
      fc.property(id, object, fc.string(), (key, value, method) => {
        const carried = bytesOf(value)
        const plain = JSON.parse(carried.toString())
        expect(JSON.parse(requestBytes(key, method, carried).toString())).toEqual({
          jsonrpc: '2.0',
          id: key === 0 ? 0 : key,
          method,
          params: plain,
        })
        expect(JSON.parse(notificationBytes(method, Json.of(value)).toString())).toEqual({
          jsonrpc: '2.0',
          method,
          params: plain,
        })
        expect(readMessage(resultBytes(key, carried))).toMatchObject({ kind: 'response', result: carried })
        const error = bytesOf({ code: 1, message: method, data: value })
        expect(readMessage(errorBytes(null, error))).toMatchObject({ kind: 'error', id: null, error })
      }),
    )
  })

  test('G3: an id is returned as it was sent', () => {
    fc.assert(
      fc.property(id, (key) => {
        const message = readMessage(resultBytes(key, Buffer.from('{}')))
        expect(message.kind === 'response' && message.id === key).toBe(true)
      }),
    )
  })

  test('makes messages without params, and errors from their parts', () => {
    expect(requestBytes('a', 'ping').toString()).toBe('{"jsonrpc":"2.0","id":"a","method":"ping"}')
    expect(notificationBytes('x').toString()).toBe('{"jsonrpc":"2.0","method":"x"}')
    expect(errorBytes(1, { code: -32601, message: 'no "x"' }).toString()).toBe(
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no \\"x\\""}}',
    )
  })
})
