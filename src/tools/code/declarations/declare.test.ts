import { stripTypeScriptTypes } from 'node:module'
import { expect, test } from 'vitest'
import { ExactNumber } from '../../../json/parse-json.ts'
import { declareServers, toolDeclaration } from './schema-type.ts'

const methodOf = (inputSchema: unknown, more: object = {}) =>
  toolDeclaration(
    { identifier: 'tool', name: 'tool', definition: { inputSchema: inputSchema as never, ...more } },
    6000,
  )

/** The type of one property `x` of the arguments. */
const typeOf = (schema: unknown, root: object = {}): string => {
  const text = methodOf({ type: 'object', properties: { x: schema }, ...root }).replaceAll(/\s+/g, ' ')
  return (
    /^tool\(args\?: \{ (?:\/\*\*.*?\*\/ )?x\?: (.*?);? \}\): Promise<any \/\* no outputSchema \*\/>$/.exec(text)?.[1] ??
    text
  )
}

test.each([
  [{ type: 'string' }, 'string'],
  [{ type: 'integer' }, 'number'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ type: 'string', nullable: true }, 'string | null'],
  [{ enum: ['a', 'b', 3, null] }, '"a" | "b" | 3 | null'],
  [{ const: 'only' }, '"only"'],
  [{ const: { a: [1, true] } }, '{ "a": [1, true] }'],
  [{ type: 'array', items: { type: 'string' } }, 'string[]'],
  [{ type: 'array', items: { enum: [1, 2] } }, '(1 | 2)[]'],
  [{ type: 'array' }, 'unknown[]'],
  [
    { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false, minItems: 1 },
    '[string, number?]',
  ],
  [{ type: 'array', items: [{ type: 'string' }], additionalItems: { type: 'number' } }, '[string?, ...number[]]'],
  [{ type: 'object' }, 'Record<string, unknown>'],
  [{ type: 'object', additionalProperties: false }, '{}'],
  [{ additionalProperties: { type: 'number' } }, 'Record<string, number>'],
  [{ properties: { a: { type: 'string' } }, required: ['a'] }, '{ a: string }'],
  [
    { properties: { a: { type: 'string' } }, additionalProperties: { type: 'number' } },
    '{ a?: string; /* others: number */ [key: string]: unknown }',
  ],
  [{ patternProperties: { '^x': { type: 'boolean' } } }, 'Record<string, boolean>'],
  [
    { properties: { 'a-b': {}, 'it\'s "x"': {}, 1: {} } },
    '{ "1"?: unknown; "a-b"?: unknown; "it\'s \\"x\\""?: unknown }',
  ],
  [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, 'string | number'],
  [{ oneOf: [{ type: 'string' }, {}] }, 'unknown'],
  [{ allOf: [{ properties: { a: {} } }, { properties: { b: {} } }] }, '{ a?: unknown } & { b?: unknown }'],
  [{ type: 'object', properties: { a: {} }, anyOf: [{ required: ['a'] }] }, '{ a?: unknown } & { a: unknown }'],
  [{ type: 'object', required: ['a', 'b'] }, '{ a: unknown; b: unknown }'],
  [{ description: 'A name.', required: true }, 'unknown'],
  [{ not: {} }, 'never'],
  [{ type: 'integer', const: new ExactNumber('9007199254740993') }, '9007199254740993'],
  [true, 'unknown'],
  [false, 'never'],
  ['nonsense', 'unknown'],
  [{ type: 'strnig' }, 'unknown'],
])('B9: the schema %j is the type %s', (schema, type) => {
  expect(typeOf(schema)).toBe(type)
})

test('B9: descriptions, formats, bounds and defaults, which a type cannot express, are comments', () => {
  const schema = { type: 'string', description: 'Where\nto.', format: 'uri', maxLength: 9 }
  expect(methodOf({ properties: { to: schema }, required: ['to'] }, { description: 'Sends.' })).toBe(
    [
      '/** Sends. */',
      'tool(args: {',
      '  /** Where to. — format uri, max length 9 */',
      '  to: string;',
      '}): Promise<any /* no outputSchema */>',
    ].join('\n'),
  )
})

