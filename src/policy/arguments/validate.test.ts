import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { argumentValidator } from './validate.ts'

type Fields = Record<string, unknown>

const warnings: object[] = []
const log: Log = { debug() {}, info() {}, error() {}, warn: (facts) => void warnings.push(facts) }
const validate = argumentValidator({ log })

const refusal = async (schema: Fields, args: Fields): Promise<string | undefined> => {
  try {
    await validate(schema, args, 'files.read')
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(ToolwayError)
    expect((error as ToolwayError).code).toBe('INVALID_ARGUMENTS')
    return (error as Error).message
  }
}
const problems = async (schema: Fields, args: Fields) =>
  (await refusal(schema, args))?.replace(/^The arguments of files\.read do not fit: /, '')

const read = {
  type: 'object',
  properties: {
    path: { type: 'string', minLength: 1 },
    mode: { enum: ['text', 'binary', 'lines'] },
    limit: { type: 'integer', minimum: 1, maximum: 100 },
    tags: { type: 'array', items: { type: 'string' }, uniqueItems: true, maxItems: 3 },
    options: { type: 'object', properties: { deep: { type: 'boolean' } }, additionalProperties: false },
    target: { anyOf: [{ type: 'string' }, { type: 'null' }, { type: 'array' }] },
    id: { type: 'string', pattern: '^[a-z]+-\\d+$' },
    site: { type: 'string', format: 'uri' },
  },
  required: ['path'],
  additionalProperties: false,
}

