import { PromptSchema, ResourceSchema, ResourceTemplateSchema, ToolSchema } from '@modelcontextprotocol/sdk/types.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { Definition } from '../../core/entry.ts'
import { repairedDefinition } from './definitions.ts'

const members = {
  tool: ['title', 'description', 'annotations', 'execution', 'icons', '_meta', 'inputSchema'],
  resource: ['name', 'title', 'description', 'mimeType', 'size', 'annotations', 'icons', '_meta'],
  template: ['name', 'title', 'description', 'mimeType', 'annotations', 'icons', '_meta'],
  prompt: ['title', 'description', 'arguments', 'icons', '_meta'],
}
const word = fc.constantFrom(
  ...['type', 'properties', 'required', 'name', 'src', 'sizes', 'theme', 'title', 'description', 'readOnlyHint'],
  ...['taskSupport', 'audience', 'priority', 'lastModified', '__proto__', 'object', 'light', 'user', 'optional'],
)
const anything = fc.letrec((again) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    word,
    fc.constantFrom(null, true, false, 0, 0.5, -7, 1e300, Number.POSITIVE_INFINITY, '', '2026-01-01T00:00:00Z'),
    fc.array(again('value'), { maxLength: 2 }),
    fc.dictionary(word, again('value'), { maxKeys: 3 }),
  ),
})).value

test.each([
  ['tool', ToolSchema, { name: 'x', inputSchema: { type: 'object' } }],
  ['resource', ResourceSchema, { uri: 'a:b', name: 'x' }],
  ['template', ResourceTemplateSchema, { uriTemplate: 'a:{b}', name: 'x' }],
  ['prompt', PromptSchema, { name: 'x' }],
] as const)('S1: whatever a server writes into a %s, clients can parse the list', (kind, schema, bare) => {
  const written = fc.dictionary(fc.constantFrom(...members[kind]), anything, { maxKeys: 3 })
  fc.assert(
    fc.property(written, (given) => {
      const { inputSchema = { type: 'object' }, ...rest } = given
      const input = kind === 'tool' ? { inputSchema: Object(inputSchema) } : {}
      // As clients receive it.
      const definition = JSON.parse(JSON.stringify(repairedDefinition(kind, { ...bare, ...rest, ...input })))
      expect(schema.safeParse(definition).error?.issues, JSON.stringify(definition)).toBeUndefined()
    }),
    runs(40, 2_000),
  )
})

test('B2: a definition that is right stays the very same, and of a wrong one only what is wrong changes', () => {
  const right = {
    name: 'x',
    description: 'd',
    inputSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], 'x-own': 1 },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true, own: 'kept' },
    icons: [{ src: 'data:,', sizes: ['any'] }],
    own: { kept: true },
  }
  expect(repairedDefinition('tool', right)).toBe(right)
  const { annotations: _annotations, ...plain } = right
  for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']) {
    const broken = { ...plain, annotations: { own: 'kept', [hint]: 'yes' } }
    expect(repairedDefinition('tool', broken).annotations, hint).not.toEqual(broken.annotations)
  }
  const list = { ...right, outputSchema: { type: 'array', items: { type: 'string' } } }
  expect(repairedDefinition('tool', list)).toBe(list)
  const wrong = {
    ...right,
    description: null,
    inputSchema: { ...right.inputSchema, properties: { a: true, b: false } },
  }
  const { description: _, ...rest } = right
  expect(repairedDefinition('tool', wrong as unknown as Definition)).toEqual({
    ...rest,
    inputSchema: { ...right.inputSchema, properties: { a: {}, b: { not: {} } } },
  })
})

test('B2: of the annotations of MCP, those with a wrong type are removed', () => {
  const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']
  for (const hint of hints) {
    const wrong = { name: 'x', inputSchema: { type: 'object' }, annotations: { [hint]: 'yes' } }
    expect(repairedDefinition('tool', wrong), hint).not.toHaveProperty(['annotations'])
  }
})

test.each([Number.POSITIVE_INFINITY, -1, 0.5, 1e300, '5'])(
  'G2: a size of %s, which some clients cannot parse, is removed',
  (size) => {
    const repaired = repairedDefinition('resource', { uri: 'a:b', name: 'x', size } as Definition)
    expect(repaired).toEqual({ uri: 'a:b', name: 'x' })
  },
)
