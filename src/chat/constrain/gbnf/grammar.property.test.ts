import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../../tests/fixtures/runs.ts'
import { jsonValue } from '../../../json/parse-json.ts'
import { CannotExpress } from '../conversion.ts'
import type { AnySchema, JsonSchemaObject } from '../schema.ts'
import { dice } from './dice.fixture.ts'
import { readGrammar } from './grammar.fixture.ts'
import { toGrammar } from './grammar.ts'
import { shapes } from './shapes.fixture.ts'

/** An independent judge of what fits a schema. */
const judge = (schema: AnySchema) =>
  new Ajv2020({ strict: false, logger: false, meta: false, validateSchema: false }).compile(schema)

/** Short texts are as good and take less time. */
const short = { string: 80, items: 4, members: 3, freeDepth: 2, recursion: 2 }

test('S4: a grammar accepts the values of its schema', () => {
  fc.assert(
    fc.property(
      shapes.chain(({ schema, values }) => fc.tuple(fc.constant(schema), values)),
      ([schema, value]) => {
        expect(judge(schema)(value)).toBe(true)
        const grammar = readGrammar(toGrammar(schema))
        expect(grammar.matches(JSON.stringify(value)), JSON.stringify({ schema, value })).toBe(true)
      },
    ),
    runs(20, 2_000),
  )
})

test('S4: every text of a grammar is valid JSON for the schema', () => {
  fc.assert(
    fc.property(shapes, dice, ({ schema }, roll) => {
      const grammar = readGrammar(toGrammar(schema, short))
      const fits = judge(schema)
      for (let count = 0; count < 5; count++) {
        const text = grammar.sample(roll)
        expect(fits(jsonValue(text)), `${text} for ${JSON.stringify(schema)}: ${JSON.stringify(fits.errors)}`).toBe(
          true,
        )
      }
    }),
    runs(20, 2_000),
  )
})

test('S4: a grammar refuses values that its schema forbids', () => {
  const damaged = shapes.chain(({ schema, values }) =>
    fc.tuple(fc.constant(schema), values, fc.jsonValue(), fc.nat(), fc.nat(3)),
  )
  let refused = 0
  const some = runs(40, 2_000)
  fc.assert(
    fc.property(damaged, ([schema, value, other, place, how]) => {
      const broken = damage(value, other, place, how)
      if (judge(schema)(broken)) return
      refused++
      const grammar = readGrammar(toGrammar(schema))
      expect(grammar.matches(JSON.stringify(broken)), JSON.stringify({ schema, broken })).toBe(false)
    }),
    some,
  )
  expect(refused).toBeGreaterThan(some.numRuns / 10)
})

test('S4: any schema becomes a correct grammar, or an error with place and keyword', () => {
  const keyword = fc.oneof(
    fc.record({ type: fc.constantFrom('string', 'integer', 'number', 'object', 'array', 'boolean') }),
    fc.record({ minLength: fc.nat(5), maxLength: fc.nat(9) }),
    fc.record({ minimum: fc.double({ noNaN: true, min: -1e6, max: 1e6 }) }),
    fc.record({ maximum: fc.integer({ min: -100, max: 100 }) }),
    fc.record({ minItems: fc.nat(3), uniqueItems: fc.boolean() }),
    fc.record({ minProperties: fc.nat(3), maxProperties: fc.nat(4) }),
    fc.record({ required: fc.subarray(['a', 'b', 'c']) }),
    fc.record({ properties: fc.constantFrom({ a: {} }, { a: { type: 'string' }, b: { $ref: '#' } }, {}) }),
    fc.record({ additionalProperties: fc.constantFrom(true, false, { type: 'integer' }) }),
    fc.record({ pattern: fc.constantFrom('^a+$', 'b', '^(?=x)', '^a|b$', '\\bx', '^.{2,}$') }),
    fc.record({ enum: fc.array(fc.constantFrom('a', 1, null, 'abc', 2.5), { minLength: 1 }) }),
    fc.record({ format: fc.constantFrom('date', 'uuid', 'regex', 'int32') }),
    fc.record({ propertyNames: fc.constantFrom({ pattern: '^x' }, { enum: ['a', 'c'] }, { maxLength: 3 }) }),
    fc.record({ not: fc.constant({ type: 'string' }) }),
  )
  const schema = fc.letrec<{ one: JsonSchemaObject }>((tie) => ({
    one: fc.oneof(
      { depthSize: 'small' },
      fc.array(keyword, { minLength: 1, maxLength: 4 }).map((all) => Object.assign({}, ...all)),
      fc
        .tuple(
          fc.constantFrom('anyOf', 'oneOf', 'allOf'),
          fc.array(tie('one'), { minLength: 1, maxLength: 3 }),
          keyword,
          fc.boolean(),
        )
        .map(([name, branches, beside, isAlone]) => ({ [name]: branches, ...(!isAlone && beside) })),
      fc.record({ items: tie('one') }),
    ),
  })).one
  const outcomes = { made: 0, refused: 0 }
  const some = runs(60, 4_000)
  fc.assert(
    fc.property(schema, dice, (given, roll) => {
      let source: string
      try {
        source = toGrammar(given, short)
      } catch (error) {
        expect(error).toBeInstanceOf(CannotExpress)
        outcomes.refused++
        return
      }
      outcomes.made++
      const grammar = readGrammar(source)
      const fits = judge(withoutFormats(given) as AnySchema)
      for (let count = 0; count < 4; count++) {
        const text = grammar.sample(roll)
        expect(fits(jsonValue(text)), `${text} for ${JSON.stringify(given)}: ${JSON.stringify(fits.errors)}`).toBe(true)
      }
    }),
    some,
  )
  expect(Math.min(outcomes.made, outcomes.refused)).toBeGreaterThan(some.numRuns / 15)
})

/** Formats are judged elsewhere. */
const withoutFormats = (schema: unknown): unknown =>
  jsonValue(JSON.stringify(schema), (key, value) => (key === 'format' ? undefined : value))

function damage(value: unknown, other: unknown, place: number, how: number): unknown {
  if (typeof value !== 'object' || value === null) {
    if (how === 0 && typeof value === 'string') return value + value + JSON.stringify(other)
    return how === 1 && typeof value === 'number' ? value * 1000 + 0.5 : other
  }
  const entries = Object.entries(value)
  if (entries.length === 0) return how < 2 ? { unknown: other } : other
  const index = place % entries.length
  const [name, inner] = entries[index] as [string, unknown]
  if (how === 0) entries.splice(index, 1)
  else if (how === 1) entries.push([`${name}!`, other])
  else entries[index] = [name, damage(inner, other, place >> 1, how)]
  if (Array.isArray(value)) return entries.map(([, one]) => one)
  const made = {}
  for (const [key, one] of entries)
    Object.defineProperty(made, key, { value: one, enumerable: true, configurable: true })
  return made
}
