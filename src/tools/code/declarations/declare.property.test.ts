import { stripTypeScriptTypes } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expectCpuBelow } from '../../../../tests/fixtures/cpu-time.ts'
import { runs } from '../../../../tests/fixtures/runs.ts'
import { declareServers, toolDeclaration } from './schema-type.ts'

/** Any half of a character: cheaper to make than whole ones, and worse. */
const anyUnit = fc.nat(0xffff).map((code) => String.fromCharCode(code))

const names = fc.oneof(
  fc.constantFrom('a', 'b-c', '__proto__', 'constructor', '*/', '"', "'", '`', '\\', '\n', '\u2028', '\ud800', '${x}'),
  fc.string({ unit: anyUnit, maxLength: 12 }),
)

const value = fc.jsonValue({ maxDepth: 1 })

/** Whatever a server may call a schema: keywords in their place, out of place, and what only looks like one. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const inner = tie('schema')
  const map = fc.dictionary(names, inner, { maxKeys: 3 })
  const list = fc.array(inner, { maxLength: 2 })
  const reference = fc.constantFrom('#', '#/$defs/a', '#/properties/a', 'https://example.com', '#/nowhere', 3)
  return {
    schema: fc.oneof(
      { maxDepth: 3 },
      fc.oneof(fc.boolean(), value, fc.constant({ type: 'string' })),
      fc.record(
        {
          type: fc.oneof(
            fc.constantFrom('string', 'object', 'array', 'null', 'odd'),
            fc.array(names, { maxLength: 2 }),
          ),
          properties: fc.oneof(map, value),
          required: fc.oneof(fc.array(names, { maxLength: 3 }), value),
          additionalProperties: inner,
          patternProperties: map,
          items: fc.oneof(inner, list),
          prefixItems: list,
          minItems: fc.integer(),
          enum: fc.oneof(fc.array(value, { maxLength: 4 }), value),
          const: value,
          anyOf: fc.oneof(list, value),
          oneOf: list,
          allOf: list,
          nullable: fc.boolean(),
          description: names,
          default: value,
          format: names,
          $ref: reference,
          $defs: fc.record({ a: inner }),
        },
        { requiredKeys: [] },
      ),
    ),
  }
})

const tool = fc.record({ inputSchema: schema, outputSchema: schema, identifier: names, description: names })

test('B9: whatever the schemas, names and words, the declaration is TypeScript and nothing but types', {
  timeout: 60_000,
}, () => {
  fc.assert(
    // Many at once, because reading them takes longer than writing them.
    fc.property(names, fc.array(tool, { minLength: 20, maxLength: 20 }), (server, tools) => {
      const methods = tools.map(({ identifier, ...definition }) =>
        toolDeclaration({ identifier, name: definition.description, definition: definition as never }, 4000),
      )
      expect(stripTypeScriptTypes(declareServers(new Map([[server, methods]]))).trim()).toBe('')
    }),
    runs(2, 8),
  )
})

const wide = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, key) => [`key${key}`, { type: 'string' }]))
const deep = (depth: number) => {
  let inner: object = { type: 'string' }
  for (let level = 0; level < depth; level++) inner = { type: 'object', properties: { in: inner } }
  return inner
}
/** Each definition holds the next one twice: written out it would have 2^40 ends. */
const doubling = {
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [
      `d${at}`,
      { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }], properties: wide(20) },
    ]),
  ),
}

// Functions, because vitest goes through all arguments of a test for its title.
test.each([
  [
    'a hundred thousand properties',
    () => {
      const properties = wide(100_000)
      return { type: 'object', properties, required: Object.keys(properties) }
    },
  ],
  ['a hundred thousand levels', () => deep(100_000)],
  ['references that double', () => doubling],
  ['a million choices', () => ({ anyOf: new Array(1_000_000).fill({ $ref: '#' }) })],
  ['a very long word', () => ({ const: 'x'.repeat(5_000_000), description: '*/'.repeat(2_000_000) })],
  ['a large constant', () => ({ const: wide(100_000), enum: new Array(100_000).fill(wide(3)) })],
  [
    'wide ones within wide ones',
    () => {
      const inner = { properties: wide(300) }
      return { properties: Object.fromEntries(Object.keys(wide(3000)).map((key) => [key, inner])) }
    },
  ],
])('B9: %s cost little and end soon', async (_, makeSchema) => {
  const inputSchema = makeSchema()
  let text = ''
  await expectCpuBelow(5_000, () => {
    text = toolDeclaration({ identifier: 'a', name: 'a', definition: { inputSchema: inputSchema as never } }, 6000)
  })
  expect(text.length).toBeLessThan(12_000)
  stripTypeScriptTypes(declareServers(new Map([['server', [text]]])))
})