test('B9: an argument with a default is optional, even if the schema lists it in required; a result has it', () => {
  const schema = { type: 'object', properties: { scale: { type: 'string', default: 'css' } }, required: ['scale'] }
  expect(methodOf(schema, { outputSchema: schema }).replaceAll(/\s+/g, ' ')).toBe(
    'tool(args?: { /** default "css" */ scale?: string; }): Promise<{ /** default "css" */ scale: string; }>',
  )
})

test('B9: a long enum shows its first values', () => {
  const type = typeOf({ enum: Array.from({ length: 60 }, (_, at) => `v${at}`) })
  expect(type).toMatch(/^\("v0" \| "v1" .* "v49" \| string \/\* one of 60 values \*\/\)$/)
})

test.each([
  { $ref: '#/$defs/a', $defs: { a: { required: ['x'] } } },
  { allOf: [{ type: 'object' }, { required: ['x'] }] },
  { oneOf: [{ required: ['x'] }, { required: ['y'] }] },
])('B9: arguments are required by %j', (schema) => {
  expect(methodOf(schema)).toMatch(/^tool\(args: /)
})

test('B9: arguments are optional if one alternative requires none, or a reference goes in circles', () => {
  expect(methodOf({ anyOf: [{ required: ['x'] }, {}] })).toMatch(/^tool\(args\?: /)
  expect(methodOf({ allOf: [{ $ref: '#' }, { $ref: '#' }] })).toMatch(/^tool\(args\?: /)
})

test('B9: the flag of draft 4 for a bound and long numbers are described exactly', () => {
  const maximum = new ExactNumber('9223372036854775807')
  expect(methodOf({ properties: { n: { minimum: 0, exclusiveMinimum: true, maximum } } })).toContain(
    '/** at most 9223372036854775807, more than 0 */',
  )
})

test('B9: an output schema is the type of the result', () => {
  const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  expect(methodOf({ type: 'object' }, { outputSchema })).toBe(
    'tool(args?: Record<string, unknown>): Promise<{ sum: number }>',
  )
})

test('B9: references are resolved within their own schema, without cycles, and nowhere else', () => {
  const $defs = {
    'a/b c': { type: 'string' },
    node: { type: 'object', properties: { next: { $ref: '#/$defs/node' }, size: { type: 'number' } } },
  }
  expect(typeOf({ $ref: '#/$defs/a~1b%20c' }, { $defs })).toBe('string')
  expect(typeOf({ $ref: '#/$defs/node' }, { $defs })).toBe('{ next?: unknown; size?: number }')
  expect(typeOf({ $ref: '#' })).toBe('{ x?: unknown }')
  for (const $ref of [
    'file:///etc/passwd',
    'https://example.com/x.json',
    '/etc/passwd',
    '#/%zz',
    '#/$defs/none',
    '#/constructor',
    7,
    { toString: 1, valueOf: 1 },
  ]) {
    expect(typeOf({ $ref }, { $defs }), JSON.stringify($ref)).toBe('unknown')
  }
})

test('B9: no text of a server can end a comment, hide, or turn what follows around', () => {
  const hostile = 'x */ }; process.exit() /* \u202e\u200b\u001b[31m \u{e0041} \u2028 \u{e0101}\u3164\ufe01 y'
  const text = methodOf(
    {
      properties: { a: { description: hostile, default: hostile, pattern: hostile }, [hostile]: { const: hostile } },
      additionalProperties: { const: '*/' },
    },
    { description: hostile },
  )
  expect(stripTypeScriptTypes(declareServers(new Map([['server', [text]]]))).trim()).toBe('')
  expect(text).not.toMatch(/[\u202e\u200b\u001b\u2028\u3164\u{e0041}]|\u{e0101}|\ufe01/u)
})

test('B9: servers and their tools become one declaration', () => {
  expect(declareServers(new Map())).toBe('')
  expect(
    declareServers(
      new Map([
        ['files', [methodOf({})]],
        ['a-b', [methodOf({}), methodOf({})]],
      ]),
    ),
  ).toBe(
    [
      'declare const tools: {',
      '  files: { tool(args?: unknown): Promise<any /* no outputSchema */> };',
      '  "a-b": {',
      '    tool(args?: unknown): Promise<any /* no outputSchema */>;',
      '    tool(args?: unknown): Promise<any /* no outputSchema */>;',
      '  };',
      '}',
    ].join('\n'),
  )
})
