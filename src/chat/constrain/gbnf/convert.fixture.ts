import type { AnySchema } from '../schema.ts'

interface Sequence {
  readonly what: string
  readonly schema: AnySchema
  readonly takes: readonly string[]
  readonly refuses: readonly string[]
}

/** An object with these members. */
export const object = (properties: object, more: object = {}): AnySchema => ({ type: 'object', properties, ...more })

/** For each keyword a schema, texts that its grammar takes, and texts that it refuses. */
export const rows: readonly Sequence[] = [
  {
    what: 'type',
    schema: { type: 'string' },
    takes: ['""', '"a\\"\\n\\u00e9é😀"'],
    refuses: ['1', '"a', '"\n"', '"\\x"', '"\\ud83d"'],
  },
  {
    what: 'type of several',
    schema: { type: ['integer', 'null'] },
    takes: ['1', '-7', 'null'],
    refuses: ['1.5', '"1"', '01', '+1', ''],
  },
  {
    what: 'enum',
    schema: { enum: ['a b', 1, null, { x: [] }] },
    takes: ['"a b"', '1', 'null', '{"x":[]}'],
    refuses: ['"a"', 'true'],
  },
  { what: 'enum and type', schema: { type: 'string', enum: ['a', 1] }, takes: ['"a"'], refuses: ['1'] },
  { what: 'const', schema: { const: 'é"' }, takes: ['"é\\""'], refuses: ['"e"'] },
  {
    what: 'minLength, maxLength',
    schema: { type: 'string', minLength: 2, maxLength: 3 },
    takes: ['"ab"', '"a😀c"', '"\\u00e9\\n"'],
    refuses: ['"a"', '"abcd"'],
  },
  {
    what: 'long maxLength',
    schema: { type: 'string', minLength: 70, maxLength: 1000 },
    takes: [70, 500, 999, 1000].map((n) => `"${'x'.repeat(n)}"`),
    refuses: [0, 69, 1001].map((n) => `"${'x'.repeat(n)}"`),
  },
  {
    what: 'minimum, maximum of integers',
    schema: { type: 'integer', minimum: -12, maximum: 305 },
    takes: ['-12', '-9', '0', '99', '300', '305'],
    refuses: ['-13', '306', '1000', '-0', '007'],
  },
  {
    what: 'exclusive bounds of integers',
    schema: { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 10 },
    takes: ['1', '9'],
    refuses: ['0', '10'],
  },
  {
    what: 'bounds of an older draft',
    schema: { type: 'integer', minimum: 0, exclusiveMinimum: true, maximum: 9 },
    takes: ['1', '9'],
    refuses: ['0'],
  },
  {
    what: 'minimum alone',
    schema: { type: 'integer', minimum: 995 },
    takes: ['995', '1000', '123456789012345'],
    refuses: ['994', '-995'],
  },
  {
    what: 'bounds of numbers',
    schema: { type: 'number', minimum: 0, maximum: 1 },
    takes: ['0', '1', '0.5', '0.000001', '1.0'.replace('.0', '')],
    refuses: ['-0.1', '1.1', '2', '1e0'],
  },
  {
    what: 'exclusive bounds of numbers',
    schema: { type: 'number', exclusiveMinimum: -1.25, exclusiveMaximum: 0.5 },
    takes: ['-1.24', '-1', '0', '0.49'],
    refuses: ['-1.25', '0.5', '-1.3', '0.51'],
  },
  {
    what: 'multipleOf',
    schema: { type: 'integer', multipleOf: 15, minimum: 0, maximum: 45 },
    takes: ['0', '15', '45'],
    refuses: ['5', '60'],
  },
  {
    what: 'pattern',
    schema: { type: 'string', pattern: '^[A-Z]{2}-\\d+$' },
    takes: ['"AB-1"', '"XY-123"'],
    refuses: ['"AB-"', '"ab-1"', '"AB-1 "'],
  },
  {
    what: 'pattern without anchors',
    schema: { type: 'string', pattern: 'b+' },
    takes: ['"b"', '"abbc"', '"\\nb"'],
    refuses: ['"ac"', '""'],
  },
  {
    what: 'pattern and length',
    schema: { type: 'string', pattern: '^[a-z]+$', minLength: 3, maxLength: 4 },
    takes: ['"abc"', '"abcd"'],
    refuses: ['"ab"', '"abcde"'],
  },
  {
    what: 'pattern of quotes',
    schema: { type: 'string', pattern: '^["\\\\]\\t$' },
    takes: ['"\\"\\t"', '"\\\\\\t"'],
    refuses: ['"""', '"x\\t"'],
  },
  {
    what: 'format',
    schema: { type: 'string', format: 'date' },
    takes: ['"2026-02-28"', '"2026-11-30"'],
    refuses: ['"2026-02-30"', '"2026-11-31"', '"today"'],
  },
  { what: 'a format that is a remark', schema: { type: 'string', format: 'password' }, takes: ['"x"'], refuses: ['1'] },
  {
    what: 'required and optional members',
    schema: object({ a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } }, { required: ['b'] }),
    takes: ['{"b":null}', '{"a":null,"b":null}', '{"b": null, "c": null}'],
    refuses: ['{}', '{"a":null}', '{"a":null,"b":null,}', '{"b":null,"a":null}', '{,"b":null}', '{"b":null,"x":null}'],
  },
  {
    what: 'only optional members',
    schema: object({ a: { type: 'null' }, b: { type: 'null' } }),
    takes: ['{}', '{"a":null}', '{"b":null}', '{"a":null,"b":null}'],
    refuses: ['{,"b":null}'],
  },
  {
    what: 'a required member that is not named',
    schema: { type: 'object', required: ['x'], additionalProperties: { type: 'integer' } },
    takes: ['{"x":1}', '{"x":1,"y":2}'],
    refuses: ['{}', '{"y":1}', '{"x":null}'],
  },
  {
    what: 'members without names',
    schema: { type: 'object', additionalProperties: { type: 'boolean' } },
    takes: ['{}', '{"a":true,"b": false}'],
    refuses: ['{"a":1}', '{"":true}'],
  },
  {
    what: 'further members',
    schema: object({ ab: { type: 'null' }, ac: { type: 'null' } }, { additionalProperties: { type: 'integer' } }),
    takes: ['{"ab":null,"a":1,"abc":2,"x":3}', '{"ac":null}'],
    refuses: ['{"ab":1}', '{"x":1,"ac":1}'],
  },
  {
    what: 'no further members',
    schema: object({}, { additionalProperties: false }),
    takes: ['{}'],
    refuses: ['{"a":1}'],
  },
  {
    what: 'minProperties, maxProperties',
    schema: object({ a: {}, b: {}, c: {} }, { minProperties: 1, maxProperties: 2 }),
    takes: ['{"a":1}', '{"b":1,"c":2}'],
    refuses: ['{}', '{"a":1,"b":1,"c":1}'],
  },
  {
    what: 'propertyNames as a list',
    schema: { type: 'object', propertyNames: { enum: ['x', 'y'] }, additionalProperties: { type: 'null' } },
    takes: ['{}', '{"x":null,"y":null}'],
    refuses: ['{"z":null}'],
  },
  {
    what: 'propertyNames as a pattern',
    schema: { type: 'object', propertyNames: { pattern: '^[a-z]+$' }, additionalProperties: { type: 'null' } },
    takes: ['{"abc":null}'],
    refuses: ['{"A":null}'],
  },
  {
    what: 'patternProperties',
    schema: { type: 'object', patternProperties: { '^x-[a-z]+$': { type: 'integer' } }, additionalProperties: false },
    takes: ['{"x-a":1}'],
    refuses: ['{"y":1}', '{"x-a":null}'],
  },
  {
    what: '__proto__',
    schema: JSON.parse('{"type":"object","properties":{"__proto__":{"type":"null"}},"required":["__proto__"]}'),
    takes: ['{"__proto__":null}'],
    refuses: ['{}'],
  },
  {
    what: 'items, minItems, maxItems',
    schema: { type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: 3 },
    takes: ['[1]', '[1,2, 3]'],
    refuses: ['[]', '[1,2,3,4]', '["a"]', '[1,]'],
  },
  {
    what: 'places',
    schema: { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'string' }], items: { type: 'null' } },
    takes: ['[1,"a"]', '[1,"a",null,null]'],
    refuses: ['["a",1]', '[1,"a",1]'],
  },
  {
    what: 'places of an older draft',
    schema: { type: 'array', items: [{ type: 'integer' }], additionalItems: false },
    takes: ['[1]'],
    refuses: ['[1,1]', '["a"]'],
  },
  {
    what: 'different items of a list',
    schema: { type: 'array', items: { enum: ['a', 'b', 'c'] }, uniqueItems: true, minItems: 1, maxItems: 2 },
    takes: ['["a"]', '["a","c"]'],
    refuses: ['[]', '["a","a"]', '["a","b","c"]'],
  },
  {
    what: 'anything',
    schema: true,
    takes: ['1', '"x"', '[1,{"a":[]}]', '{"a":{"b":[null]}}'],
    refuses: ['', 'x', '{a:1}'],
  },
  {
    what: 'anyOf',
    schema: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    takes: ['1', '"a"'],
    refuses: ['null'],
  },
  {
    what: 'anyOf beside others',
    schema: object({ a: { type: 'null' }, b: { type: 'null' } }, { anyOf: [{ required: ['a'] }, { required: ['b'] }] }),
    takes: ['{"a":null}', '{"b":null}', '{"a":null,"b":null}'],
    refuses: ['{}'],
  },
  {
    what: 'oneOf told apart by a member',
    schema: {
      oneOf: [
        object({ kind: { const: 'a' }, x: { type: 'integer' } }, { required: ['kind', 'x'] }),
        object({ kind: { const: 'b' } }, { required: ['kind'] }),
      ],
    },
    takes: ['{"kind":"a","x":1}', '{"kind":"b"}'],
    refuses: ['{"kind":"a"}', '{"kind":"b","x":1}'],
  },
  {
    what: 'oneOf told apart by type',
    schema: { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
    takes: ['"a"', '["a"]'],
    refuses: ['1'],
  },
  {
    what: 'allOf',
    schema: {
      allOf: [
        object({ a: { type: 'integer' } }, { required: ['a'] }),
        object({ b: { type: 'string' }, a: { minimum: 5 } }, { required: ['b'] }),
      ],
    },
    takes: ['{"a":5,"b":""}'],
    refuses: ['{"a":4,"b":""}', '{"a":5}'],
  },
  {
    what: '$ref',
    schema: object(
      { a: { $ref: '#/$defs/one' }, b: { $ref: '#/definitions/a~1b' } },
      { $defs: { one: { const: 1 } }, definitions: { 'a/b': { const: 2 } } },
    ),
    takes: ['{"a":1,"b":2}'],
    refuses: ['{"a":2}'],
  },
  {
    what: '$ref to an anchor',
    schema: object({ a: { $ref: '#one' } }, { $defs: { x: { $anchor: 'one', const: 1 } } }),
    takes: ['{"a":1}'],
    refuses: ['{"a":2}'],
  },
  {
    what: '$ref beside others',
    schema: object({ a: { $ref: '#/$defs/n', maximum: 5 } }, { $defs: { n: { type: 'integer', minimum: 1 } } }),
    takes: ['{"a":5}'],
    refuses: ['{"a":6}', '{"a":0}'],
  },
  {
    what: 'recursion',
    schema: object({ next: { $ref: '#' }, all: { type: 'array', items: { $ref: '#' } } }),
    takes: ['{}', '{"next":{"next":{"all":[{}]}}}', '{"all":[{"all":[{},{}]}]}'],
    refuses: ['{"next":1}', '{"all":[1]}'],
  },
]