describe('arguments against the schema of a tool', () => {
  test('F9: what fits passes, and after the first call without waiting', async () => {
    await validate(read, { path: '/a' }, 'files.read')
    expect(
      validate(
        read,
        {
          path: '/a',
          mode: 'text',
          limit: 3,
          tags: ['a', 'b'],
          options: { deep: true },
          target: null,
          id: 'a-1',
          site: 'https://x.example',
        },
        'files.read',
      ),
    ).toBeUndefined()
  })

  test.each<[Fields, string]>([
    [{}, '"path" is missing, it must be a string.'],
    [{ path: 1 }, '"path" must be a string, not a number.'],
    [{ path: '' }, '"path" must be at least 1 character long.'],
    [{ path: '/a', mode: 'txt' }, '"mode" must be one of text, binary, lines (did you mean "text"?).'],
    [{ path: '/a', limit: 0 }, '"limit" must be at least 1.'],
    [{ path: '/a', limit: 1.5 }, '"limit" must be a whole number, not a fraction.'],
    [{ path: '/a', limit: '5' }, '"limit" must be a whole number, not a string.'],
    [{ path: '/a', tags: ['a', 2] }, '"tags[1]" must be a string, not a number.'],
    [{ path: '/a', tags: ['a', 'a'] }, '"tags" must not have the same item twice.'],
    [{ path: '/a', tags: ['a', 'b', 'c', 'd'] }, '"tags" must have at most 3 items.'],
    [{ path: '/a', options: { dep: true } }, '"options.dep" is unknown (did you mean "deep"?).'],
    [{ path: '/a', options: { other: true } }, '"options.other" is unknown (known are deep).'],
    [{ path: '/a', target: 5 }, '"target" must be a string, null or a list, not a number.'],
    [{ path: '/a', id: 'A1' }, '"id" must match the pattern "^[a-z]+-\\\\d+$".'],
    [{ path: '/a', site: 'nowhere' }, '"site" must be a valid uri.'],
    [
      { pth: '/a' },
      '"path" is missing, it must be a string (you sent "pth"); "pth" is unknown (did you mean "path"?).',
    ],
  ])('F9: %j is told what is wrong', async (args, expected) => {
    expect(await problems(read, args)).toBe(expected)
  })

  test('F9: null stands for what may be left out, and for nothing that is needed', async () => {
    expect(await problems(read, { path: '/a', mode: null, limit: null })).toBeUndefined()
    expect(await problems(read, { path: null })).toMatch(/^"path" must be a string/)
    expect(await problems(read, { path: '/a', limit: null, mode: 'txt' })).toMatch(/^"mode" must be one of/)
    expect(await problems(read, { path: '/a', tags: [null] })).toMatch(/^"tags\[0\]" must be a string/)
  })

  test('F9: a few problems at a time, and never the values', async () => {
    const schema = {
      type: 'object',
      properties: Object.fromEntries([...'abcdefgh'].map((name) => [name, { type: 'number' }])),
    }
    const args = Object.fromEntries([...'abcdefgh'].map((name) => [name, 'hunter2']))
    const told = await problems(schema, args)
    expect(told).toMatch(/^"a" must be a number, not a string; "b" .*; "e" [^;]*; and 3 more\.$/)
    for (const bad of [
      { path: { secret: 'hunter2' } },
      { path: '/a', mode: 'hunter2' },
      { path: '/a', id: 'hunter2!' },
    ]) {
      expect(await problems(read, bad)).not.toContain('hunter2')
    }
  })

  test('F9: a failed choice tells what came nearest', async () => {
    const shape = {
      type: 'object',
      properties: {
        shape: {
          oneOf: [
            {
              type: 'object',
              properties: { kind: { const: 'circle' }, radius: { type: 'number' } },
              required: ['kind', 'radius'],
            },
            {
              type: 'object',
              properties: { kind: { const: 'square' }, side: { type: 'number' } },
              required: ['kind', 'side'],
            },
          ],
        },
      },
    }
    expect(await problems(shape, { shape: { kind: 'circle', radius: 1 } })).toBeUndefined()
    expect(await problems(shape, { shape: { kind: 'circle' } })).toContain(
      '"shape.radius" is missing, it must be a number',
    )
    const both = { properties: { a: { oneOf: [{ type: 'number' }, { minimum: 1 }] } } }
    expect(await problems(both, { a: 5 })).toBe('"a" fits more than one of the forms that exclude one another.')
  })

  test.each<[string, Fields, Fields, boolean]>([
    [
      '2020-12 by default',
      { properties: { a: { prefixItems: [{ type: 'string' }], items: false } } },
      { a: ['x', 1] },
      false,
    ],
    [
      '2020-12',
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        properties: { a: { $ref: '#/$defs/n' } },
        $defs: { n: { type: 'number' } },
      },
      { a: 'x' },
      false,
    ],
    ['2020-12 refs', { $ref: '#named', $defs: { x: { $anchor: 'named', required: ['a'] } } }, {}, false],
    [
      '2019-09',
      { $schema: 'https://json-schema.org/draft/2019-09/schema', dependentRequired: { a: ['b'] } },
      { a: 1 },
      false,
    ],
    [
      'draft-07',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        properties: { a: { items: [{ type: 'string' }], additionalItems: false } },
      },
      { a: ['x', 1] },
      false,
    ],
    ['draft-07 without saying so', { properties: { a: { items: [{ type: 'string' }] } } }, { a: [1] }, false],
    [
      'both kinds of dependencies',
      { $schema: 'http://json-schema.org/draft-07/schema#', dependencies: { a: ['b'], c: { required: ['d'] } } },
      { c: 1 },
      false,
    ],
    ['if and then', JSON.parse('{"if":{"required":["a"]},"then":{"required":["b"]}}'), { a: 1 }, false],
    ['nullable', { properties: { a: { type: 'string', nullable: true } } }, { a: null }, true],
    ['nullable alone', { properties: { a: { nullable: true, enum: ['x'] } } }, { a: 'y' }, false],
    ['unevaluated', { allOf: [{ properties: { a: true } }], unevaluatedProperties: false }, { b: 1 }, false],
    ['nothing', {}, { anything: 1 }, true],
    ['unknown formats', { properties: { a: { format: 'path' } } }, { a: 'x' }, true],
    ['dates without a zone', { properties: { a: { format: 'date-time' } } }, { a: '2026-01-02T03:04:05' }, true],
    ['no dates', { properties: { a: { format: 'date-time' } } }, { a: 'tomorrow' }, false],
    [
      'a property called like a keyword',
      { properties: { enum: { type: 'string' }, $ref: { type: 'number' } } },
      { enum: 'a', $ref: 1 },
      true,
    ],
    [
      '__proto__',
      JSON.parse('{"properties":{"__proto__":{"type":"number"}},"additionalProperties":false}'),
      JSON.parse('{"a":1}'),
      false,
    ],
  ])('F9: %s', async (_title, schema, args, fits) => {
    expect((await refusal(schema, args)) === undefined).toBe(fits)
  })

  test('F9: arguments are never changed', async () => {
    const schema = {
      properties: { a: { type: 'number', default: 1 }, b: { type: 'number' } },
      additionalProperties: false,
    }
    const args = Object.freeze({ b: 2 })
    expect(await refusal(schema, args)).toBeUndefined()
    expect(args).toEqual({ b: 2 })
  })
})

