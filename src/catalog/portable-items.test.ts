import { expect, test } from 'vitest'
import { entryOf } from '../core/call.fixture.ts'
import { Json } from '../json/json.ts'
import { setUp } from './catalog.fixture.ts'
import { callerOf, fakeSource, namingOf } from './source.fixture.ts'

const inputSchema = {
  type: 'object',
  properties: { 'a-b': { type: 'string', minLength: 1 } },
  additionalProperties: false,
}
const entry = entryOf({ server: 'files', name: 'read', definition: { name: 'read', inputSchema } })
const files = { ...fakeSource('files'), entries: () => [entry] }
const isPortable = ({ agent }: { agent: string }) => agent === 'gemini'
const namesOf = (tools: readonly { name: string }[]) => tools.map(({ name }) => name)

test('W8: only callers with portable schemas get rewritten definitions, in lists, searches and lookups', async () => {
  const { catalog } = setUp([files], { isPortable })
  const portable = catalog.view(callerOf({ agent: 'gemini' }))
  const verbatim = catalog.view(callerOf({ agent: 'other' }))
  const rewritten = { type: 'object', properties: { a_b: { type: 'string', description: '(minLength: 1)' } } }
  const found = [
    portable.list('tool')[0],
    portable.known('tool', 'files__read'),
    (await portable.search('read', { limit: 1 })).tools[0],
  ]
  const resolved = [await portable.resolve('tool', 'files__read'), await portable.find('tool', 'files', 'read')]
  for (const served of [...found, ...resolved]) {
    expect(served?.definition.inputSchema).toEqual(rewritten)
    expect(served?.entry).toBe(entry)
    expect(served?.restore?.(Json.of<Record<string, unknown>>({ a_b: 'x' })).value).toEqual({ 'a-b': 'x' })
  }
  expect(JSON.parse(portable.page('tool').items.toString())[0].inputSchema).toEqual(rewritten)
  expect(JSON.parse(verbatim.page('tool').items.toString())[0].inputSchema).toEqual(inputSchema)
  expect(verbatim.known('tool', 'files__read')).not.toHaveProperty('restore')
})

test('W8: a tool is found by its portable name, which hides no other tool', async () => {
  const servers = [fakeSource('1', { tools: ['a', 'b'] }), fakeSource('_1', { tools: ['a'] })]
  const { catalog } = setUp(servers, { isPortable, naming: namingOf({ separator: '.' }) })
  const view = catalog.view(callerOf({ agent: 'gemini' }))
  const names = namesOf(view.list('tool'))
  expect(names).toEqual(['_1_a', '_1_b', '_1_a_2'])
  for (const [index, name] of names.entries())
    expect((await view.resolve('tool', name)).entry).toBe(view.list('tool')[index]?.entry)
  expect((await view.resolve('tool', '1.b')).name).toBe('_1_b')
})

test('V14: tools that are always loaded are found by the search too', async () => {
  const { view } = setUp([fakeSource('files', { tools: ['read', 'write'] })], { isAlwaysLoaded: () => true })
  expect(namesOf((await view.search('read', { limit: 1 })).tools)).toEqual(['files__read'])
})
