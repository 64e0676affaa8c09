import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { BudgetSpent } from './check-run.ts'
import { prepareSchema } from './prepare.ts'
import { SchemaChecker } from './validate.ts'
import { formatTests } from './values.ts'

type Fields = Record<string, unknown>

const says = (schema: Fields, value: unknown): boolean => new SchemaChecker(prepareSchema(schema)).accepts(value)

/** What ajv says; undefined if it rejects the schema. */
function ajvSays(schema: Fields, value: unknown): boolean | undefined {
  const quiet = { strict: false, validateSchema: false, meta: false, logger: false } as const
  const compiler = new Ajv2020({ ...quiet, ownProperties: true, strictNumbers: true, formats: formatTests })
  try {
    return compiler.compile(schema)(value)
  } catch {
    return undefined
  }
}

const name = fc.constantFrom('a', 'b', 'c', 'constructor', '__proto__', 'toString')
const scalar = fc.oneof(
  fc.constantFrom('', 'a', 'ab', '😀', '2026-11-15', 'x@y', 'https://a.example'),
  // No infinity, as JSON.parse makes of 1e999: ajv skips it, and we compare its digits.
  fc.constantFrom(0, -0, 1, 1.5, -3, 1e21),
  fc.boolean(),
  fc.constant(null),
)
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    // As arguments come: read from a text, so that a member may have any name.
    fc.uniqueArray(fc.tuple(name, tie('value')), { selector: ([key]) => key, maxLength: 3 }).map(parsed),
  ),
}))

function parsed(entries: [string, unknown][]): unknown {
  return JSON.parse(
    `{${entries.map(([key, member]) => `${JSON.stringify(key)}:${JSON.stringify(member) ?? 'null'}`).join()}}`,
  )
}

const kinds = fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'array', 'object', 'any')
const bound = fc.integer({ min: 0, max: 3 })
const { schema } = fc.letrec<{ schema: Fields; inner: unknown }>((tie) => {
  const keywords: Record<string, fc.Arbitrary<unknown>> = {
    type: fc.oneof(kinds, fc.array(kinds, { maxLength: 2 })),
    enum: fc.array(fc.oneof({ weight: 9, arbitrary: scalar }, { weight: 1, arbitrary: value }), { maxLength: 3 }),
    const: scalar,
    minimum: bound,
    maximum: bound,
    exclusiveMinimum: bound,
    exclusiveMaximum: bound,
    minLength: bound,
    maxLength: bound,
    minItems: bound,
    maxItems: bound,
    format: fc.constantFrom('date', 'email', 'uri', 'unheard-of', 'constructor'),
    required: fc.uniqueArray(name, { maxLength: 2 }),
    // ajv overlooks what `properties` says of `__proto__`.
    properties: fc.dictionary(
      name.filter((name) => name !== '__proto__'),
      tie('inner'),
      { maxKeys: 3 },
    ),
    additionalProperties: tie('inner'),
    items: tie('inner'),
    anyOf: fc.array(tie('inner'), { maxLength: 3 }),
    description: fc.constant('said of it'),
  }
  const one = Object.entries(keywords).map(([keyword, said]) => said.map((value) => [keyword, value] as const))
  return {
    inner: fc.oneof({ depthSize: 'small' }, fc.boolean(), tie('schema')),
    schema: fc.array(fc.oneof(...one), { maxLength: 3 }).map((said) => Object.fromEntries(said)),
  }
})

test('F9: a checker agrees with ajv', () => {
  let yes = 0
  let no = 0
  const some = runs(150, 20_000)
  fc.assert(
    fc.property(schema, value, (given, tried) => {
      const expected = ajvSays(given, tried)
      if (expected === undefined) return
      if (expected) yes++
      else no++
      expect(says(given, tried)).toBe(expected)
    }),
    some,
  )
  expect(Math.min(yes, no)).toBeGreaterThan(some.numRuns / 20)
})

test('F9: it knows what most tools say of their arguments', () => {
  const file = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      path: { type: 'string', minLength: 1, description: 'Where it lies.' },
      lines: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }], default: null },
      mode: { enum: ['text', 'binary'] },
      tags: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    },
    required: ['path'],
    additionalProperties: false,
  }
  expect(says(file, { path: '/a', lines: null, mode: 'text', tags: ['x'] })).toBe(true)
  for (const bad of [{}, { path: '' }, { path: '/a', other: 1 }, { path: '/a', lines: 0 }, { path: '/a', mode: 'b' }])
    expect(says(file, bad)).toBe(false)
})

const members = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`m${at}`, at]))
test.each<[string, Fields, unknown]>([
  ['properties', { properties: { m19999: { type: 'string' } } }, members],
  ['items', { items: { type: 'number' } }, [...Array(40_000).fill(1), 'x']],
])('F9: going through all of a large value for each of many forms ends (%s)', (_, form, value) => {
  const anyOf = Array.from({ length: 100 }, () => form)
  expect(() => says({ anyOf }, value)).toThrow(BudgetSpent)
})