describe('schemas that cannot be checked against', () => {
  test.each<[string, Fields]>([
    ['elsewhere', { $ref: 'https://evil.example/schema.json' }],
    ['elsewhere', { properties: { a: { $ref: 'file:///etc/passwd' } } }],
    ['elsewhere', { properties: { a: { $ref: 'other.json#/x' } } }],
    ['elsewhere', { $id: 'https://evil.example/', $ref: 'x' }],
    ['elsewhere', { $dynamicRef: 'https://evil.example/#x' }],
    ['into a value', { const: { type: 'number' }, properties: { a: { $ref: '#/const' } } }],
    ['nowhere', { $ref: '#/$defs/missing' }],
    ['an endless one', { $ref: '#' }],
    [
      'an endless one',
      {
        allOf: [{ $ref: '#/$defs/a' }],
        $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } },
      },
    ],
    ['no schema', { type: 'strnig' }],
    ['no schema', { properties: 'all' }],
    ['no schema', { required: true }],
    ['no schema', { maxLength: '1); process.exit(1' }],
    [
      'a huge one',
      { properties: Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`p${index}`, { type: 'string' }])) },
    ],
    ['a huge list', { enum: Array.from({ length: 60_000 }, (_, index) => index) }],
    ['a deep one', JSON.parse('{"properties":{"a":'.repeat(200) + '{}' + '}}'.repeat(200))],
  ])('F9: %s is logged once and lets everything through (%#)', async (_title, schema) => {
    warnings.length = 0
    for (let call = 0; call < 3; call++) expect(await refusal(structuredClone(schema), { a: 1 })).toBeUndefined()
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ tool: 'files.read', reason: expect.any(String) })
  })

  test('F9: the schemas of two servers do not know one another', async () => {
    await refusal({ $id: 'https://a.example/s', $defs: { x: { $id: 'https://a.example/x', type: 'string' } } }, {})
    warnings.length = 0
    expect(await refusal({ properties: { a: { $ref: 'https://a.example/x' } } }, { a: 1 })).toBeUndefined()
    expect(warnings).toHaveLength(1)
  })
})

