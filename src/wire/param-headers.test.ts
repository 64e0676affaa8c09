import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import {
  declaredParamHeaders,
  decodeHeaderValue,
  encodeHeaderValue,
  invalidParamHeaders,
  paramHeaders,
} from './param-headers.ts'
import { isModernVersion, nameField, withoutEnvelope } from './revisions.ts'

describe('B2: values of headers', () => {
  test.each([
    ['plain', 'plain'],
    ['with  space\tand tab', 'with  space\tand tab'],
    ['Zürich', '=?base64?WsO8cmljaA==?='],
    ['', '=?base64??='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['a\nb', '=?base64?YQpi?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
    ['=?base64?=', '=?base64?='],
  ])('%j is sent as %s', (text, header) => {
    expect(encodeHeaderValue(text)).toBe(header)
    expect(decodeHeaderValue(header)).toBe(text)
  })

  test.each(['=?base64?A?=', '=?base64?QQ?=', '=?base64?QR==?=', '=?base64?/w==?=', '=?base64?QQ==\n?=', 'Zürich'])(
    '%j says nothing',
    (header) => {
      expect(decodeHeaderValue(header)).toBeUndefined()
    },
  )

  test('space around a value does not count, and the marks are spelt in one way', () => {
    expect(decodeHeaderValue(' \tx ')).toBe('x')
    expect(decodeHeaderValue('=?BASE64?eA==?=')).toBe('=?BASE64?eA==?=')
  })

  test('every text is encoded as a valid header value and decoded unchanged', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: anyCharacter }), fc.string(), fc.constantFrom(' a', 'a\t', '=?base64?')),
        (text) => {
          const header = encodeHeaderValue(text)
          expect(header).toMatch(/^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/)
          expect(decodeHeaderValue(header)).toBe(text)
        },
      ),
      runs(20, 1_000),
    )
  })
})

const annotated = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name })
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })

describe('B2: arguments in headers', () => {
  test('are spelt by their type, wherever fixed names lead to them', () => {
    const schema = object({
      region: annotated('Region'),
      count: annotated('Count', 'integer'),
      dry: annotated('Dry', 'boolean'),
      deep: object({ er: annotated('Deeper'), plain: { type: 'string' } }),
    })
    expect(invalidParamHeaders(schema)).toBeUndefined()
    expect(paramHeaders(schema, { region: 'Zürich', count: 42, dry: false, deep: { er: 'x', plain: 'y' } })).toEqual({
      'mcp-param-region': '=?base64?WsO8cmljaA==?=',
      'mcp-param-count': '42',
      'mcp-param-dry': 'false',
      'mcp-param-deeper': 'x',
    })
  })

  test('null, missing and unencodable arguments have no header', () => {
    const schema = object({
      a: annotated('A'),
      b: annotated('B'),
      c: annotated('C', 'integer'),
      toString: annotated('D'),
    })
    expect(paramHeaders(schema, { a: null, c: 2 ** 60 })).toEqual({})
    expect(paramHeaders(schema, undefined)).toEqual({})
    expect(paramHeaders(schema, { a: { x: 1 } })).toEqual({})
    expect(paramHeaders(undefined, { a: 'x' })).toEqual({})
  })

  test.each([
    ['an empty name', object({ a: annotated('') })],
    ['no text', object({ a: annotated(7) })],
    ['a name with a space', object({ a: annotated('My Region') })],
    ['a name with a colon', object({ a: annotated('A:B') })],
    ['a name with a line break', object({ a: annotated('A\r\nB') })],
    ['a number', object({ a: annotated('A', 'number') })],
    ['an object', object({ a: annotated('A', 'object') })],
    ['a list of types', object({ a: annotated('A', ['string', 'null']) })],
    ['no type', object({ a: { 'x-mcp-header': 'A' } })],
    ['the same name in another case', object({ a: annotated('Region'), b: annotated('REGION') })],
    ['the root', { ...object({}), 'x-mcp-header': 'A' }],
    ['an item', object({ a: { type: 'array', items: annotated('A') } })],
    ['one of several items', object({ a: { type: 'array', items: [annotated('A')] } })],
    ['an alternative', object({}, { anyOf: [object({ a: annotated('A') })] })],
    ['a definition', object({}, { $defs: { a: annotated('A') } })],
    ['a condition', object({}, { if: object({ a: annotated('A') }) })],
    ['a pattern', object({}, { patternProperties: { '^a': annotated('A') } })],
    ['whatever else there is', object({}, { additionalProperties: annotated('A') })],
  ])('%s cannot be annotated, and then nothing is', (_what, schema) => {
    expect(invalidParamHeaders(schema)).toContain('x-mcp-header')
    expect(declaredParamHeaders(schema)).toEqual([])
  })

  test('a property may be called as the annotation is', () => {
    expect(invalidParamHeaders(object({ 'x-mcp-header': { type: 'string' } }))).toBeUndefined()
  })
})

describe('B2: the words of the stateless revision', () => {
  test('the envelope stays on its hop, other members are forwarded', () => {
    const own = { progressToken: 1, traceparent: 't', 'io.modelcontextprotocol/other': {} }
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': {},
      'io.modelcontextprotocol/logLevel': 'info',
      ...own,
    }
    expect(withoutEnvelope(meta)).toEqual(own)
    expect(withoutEnvelope(own)).toBe(own)
  })

  test('names are repeated for what has one', () => {
    expect(['tools/call', 'prompts/get', 'resources/read', 'tasks/get'].map(nameField)).toEqual([
      'name',
      'name',
      'uri',
      'taskId',
    ])
    expect([nameField('tools/list'), nameField('constructor')]).toEqual([undefined, undefined])
  })

  test('versions compare as text', () => {
    expect(['2026-07-28', 'v999.0.0', '2099-01-01'].every(isModernVersion)).toBe(true)
    expect(['2025-11-25', '2024-11-05', ''].some(isModernVersion)).toBe(false)
  })
})
