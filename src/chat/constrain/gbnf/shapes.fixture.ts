import fc from 'fast-check'
import type { AnySchema } from '../schema.ts'

/** A schema together with values that fit it, as they would be written. */
export interface Shape {
  readonly schema: AnySchema
  readonly values: fc.Arbitrary<unknown>
}

const bounds = (most: number) =>
  fc.tuple(fc.nat(most), fc.nat(most)).map(([one, other]) => ({ min: Math.min(one, other), max: Math.max(one, other) }))

const text: fc.Arbitrary<Shape> = fc.oneof(
  fc.constant({ schema: { type: 'string' }, values: fc.string({ unit: 'grapheme', maxLength: 20 }) }),
  bounds(9).map(({ min, max }) => ({
    schema: { type: 'string', minLength: min, maxLength: max },
    values: fc.string({ unit: fc.constantFrom('a', 'é', '"', '\\', '\n', '😀', ' '), minLength: min, maxLength: max }),
  })),
  fc.constantFrom('^[a-z]{2,4}$', '^\\d+-x$', '^(?:ab|c)*$', '^#[0-9a-fA-F]{6}$', '^[^"\\s]+$').map((pattern) => ({
    schema: { type: 'string', pattern },
    values: fc.stringMatching(new RegExp(pattern, 'u')),
  })),
)

const number: fc.Arbitrary<Shape> = fc.oneof(
  fc.tuple(fc.integer({ min: -2000, max: 2000 }), fc.nat(4000)).map(([minimum, spread]) => ({
    schema: { type: 'integer', minimum, maximum: minimum + spread },
    values: fc.integer({ min: minimum, max: minimum + spread }),
  })),
  fc.tuple(fc.integer({ min: -2000, max: 2000 }), fc.integer({ min: 1, max: 4000 })).map(([minimum, spread]) => ({
    schema: { type: 'number', minimum: minimum / 100, exclusiveMaximum: (minimum + spread) / 100 },
    values: fc.integer({ min: minimum, max: minimum + spread - 1 }).map((value) => value / 100),
  })),
  fc.integer({ min: -50, max: 50 }).map((exclusiveMinimum) => ({
    schema: { type: 'integer', exclusiveMinimum },
    values: fc.integer({ min: exclusiveMinimum + 1, max: 1_000_000 }),
  })),
  fc.constant({
    schema: { type: 'integer', multipleOf: 5, minimum: -20, maximum: 30 },
    values: fc.integer({ min: -4, max: 6 }).map((value) => value * 5 || 0),
  }),
  fc.constant({ schema: { type: 'number' }, values: fc.oneof(fc.integer(), fc.constantFrom(0.5, -1e21, 3.25e-7)) }),
)

const plain: fc.Arbitrary<Shape> = fc.oneof(
  fc.constant({ schema: { type: 'boolean' }, values: fc.boolean() }),
  fc.constant({ schema: { type: 'null' }, values: fc.constant(null) }),
  fc.constant({ schema: { type: ['string', 'null'], maxLength: 5 }, values: fc.constantFrom(null, '', 'abcde') }),
  fc
    .uniqueArray(fc.oneof(fc.string({ maxLength: 4 }), fc.integer(), fc.constant(null)), { minLength: 1, maxLength: 5 })
    .map((values) => ({
      schema: { enum: values },
      values: fc.constantFrom(...values),
    })),
  fc.constant({ schema: { const: { a: [1, 'x'] } }, values: fc.constant({ a: [1, 'x'] }) }),
  fc.constant({ schema: true, values: fc.constantFrom<unknown>(1, 'x', null, [1, { a: [] }], { b: true, c: {} }) }),
)

const names = fc.uniqueArray(
  fc.oneof(fc.constantFrom('a', 'ab', 'b', 'c', 'a"b', 'ä'), fc.string({ minLength: 1, maxLength: 5 })),
  {
    maxLength: 5,
  },
)

const objectOf = (members: readonly (readonly [string, unknown])[]): Readonly<Record<string, unknown>> => {
  const made = {}
  for (const [name, value] of members) Object.defineProperty(made, name, { value, enumerable: true })
  return made
}

/** Schemas of every kind that the converter promises to express, one inside the other. */
export const shapes = fc.letrec<{ shape: Shape; array: Shape; object: Shape; choice: Shape; map: Shape }>((tie) => ({
  shape: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    text,
    number,
    plain,
    tie('array'),
    tie('object'),
    tie('choice'),
    tie('map'),
  ),
  array: fc.oneof(
    fc.tuple(tie('shape'), bounds(4)).map(([items, { min, max }]) => ({
      schema: { type: 'array', items: items.schema, minItems: min, maxItems: max },
      values: fc.array(items.values, { minLength: min, maxLength: max }),
    })),
    fc.array(tie('shape'), { minLength: 1, maxLength: 3 }).map((places) => ({
      schema: { type: 'array', prefixItems: places.map(({ schema }) => schema), items: false },
      values: fc.tuple(...places.map(({ values }) => values)),
    })),
  ),
  object: names.chain((all) =>
    fc
      .tuple(
        fc.constant(all),
        fc.array(fc.tuple(tie('shape'), fc.boolean()), { minLength: all.length, maxLength: all.length }),
      )
      .map(([all, members]) => ({
        schema: {
          type: 'object',
          properties: objectOf(all.map((name, index) => [name, members[index]?.[0].schema])),
          required: all.filter((_, index) => members[index]?.[1]),
          additionalProperties: false,
        },
        values: fc
          .tuple(
            ...all.map((name, index) => {
              const [shape, isRequired] = members[index] as [Shape, boolean]
              const one = shape.values.map((value) => [name, value] as const)
              return isRequired ? one : fc.option(one)
            }),
          )
          .map((made) => objectOf(made.filter((one) => one !== null))),
      })),
  ),
  choice: fc.array(tie('shape'), { minLength: 1, maxLength: 3 }).map((branches) => ({
    schema: { anyOf: branches.map(({ schema }) => schema) },
    values: fc.oneof(...branches.map(({ values }) => values)),
  })),
  map: fc.tuple(tie('shape'), names).map(([members, known]) => ({
    schema: {
      type: 'object',
      properties: objectOf(known.map((name) => [name, { type: 'null' }])),
      additionalProperties: members.schema,
    },
    values: fc.dictionary(
      fc.constantFrom('x', 'aa', 'abc', 'zz', 'ö').filter((name) => !known.includes(name)),
      members.values,
      { maxKeys: 4, noNullPrototype: true },
    ),
  })),
})).shape
