import { expect, test } from 'vitest'
import { entryOf } from '../core/call.fixture.ts'
import { setUp } from './catalog.fixture.ts'
import { callerOf, decideBy, fakeSource, namingOf } from './source.fixture.ts'

const find = entryOf({
  server: 'toolway',
  name: 'find_tool',
  aliases: ['search_tools'],
  definition: { name: 'find_tool', description: 'Finds.' },
  descriptionFor: (servers, name) => `${name} knows ${servers.length}.`,
})
const describe = entryOf({ server: 'toolway', name: 'describe_tools', definition: { name: 'describe_tools' } })
const meta = { ...fakeSource('toolway'), entries: () => [find, describe] }
const native = fakeSource('native', { tools: ['hash', 'execute_code'] })
// Wants, under flat names, what code mode is made of.
const files = fakeSource('files', { tools: ['search_tools', 'read'] })
const naming = namingOf({ strategy: 'flat' })
const named = (tools: readonly { name: string }[]) => tools.map(({ name }) => name)

test('B3: code mode shows how to find, declare and call a tool, by these three names and nothing else', () => {
  const { view } = setUp([meta, native, files], { naming, exposure: () => 'code' })
  const tools = JSON.parse(view.page('tool').items.toString())
  expect(named(tools)).toEqual(['search_tools', 'describe_tools', 'execute_code'])
  expect(tools[0]).toMatchObject({ description: 'search_tools knows 2.', _meta: { 'dev.toolway/server': 'toolway' } })
})

test('B3: nothing is shown twice: other modes list the search by its own name, and leave out what is for programs', () => {
  const { view } = setUp([meta, native, files], { naming })
  expect(named(view.shown('meta'))).toEqual(['find_tool'])
  expect(view.shown('meta')[0]?.definition.description).toBe('find_tool knows 2.')
  expect(named(view.shown('both'))).toEqual(['find_tool', 'hash', 'execute_code', 'files__search_tools', 'read'])
  expect(named(view.list('tool')).filter((name) => name === 'search_tools')).toEqual([])
})

test('F3: an alias finds its entry, whatever servers call their tools', async () => {
  const { view } = setUp([meta, native, files], { naming })
  for (const spelling of ['search_tools', 'toolway.search_tools', 'toolway::find_tool', 'find_tool']) {
    expect((await view.resolve('tool', spelling)).entry, spelling).toBe(find)
  }
  expect((await view.find('tool', 'toolway', 'search_tools')).entry).toBe(find)
  expect((await view.resolve('tool', 'files.search_tools')).entry.server).toBe('files')
})

test('G6: code mode shows no more of the three than the agent may use', () => {
  const decide = decideBy((_, { name }) => name !== 'execute_code')
  const { catalog } = setUp([meta, native], { decide })
  expect(named(catalog.view(callerOf()).shown('code'))).toEqual(['search_tools', 'describe_tools'])
})

test('T4, F4: if the tools of a server change, the description that counts them changes, and callers are notified', () => {
  const growing = fakeSource('growing', { tools: ['a'] })
  const counting = { ...find, descriptionFor: (servers: readonly { tools: number }[]) => `${servers[0]?.tools} tools` }
  const { catalog, view, clock } = setUp([{ ...fakeSource('toolway'), entries: () => [counting] }, growing])
  const told: string[][] = []
  catalog.onChange((kinds) => told.push([...kinds]))
  const description = () => view.shown('meta')[0]?.definition.description
  expect(description()).toBe('1 tools')
  growing.offer({ tools: ['a', 'b'] })
  expect(description()).toBe('2 tools')
  clock.advance(1_000)
  expect(told).toEqual([['tool']])
})
