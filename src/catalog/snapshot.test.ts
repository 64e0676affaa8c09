import { expect, test } from 'vitest'
import type { EntryOverride } from '../core/entry.ts'
import { SnapshotBuilder } from './snapshot.ts'
import { fakeSource, keepingLog, namingOf } from './source.fixture.ts'

const definitionOf = (
  offered: Record<string, unknown>,
  health: 'healthy' | 'degraded' | 'stale' | 'unhealthy' = 'healthy',
) => {
  const sources = [fakeSource('files', { tools: [{ name: 'read', ...offered }], health })]
  const merge = new SnapshotBuilder({ sources, naming: namingOf(), log: keepingLog() })
  return merge.snapshot().items.tool[0]?.definition as Record<string, unknown>
}

test('F1: a definition is served verbatim and in its own order, but for its name and our keys in _meta', () => {
  const offered = {
    title: 'T',
    name: 'read',
    odd: { deep: [1, null] },
    _meta: { theirs: 1 },
    inputSchema: { type: 'object' },
  }
  const served = definitionOf(offered)
  expect(JSON.stringify(served)).toBe(
    '{"name":"files__read","title":"T","odd":{"deep":[1,null]},"_meta":{"theirs":1,' +
      '"dev.toolway/source":"forwarded","dev.toolway/server":"files"},"inputSchema":{"type":"object"}}',
  )
  expect(Object.keys(definitionOf(JSON.parse('{"__proto__":{"a":1},"_meta":{"__proto__":{"b":1}}}')))).toContain(
    '__proto__',
  )
})

test('F1: a server cannot forge our keys', () => {
  const ours = { 'dev.toolway/source': 'native', 'dev.toolway/server': 'native', 'dev.toolway/tags': ['a'] }
  const _meta = { ...ours, 'dev.toolway/stale': true, x: 1 }
  expect(definitionOf({ _meta })._meta).toEqual({
    x: 1,
    'dev.toolway/source': 'forwarded',
    'dev.toolway/server': 'files',
  })
  expect(definitionOf({ _meta: 'nonsense' })._meta).toEqual({
    'dev.toolway/source': 'forwarded',
    'dev.toolway/server': 'files',
  })
})

test('S1: what a server cannot confirm now is marked stale', () => {
  const marked = (health: Parameters<typeof definitionOf>[1]) =>
    (definitionOf({}, health)._meta as Record<string, unknown>)['dev.toolway/stale']
  expect([marked('healthy'), marked('degraded'), marked('stale'), marked('unhealthy')]).toEqual([
    undefined,
    undefined,
    true,
    true,
  ])
})

test('B2: the app page that a tool names can be read through us', () => {
  const ui = { resourceUri: 'ui://app/main', prefersBorder: true }
  expect(definitionOf({ _meta: { ui, 'ui/resourceUri': 'ui://app/main' } })._meta).toMatchObject({
    ui: { resourceUri: 'ui://files/app/main', prefersBorder: true },
    'ui/resourceUri': 'ui://files/app/main',
  })
})

test('F1, J1: lists go meta-tools, native tools, servers as configured, entries as their server lists them', () => {
  const sources = [
    fakeSource('z', { tools: ['b', 'a'], resources: ['x://1'], templates: ['x://{a}'], prompts: ['p'] }),
    fakeSource('native', { tools: ['time', 'hash'] }),
    fakeSource('a', { tools: ['c'], priority: 100 }),
    fakeSource('toolway', { tools: ['list_servers'] }),
  ]
  const { items } = new SnapshotBuilder({ sources, naming: namingOf(), log: keepingLog() }).snapshot()
  expect(items.tool.map(({ name }) => name)).toEqual(['list_servers', 'time', 'hash', 'z__b', 'z__a', 'a__c'])
  expect(items.resource.map(({ definition }) => definition.uri)).toEqual(['x://z/1'])
  expect(items.template.map(({ definition }) => definition.uriTemplate)).toEqual(['x://z/{a}'])
  expect(items.prompt.map(({ definition }) => definition.name)).toEqual(['z__p'])
})

test('F2: a collision is logged once, however often the catalog is made again', () => {
  const log = keepingLog()
  const sources = [fakeSource('a', { tools: ['x'] }), fakeSource('b', { tools: ['x', 'x'] })]
  const merge = new SnapshotBuilder({ sources, naming: namingOf({ strategy: 'flat' }), log })
  for (const source of [...sources, ...sources]) {
    merge.snapshot()
    merge.invalidate(source)
  }
  expect(log.lines.map(({ facts }) => facts)).toEqual([
    { server: 'b', kind: 'tool', name: 'x' },
    { kind: 'tool', server: 'b', name: 'x', wanted: 'x', served: 'b__x', winner: { server: 'a', name: 'x' } },
  ])
})

test('F4: a change of one server makes a new snapshot and leaves the others’ items as they are', () => {
  const sources = [fakeSource('a', { tools: ['x'] }), fakeSource('b', { tools: ['y'] })] as const
  const merge = new SnapshotBuilder({ sources, naming: namingOf(), log: keepingLog() })
  const before = merge.snapshot()
  expect(merge.snapshot()).toBe(before)
  sources[1].offer({ tools: ['y', 'z'] })
  merge.invalidate(sources[1])
  const after = merge.snapshot()
  expect(after.items.tool.map(({ name }) => name)).toEqual(['a__x', 'b__y', 'b__z'])
  expect(after.items.tool[0]).toBe(before.items.tool[0])
})

/** A source whose tools have overrides, by their names. */
function overriddenSource(server: string, overrides: Readonly<Record<string, Partial<EntryOverride>>>) {
  const source = fakeSource(server, { tools: Object.keys(overrides) })
  const complete: EntryOverride['complete'] = (args) => args
  const entries = source.entries().map((entry) => ({
    ...entry,
    override: { hidden: false, tags: [], check() {}, complete, ...overrides[entry.name] },
  }))
  return { ...source, entries: () => entries }
}

test("V15: a renamed tool is listed under its new name, and found by the server's name too", () => {
  const sources = [overriddenSource('a', { x: { name: 'y', tags: ['t'] } }), fakeSource('b', { tools: ['x', 'y'] })]
  const log = keepingLog()
  const flat = new SnapshotBuilder({ sources, naming: namingOf({ strategy: 'flat' }), log }).snapshot()
  expect(flat.items.tool.map(({ name }) => name)).toEqual(['y', 'x', 'b__y'])
  expect(log.lines.map(({ facts }) => facts)).toEqual([
    { kind: 'tool', server: 'b', name: 'y', wanted: 'y', served: 'b__y', winner: { server: 'a', name: 'y' } },
  ])
  const [item] = flat.items.tool
  expect(item?.definition).toMatchObject({ name: 'y', _meta: { 'dev.toolway/tags': ['t'] } })
  expect([...(flat.registry.get('a')?.tool.keys() ?? [])]).toEqual(['y', 'x'])
  expect(flat.registry.get('a')?.tool.get('x')).toBe(item)
})

test('V15: a hidden tool is known by its names, and in no list', () => {
  const sources = [overriddenSource('a', { x: { hidden: true }, y: {} })]
  const { items, allTools, byName } = new SnapshotBuilder({ sources, naming: namingOf(), log: keepingLog() }).snapshot()
  expect(items.tool.map(({ name }) => name)).toEqual(['a__y'])
  expect(allTools.map(({ name }) => name)).toEqual(['a__y', 'a__x'])
  expect(byName.tool.has('a__x')).toBe(true)
})