describe('hostile schemas and arguments', () => {
  test('F9: a pattern that is catastrophic elsewhere is matched at once', async () => {
    const schema = {
      properties: { a: { type: 'string', pattern: '^(a+)+$' }, b: { pattern: '^([a-zA-Z0-9]+\\s?)*$' } },
    }
    expect(await refusal(schema, { a: 'a'.repeat(50_000) })).toBeUndefined()
    expect(await refusal(schema, { a: `${'a'.repeat(50_000)}!` })).toBeDefined()
    expect(await refusal(schema, { b: `${'a'.repeat(50_000)}!` })).toBeDefined()
  })

  test('F9: matching many strings against large patterns ends', async () => {
    const schema = { properties: { a: { type: 'array', items: { pattern: '(a|aa|aaa|aaaa){0,200}b$' } } } }
    expect(await refusal(schema, { a: ['aaab'] })).toBeUndefined()
    expect(await refusal(schema, { a: Array(100).fill('ab'.repeat(500)) })).toContain('too many to be checked')
  })

  test('F9: a pattern that cannot be matched in linear time is left to the server', async () => {
    const schema = { properties: { a: { type: 'string', pattern: '^(?=.*\\d)(\\w)\\1$', maxLength: 5 } } }
    expect(await refusal(schema, { a: 'xyz' })).toBeUndefined()
    expect(await refusal(schema, { a: 'xyzxyz' })).toBeDefined()
  })

  test.each([
    ['^[\\u4e00-\\u9fa5]+$', '中文', 'abc'],
    ['^\\p{L}+$', 'été', '123'],
    ['^\\d{3}-\\d{4}$', '555-1234', '5551234'],
    ['^[\\w.-]+@[\\w.-]+$', 'a.b@c.de', 'a b'],
    ['^https?:\\/\\/', 'https://x', 'ftp://x'],
    ['foo', 'a foo b', 'bar'],
  ])('F9: the pattern %s means what it means in JavaScript', async (pattern, good, bad) => {
    const schema = { properties: { a: { pattern } } }
    expect(await refusal(schema, { a: good })).toBeUndefined()
    expect(await refusal(schema, { a: bad })).toBeDefined()
  })

  test('F9: definitions that double with each step end', async () => {
    const $defs: Fields = { d40: { type: 'number' } }
    for (let step = 0; step < 40; step++) {
      $defs[`d${step}`] = { allOf: [{ $ref: `#/$defs/d${step + 1}` }, { $ref: `#/$defs/d${step + 1}` }] }
    }
    const schema = { properties: { a: { $ref: '#/$defs/d0' } }, $defs }
    expect(await problems(schema, { a: 1 })).toBe('they are too many to be checked; send fewer or simpler ones.')
  })

  test('F9: arguments that make an innocent schema double its work end', async () => {
    const node = {
      anyOf: [
        { properties: { next: { $ref: '#' }, a: { type: 'string' } } },
        { properties: { next: { $ref: '#' }, b: { type: 'string' } } },
      ],
    }
    let args: Fields = { a: 1, b: 1 }
    for (let depth = 0; depth < 60; depth++) args = { next: args }
    expect(await refusal(node, { next: { a: 'x' } })).toBeUndefined()
    expect(await refusal(node, args)).toBeDefined()
  })

  test('F9: many alternatives for many items end', async () => {
    const anyOf = Array.from({ length: 900 }, (_, index) => ({ const: `x${index}` }))
    const schema = { properties: { a: { type: 'array', items: { anyOf } } } }
    expect(await refusal(schema, { a: Array(500_000).fill('x899') })).toContain('too many to be checked')
    expect(await refusal(schema, { a: Array(100).fill('x899') })).toBeUndefined()
  })

  test('F9: long lists are compared in linear time', async () => {
    const schema = { properties: { a: { uniqueItems: true } } }
    const items = Array.from({ length: 100_000 }, (_, index) => ({ index, list: [index] }))
    expect(await refusal(schema, { a: items })).toBeUndefined()
    expect(await refusal(schema, { a: [...items, { list: [5], index: 5 }] })).toBeDefined()
  })

  test('F9: large honest arguments pass', async () => {
    const schema = {
      properties: {
        rows: {
          type: 'array',
          items: { type: 'object', properties: { id: { type: 'number' }, name: { type: 'string' } } },
        },
      },
    }
    const rows = Array.from({ length: 50_000 }, (_, id) => ({ id, name: `row ${id}` }))
    expect(await refusal(schema, { rows })).toBeUndefined()
    expect(await problems(schema, { rows: [...rows, { id: 'x' }] })).toBe('"rows[50000].id" must be a number.')
  })

  test('F9: whatever the schema, a call is let through or refused with a sentence', async () => {
    const keyword = fc.constantFrom(
      'type',
      'properties',
      'items',
      'anyOf',
      'enum',
      '$ref',
      'required',
      'pattern',
      'not',
      'if',
      'const',
      'maximum',
      'format',
      'dependentRequired',
      'patternProperties',
      'nullable',
      'prefixItems',
      '$defs',
    )
    const { schema } = fc.letrec<{ schema: Fields; value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom('string', 'object', '#', '#/properties/a', '^a', 1, null, true),
        tie('schema'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b', 'toString'), tie('value'), { maxKeys: 3 }),
      ),
      schema: fc.dictionary(keyword, tie('value'), { maxKeys: 4 }),
    }))
    await fc.assert(
      fc.asyncProperty(
        schema,
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.jsonValue({ maxDepth: 3 })),
        async (given, args) => {
          const told = await refusal(given, args as Fields)
          if (told !== undefined) expect(told).toMatch(/^The arguments of files\.read do not fit: .+\.$/s)
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('F9: an argument that is named as a method confuses no comparison', async () => {
    const schema = { const: true, enum: [{}] }
    for (const args of [{ valueOf: 1 }, { toString: 1 }, Object.create(null) as Fields]) {
      expect(await refusal(schema, args)).toMatch(/do not fit/)
    }
  })

  test('F9: nor does it turn the check off for those who come after', async () => {
    const schema = { properties: { a: { enum: [{ x: 1 }] } } }
    expect(await refusal(schema, { a: { valueOf: 1 } })).toMatch(/do not fit/)
    expect(await refusal(schema, { a: 'something else' })).toMatch(/do not fit/)
    expect(await refusal(schema, { a: { x: 1 } })).toBeUndefined()
  })

  test('F9: what is added to a schema for safety does not change what it means', async () => {
    warnings.length = 0
    const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'object', 'array', 'null')
    const { schema } = fc.letrec<{ schema: Fields | boolean; more: Fields | boolean }>((tie) => ({
      more: fc.oneof(
        { depthSize: 'small' },
        fc.boolean(),
        type.map((name): Fields => ({ type: name })),
        tie('schema'),
      ),
      schema: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<Fields>(
          { $ref: '#/$defs/x' },
          { enum: ['x', 1, null, { a: [1] }] },
          { const: { a: 1 } },
          { minLength: 2, minimum: 0 },
          { pattern: '^[a-c]+$' },
          { uniqueItems: true },
        ),
        fc
          .dictionary(fc.constantFrom('a', 'b'), tie('more'))
          .map((properties) => ({ properties, additionalProperties: false })),
        fc.tuple(tie('more'), fc.subarray(['a', 'b'])).map(([a, required]) => ({ properties: { a }, required })),
        fc.array(tie('more'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
        fc.array(tie('more'), { minLength: 1, maxLength: 3 }).map((oneOf) => ({ oneOf })),
        fc.array(tie('more'), { minLength: 1, maxLength: 3 }).map((allOf) => ({ allOf })),
        tie('more').map((not) => ({ not })),
        tie('more').map((items) => ({ items, maxItems: 2 })),
        fc.tuple(tie('more'), tie('more')).map(([a, b]) =>
          Object.fromEntries([
            ['if', a],
            ['then', b],
          ]),
        ),
        tie('more').map((a) => ({ allOf: [{ properties: { a } }], unevaluatedProperties: false })),
      ),
    }))
    const args = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.jsonValue({ maxDepth: 2 }))
    await fc.assert(
      fc.asyncProperty(schema, args, async (given, values) => {
        const whole = { allOf: [given], $defs: { x: { type: ['string', 'object'] } } }
        const plain = new Ajv2020({ strict: false, logger: false, meta: false, validateSchema: false }).compile(whole)
        const withoutNulls = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
        expect((await refusal(whole, values)) === undefined).toBe(plain(values) || plain(withoutNulls))
      }),
      { numRuns: 200 },
    )
    expect(warnings).toEqual([])
  })
})
