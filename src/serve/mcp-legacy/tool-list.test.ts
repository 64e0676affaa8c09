import { ToolSchema } from '@modelcontextprotocol/sdk/types.js'
import { expect, test } from 'vitest'
import { openStatelessServer } from '../mcp-stateless/stateless.fixture.ts'
import { legacyToolList } from './tool-list.ts'

const tool = (name: string, outputSchema?: unknown) => ({ name, inputSchema: { type: 'object' }, outputSchema, own: 1 })
const bytes = (tools: readonly object[]) => Buffer.from(JSON.stringify(tools))

test.each([
  { type: 'array', items: { type: 'string' } },
  {},
  { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
  { type: ['object', 'null'] },
  { type: 'object', properties: { a: true } },
  { type: 'object', properties: [] },
  { type: 'object', required: [1] },
])('B2: %j is not promised to clients that would refuse the list for it, and nothing else is changed', (output) => {
  const known = tool('known', { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] })
  const list = JSON.parse(legacyToolList(bytes([known, tool('other', output), tool('none')])).toString())
  expect(list).toEqual([known, tool('other'), tool('none')])
  expect(ToolSchema.array().safeParse(list).success).toBe(true)
  expect(ToolSchema.safeParse(tool('other', output)).success).toBe(false)
})

test('B2: a list that needs no change is returned as it is', () => {
  const list = bytes([tool('a', { type: 'object' }), tool('b')])
  expect(legacyToolList(list)).toBe(list)
})

test('B2: of one list, clients of each era are given what they can read', async () => {
  await using server = await openStatelessServer()
  const page = () => ({ items: bytes([tool('list', { type: 'array' })]), count: 1 })
  Object.assign(server.access.view(undefined as never), { page })
  const { ask } = await server.session()
  expect((await ask('tools/list')).result.tools).toEqual([tool('list')])
  expect((await server.ask('tools/list')).result.tools).toEqual([tool('list', { type: 'array' })])
})
