import { describe, expect, test } from 'vitest'
import { schemaProblem } from './validate.ts'
import { type Fields, openValidator } from './validator.fixture.ts'

const { warnings, validate, refusal, unusable, problems } = openValidator()

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
  test('F9: valid arguments pass, and after the first call without waiting', async () => {
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
    [{}, '"path" is missing and must be a string.'],
    [{ path: 1 }, '"path" must be a string, not a number.'],
    [{ path: '' }, '"path" must be at least 1 character long.'],
    [{ path: '/a', mode: 'txt' }, '"mode" must be one of text, binary, lines (did you mean "text"?).'],
    [{ path: '/a', limit: 0 }, '"limit" must be at least 1.'],
    [{ path: '/a', limit: 1.5 }, '"limit" must be a whole number, not a fraction.'],
    [{ path: '/a', limit: '5' }, '"limit" must be a whole number, not a string.'],
    [{ path: '/a', tags: ['a', 2] }, '"tags[1]" must be a string, not a number.'],
    [{ path: '/a', tags: ['a', 'a'] }, '"tags" must not contain duplicate items.'],
    [{ path: '/a', tags: ['a', 'b', 'c', 'd'] }, '"tags" must have at most 3 items.'],
    [{ path: '/a', options: { dep: true } }, '"options.dep" is unknown (did you mean "deep"?).'],
    [{ path: '/a', options: { other: true } }, '"options.other" is unknown (known fields: deep).'],
    [{ path: '/a', target: 5 }, '"target" must be a string, null or a list, not a number.'],
    [{ path: '/a', id: 'A1' }, '"id" must match the pattern "^[a-z]+-\\\\d+$".'],
    [{ path: '/a', site: 'nowhere' }, '"site" must be a valid uri.'],
    [
      { pth: '/a' },
      '"path" is missing and must be a string (you sent "pth"); "pth" is unknown (did you mean "path"?).',
    ],
  ])('F9: %j gets an error that says what is wrong', async (args, expected) => {
    expect(await problems(read, args)).toBe(expected)
  })

  test('F9: null stands for what may be left out, and for nothing that is needed', async () => {
    expect(await problems(read, { path: '/a', mode: null, limit: null })).toBeUndefined()
    expect(await problems(read, { path: null })).toMatch(/^"path" must be a string/)
    expect(await problems(read, { path: '/a', limit: null, mode: 'txt' })).toMatch(/^"mode" must be one of/)
    expect(await problems(read, { path: '/a', tags: [null] })).toMatch(/^"tags\[0\]" must be a string/)
  })

  test('F9: an argument with a default may be left out, even if the schema lists it in required', async () => {
    const scale = { type: 'string', enum: ['css', 'device'], default: 'css' }
    const schema = {
      type: 'object',
      properties: {
        scale,
        type: { type: 'string' },
        clip: { type: 'object', properties: { width: { type: 'number', default: 0 } }, required: ['width'] },
      },
      required: ['scale', 'type'],
      additionalProperties: false,
    }
    expect(await problems(schema, { type: 'png', clip: {} })).toBeUndefined()
    expect(await problems(schema, { type: 'png', scale: null })).toBeUndefined()
    expect(await problems(schema, {})).toBe('"type" is missing and must be a string.')
    expect(await problems(schema, { type: 'png', scale: 'print' })).toMatch(/^"scale" must be one of css, device/)
  })

  test('F9: a default does not change which arguments a condition is about', async () => {
    const mode = { properties: { mode: { default: 'fast' } }, required: ['mode'] }
    expect(await problems({ not: mode }, {})).toBeUndefined()
    expect(await problems({ not: mode }, { mode: 'slow' })).toBeDefined()
    const schema = { if: { anyOf: [mode] }, ...JSON.parse('{"then":{"required":["speed"]}}') }
    expect(await problems(schema, {})).toBeUndefined()
    expect(await problems(schema, { mode: 'slow' })).toContain('"speed" is missing')
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

  test('F9: a failed choice describes the nearest alternative', async () => {
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
      '"shape.radius" is missing and must be a number',
    )
    const both = { properties: { a: { oneOf: [{ type: 'number' }, { minimum: 1 }] } } }
    expect(await problems(both, { a: 5 })).toBe('"a" matches more than one of the alternatives in oneOf.')
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
    // It would be sent on as null.
    ['a number beyond all numbers', { properties: { a: { type: 'number' } } }, JSON.parse('{"a":1e400}'), false],
    // As a tool about races may well call it; every object has something of that name.
    ['an optional constructor that is not there', { properties: { constructor: { type: 'string' } } }, {}, true],
    ['a required constructor that is not there', { required: ['constructor'], minProperties: 0 }, {}, false],
    ['what depends on a toString that is not there', { dependentRequired: { toString: ['a'] } }, {}, true],
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

describe('schemas of older drafts and other tools', () => {
  const integer = { type: 'integer' }

  test.each<[string, Fields, Fields, Fields]>([
    ['an exclusive minimum of draft 4', { minimum: 0, exclusiveMinimum: true }, { n: 1 }, { n: 0 }],
    ['an inclusive minimum of draft 4', { minimum: 0, exclusiveMinimum: false }, { n: 0 }, { n: -1 }],
    [
      'an exclusive maximum of draft 4',
      { maximum: 9, exclusiveMaximum: true, exclusiveMinimum: 0 },
      { n: 8 },
      { n: 9 },
    ],
    [
      'a flag of draft 4 beside a number',
      { maximum: 9, exclusiveMaximum: true, exclusiveMinimum: 0 },
      { n: 1 },
      { n: 0 },
    ],
    ['a flag without a bound', { ...integer, exclusiveMaximum: true }, { n: 8 }, { n: 'x' }],
  ])('F9: %s is applied', async (_title, n, right, wrong) => {
    for (const $schema of [undefined, 'http://json-schema.org/draft-04/schema#']) {
      const schema = { ...($schema && { $schema }), type: 'object', properties: { n } }
      expect(await problems(schema, right)).toBeUndefined()
      expect(await problems(schema, wrong)).toContain('"n" must be')
    }
  })

  test.each<[string, Fields, string]>([
    ['a boolean definition', { $defs: { any: true } }, '#/$defs/any'],
    ['a part beside the keywords', { components: { schemas: { N: integer } } }, '#/components/schemas/N'],
    ['a part within a definition', { definitions: { group: { N: integer } } }, '#/definitions/group/N'],
    ['a part named like a keyword', { parts: { type: integer } }, '#/parts/type'],
    ['a part of a part', { parts: { a: { properties: { b: integer } } } }, '#/parts/a/properties/b'],
    ['an escaped name', { 'x-parts': { 'a/b c': integer } }, '#/x-parts/a~1b%20c'],
    ['a chain', { parts: { a: { $ref: '#/parts/b' }, b: { $ref: '#/parts/c' }, c: integer } }, '#/parts/a'],
    ['a part beside definitions', { $defs: { toolwayPart0: { type: 'string' } }, parts: { a: integer } }, '#/parts/a'],
  ])('F9: a reference to %s is followed', async (title, parts, $ref) => {
    for (const $schema of [undefined, 'http://json-schema.org/draft-07/schema#']) {
      const schema = { ...($schema && { $schema }), type: 'object', properties: { n: { $ref }, m: { $ref } }, ...parts }
      expect(await problems(schema, { n: 1, m: 2 })).toBeUndefined()
      if (title === 'a boolean definition') continue
      expect(await problems(schema, { n: 1, m: 'x' })).toContain('"m" must be a whole number')
    }
  })

  test('F9: a reference to a part that contains itself is followed', async () => {
    const tree = { type: 'object', properties: { next: { $ref: '#/parts/tree' }, n: integer } }
    const schema = { type: 'object', properties: { tree: { $ref: '#/parts/tree' } }, parts: { tree } }
    expect(await problems(schema, { tree: { next: { next: { n: 1 } } } })).toBeUndefined()
    expect(await problems(schema, { tree: { next: { next: { n: 'x' } } } })).toContain('"tree.next.next.n" must be')
  })
})

describe('keywords that the compiler reads differently', () => {
  const text = (pattern: string) => ({ type: 'object', properties: { a: { type: 'string', pattern } } })

  test('F9: \\s and \\S in a pattern know the same spaces as ECMAScript', async () => {
    // All spaces, their neighbours and some other characters.
    const signs = Array.from({ length: 0x3002 }, (_, code) => String.fromCodePoint(code))
      .filter((sign, code) => code < 256 || /\s/.test(sign) || /\s/.test(String.fromCodePoint(code - 1, code + 1)))
      .concat('\ufeff', '\uff00', '😀')
    for (const pattern of [
      '^\\s$',
      '^\\S$',
      '^[\\s\\d]$',
      '^[^\\s]$',
      '^[\\Sx]$',
      '^[^\\S]$',
      '^[[\\s]$',
      '^\\[\\s?$',
    ]) {
      const wanted = new RegExp(pattern, 'u')
      const validator = openValidator()
      const schema = text(pattern)
      const differing: string[] = []
      for (const a of signs)
        if (((await validator.problems(schema, { a })) === undefined) !== wanted.test(a)) differing.push(a)
      expect(differing, pattern).toEqual([])
    }
    expect(await problems(text('^[\\s-x]$'), { a: '-' })).toBeUndefined()
    expect(await problems(text('^[\\s-x]$'), { a: 'y' })).toContain('must match the pattern')
  })

  test('F9: a property named __proto__ is checked', async () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"number"}},"additionalProperties":false}',
    )
    expect(await problems(schema, JSON.parse('{"__proto__": 1}'))).toBeUndefined()
    expect(await problems(schema, JSON.parse('{"__proto__": "x"}'))).toContain('must be a number')
  })

  test('F9: a condition that stands alone determines which members are known', async () => {
    const condition = { type: 'object', if: { properties: { k: { type: 'number' } }, required: ['k'] } }
    const alone = { ...condition, unevaluatedProperties: false }
    expect(await problems(alone, { k: 1 })).toBeUndefined()
    expect(await problems(alone, { other: 1 })).toContain('"other" is unknown')
    expect(await problems(alone, { k: 'x' })).toContain('"k" is unknown')
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
    ['into a value', { default: { type: 'number' }, properties: { a: { $ref: '#/default' } } }],
    ['to no schema', { parts: { a: 5 }, properties: { a: { $ref: '#/parts/a' } } }],
    ['nowhere', { $ref: '#/$defs/missing' }],
    ['an endless one', { $ref: '#/parts/a', parts: { a: { $ref: '#/parts/a' } } }],
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
      { properties: Object.fromEntries(Array.from({ length: 4000 }, (_, index) => [`p${index}`, { type: 'string' }])) },
    ],
    ['a huge list', { enum: Array.from({ length: 60_000 }, (_, index) => index) }],
    ['a deep one', JSON.parse('{"properties":{"a":'.repeat(200) + '{}' + '}}'.repeat(200))],
  ])('F9, B5: %s makes the tool unusable, says why, and is logged once (%#)', async (_title, schema) => {
    warnings.length = 0
    for (let call = 0; call < 3; call++)
      expect(await unusable(structuredClone(schema), { a: 1 })).toContain('mcpServers.files.tools.exclude')
    expect(await schemaProblem(schema)).toEqual(expect.any(String))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ tool: 'files.read', reason: expect.any(String) })
  })

  test('V26: the error for a tool of the program itself names its definition, not a setting of a server', async () => {
    const refused = (async () => validate({ type: 'strnig' }, {}, 'native.mine'))()
    await expect(refused).rejects.toMatchObject({
      code: 'QUARANTINED',
      message: expect.stringContaining('inputSchema'),
    })
    await expect(refused).rejects.not.toMatchObject({ message: expect.stringContaining('mcpServers') })
  })

  test('F9: the schemas of two servers do not know one another', async () => {
    await refusal({ $id: 'https://a.example/s', $defs: { x: { $id: 'https://a.example/x', type: 'string' } } }, {})
    warnings.length = 0
    expect(await unusable({ properties: { a: { $ref: 'https://a.example/x' } } }, { a: 1 })).toContain(
      'another document',
    )
    expect(warnings).toHaveLength(1)
  })

  test.each<[string, Fields, Fields]>([
    [
      'a name, from inside it',
      { tree: { $id: 'T0', type: 'object', properties: { n: { type: 'number' }, kids: { items: { $ref: 'T0' } } } } },
      { tree: { kids: [{ kids: [{ n: 1 }] }] } },
    ],
    [
      'a name in nested definitions',
      {
        tree: {
          $defs: { Node: { $id: 'Node', properties: { n: { $ref: 'N' } } }, N: { $id: 'N', type: 'number' } },
          $ref: 'Node',
        },
      },
      { tree: { n: 1 } },
    ],
    [
      'a URI with a pointer',
      {
        a: {
          $id: 'https://a.example/a.json',
          $defs: { 'n m': { type: 'number' } },
          properties: { n: { $ref: 'a.json#/$defs/n%20m' } },
        },
      },
      { a: { n: 1 } },
    ],
    [
      'a fragment of its own part',
      { a: { $id: 'a', $defs: { n: { type: 'number' } }, properties: { n: { $ref: '#/$defs/n' } } } },
      { a: { n: 1 } },
    ],
    ['an old anchor', { a: { $ref: '#n' }, n: { $id: '#n', type: 'number' } }, { a: 1 }],
    [
      'an anchor by URI',
      { a: { $ref: 'x#n' }, x: { $id: 'x', properties: { y: { $anchor: 'n', type: 'number' } } } },
      { a: 1 },
    ],
  ])('F9: a reference to %s stays in the schema and is checked', async (_title, properties, args) => {
    const schema = { type: 'object', properties }
    expect(await problems(schema, args)).toBeUndefined()
    const wrong = JSON.parse(JSON.stringify(args).replace('1', '"1"'))
    expect(await problems(schema, wrong)).toContain('must be a number, not a string')
  })

  test('V1: an argument that a server may read as another one is found behind an ID', async () => {
    const node = { $id: 'Node', type: 'object', properties: { path: { type: 'string' } } }
    const schema = { type: 'object', properties: { a: { $ref: 'Node' } }, $defs: { node } }
    expect(await problems(schema, { a: { Path: '/etc' } })).toContain('may be read as "path"')
  })

  test('F9: a reference to the schema of schemas is left to the server', async () => {
    const $ref = 'http://json-schema.org/draft-07/schema#'
    expect(await problems({ properties: { schema: { $ref } } }, { schema: { type: 5 } })).toBeUndefined()
  })

  test.each<[Fields, string]>([
    [{ properties: { a: { type: 'string', required: true } } }, '"#/properties/a/required"'],
    [{ properties: { a: { minimum: '0' } } }, '"#/properties/a/minimum"'],
    [{ $defs: { unused: { enum: null } } }, '"#/$defs/unused/enum"'],
    [{ properties: { a: { anyOf: {} } } }, '"#/properties/a/anyOf"'],
    [{ properties: { 'a/b': 5 } }, '"#/properties/a~1b"'],
    [{ properties: { a: { pattern: '(x' } } }, '(x'],
  ])('F9: the message for the schema %j says where it is wrong', async (schema, place) => {
    expect(await unusable(schema, { a: 'x' })).toContain(place)
  })

  test.each([
    [`^(?<q>['"]).*\\k<q>$`, "'x'"],
    ['^\\uD83D\\uDE00$', '😀'],
    ['^[\\ud83d\\ude00x]$', '😀'],
    ['^[\\uD800-\\uDBFF][\\uDC00-\\uDFFF]$', '😀'],
    ['^\\d{4}\\Z', '2024'],
  ])('F9: the pattern %j accepts %j', async (pattern, text) => {
    expect(await problems({ properties: { a: { type: 'string', pattern } } }, { a: text })).toBeUndefined()
  })

  test('F9: a pattern with the escape of a character beyond U+FFFF is checked', async () => {
    const schema = { properties: { a: { type: 'string', pattern: '^\\uD83D\\uDE00+$' } } }
    expect(await problems(schema, { a: '😀😀' })).toBeUndefined()
    expect(await problems(schema, { a: '😁' })).toContain('must match the pattern')
  })

  test('F9: a reference that can be read in two ways makes a schema unusable', async () => {
    const $defs = { a: { b: { type: 'string' } }, 'a/b': { type: 'number' } }
    expect(await unusable({ $defs, properties: { x: { $ref: '#/$defs/a%2Fb' } } }, { x: 1 })).toContain('encoded slash')
  })
})
