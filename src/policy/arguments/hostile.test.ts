import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { openChecker, schemaProblem } from './validate.ts'
import { type Fields, openValidator } from './validator.fixture.ts'

const { warnings, refusal, unusable, problems } = openValidator()

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
    expect(await refusal(schema, { a: Array(100).fill('ab'.repeat(500)) })).toContain('too complex to check')
  })

  test('F9: patterns that take long to compile are left to the server, and the others of the schema are not', async () => {
    const long = { a: { pattern: '(?:a|b)'.repeat(5_000) }, b: { pattern: '^b$' } }
    expect(await refusal({ properties: long }, { a: 'c' })).toBeUndefined()
    expect(await refusal({ properties: long }, { b: 'c' })).toBeDefined()
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`p${at}`, { pattern: `^(?:${at}x){400}$` }]))
    expect(await refusal({ properties: many }, { p0: 'c' })).toBeDefined()
    expect(await refusal({ properties: many }, { p59: 'c' })).toBeUndefined()
  })

  test('F9: a pattern that cannot be matched in linear time is left to the server', async () => {
    const schema = { properties: { a: { type: 'string', pattern: '^(?=.*\\d)(\\w)\\1$', maxLength: 5 } } }
    expect(await refusal(schema, { a: 'xyz' })).toBeUndefined()
    expect(await refusal(schema, { a: 'xyzxyz' })).toBeDefined()
  })

  test.each(['(', '[', 'a{2,1}', '*', '\\', '(?<a>x)(?<a>y)('])(
    'F9: a schema with the invalid pattern %s cannot be compiled',
    async (pattern) => {
      const schema = { properties: { a: { type: 'string', pattern } } }
      expect(await openChecker(schema)).toHaveProperty('unfit')
      expect(await openChecker({ patternProperties: { [pattern]: {} } })).toHaveProperty('unfit')
    },
  )

  test('F9: the reason why a schema cannot be compiled names the fault, in short and plain text', async () => {
    const reason = (type: string) => schemaProblem({ properties: { a: { type } } })
    expect(await reason('any')).toContain('any')
    expect(await reason(`\u202e\n${'x'.repeat(1000)}`)).toMatch(/^[\x20-\x7e]{1,150}$/)
  })

  test('F9: each pattern of a schema is matched separately', async () => {
    const schema = { properties: { zip: { pattern: '^\\d{5}$' }, name: { pattern: '^[a-z]+$' } } }
    expect(await refusal(schema, { zip: '12345', name: 'bob' })).toBeUndefined()
    expect(await problems(schema, { zip: '12345', name: '12345' })).toBe('"name" must match the pattern "^[a-z]+$".')
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
    expect(await problems(schema, { a: 1 })).toBe('they are too complex to check; send fewer or simpler values.')
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
    expect(await refusal(schema, { a: Array(20_000).fill('x899') })).toContain('too complex to check')
    expect(await refusal(schema, { a: Array(100).fill('x899') })).toBeUndefined()
  })

  test('F9: long lists are compared in linear time', async () => {
    const schema = { properties: { a: { uniqueItems: true } } }
    const items = Array.from({ length: 10_000 }, (_, index) => ({ index, list: [index] }))
    // Comparing each item with all others would take several seconds.
    await expectCpuBelow(800, async () => {
      expect(await refusal(schema, { a: items })).toBeUndefined()
      expect(await refusal(schema, { a: [...items, { list: [5], index: 5 }] })).toBeDefined()
    })
  })

  const members = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`m${at}`, at]))
  test.each<[string, Fields, unknown]>([
    ['minLength', { minLength: 1_000_001 }, 'x'.repeat(1_000_000)],
    ['maxLength', { maxLength: 999_999 }, 'x'.repeat(1_000_000)],
    ['uniqueItems', { allOf: [{ uniqueItems: true }, false] }, ['x'.repeat(1_000_000)]],
    ['minProperties', { minProperties: 5_001 }, members],
    ['objects to compare with', { enum: [{ a: 1 }, { b: 2 }] }, members],
  ])('F9: going through all of a large value for each of many forms ends (%s)', async (_, form, value) => {
    const anyOf = Array.from({ length: 100 }, () => form)
    expect(await refusal({ properties: { a: { anyOf } } }, { a: value })).toContain('too complex to check')
  })

  test('F9: large valid arguments pass', async () => {
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

  test('F9: with any schema, a call is allowed or refused with a message', async () => {
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
          const told = (await schemaProblem(given))
            ? await unusable(given, args as Fields)
            : await refusal(given, args as Fields)
          if (told !== undefined)
            expect(told).toMatch(/^(Invalid arguments for files\.read: .+\.|files\.read cannot be used: .+)$/s)
        },
      ),
      runs(30, 20_000),
    )
  })

  test('F9: an argument that is named as a method confuses no comparison', async () => {
    const schema = { const: true, enum: [{}] }
    for (const args of [{ valueOf: 1 }, { toString: 1 }, Object.create(null) as Fields]) {
      expect(await refusal(schema, args)).toMatch(/^Invalid arguments/)
    }
  })

  test('F9: nor does it disable the check for later calls', async () => {
    const schema = { properties: { a: { enum: [{ x: 1 }] } } }
    expect(await refusal(schema, { a: { valueOf: 1 } })).toMatch(/^Invalid arguments/)
    expect(await refusal(schema, { a: 'something else' })).toMatch(/^Invalid arguments/)
    expect(await refusal(schema, { a: { x: 1 } })).toBeUndefined()
  })

  test('F9: changes of a schema for safety do not change its meaning', async () => {
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
      runs(8, 5_000),
    )
    expect(warnings).toEqual([])
  })
})
