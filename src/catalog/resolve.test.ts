import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { resolveName, serversInName } from './resolve.ts'
import { fakeSource, namingOf, snapshotOf } from './source.fixture.ts'

const spellings = (server: string, tool: string, configured: string) => {
  const joined = ['::', '.', '__', '/', configured].map((separator) => server + separator + tool)
  const behindOurs = ['toolway.', 'toolway::', 'toolway/', 'toolway__'].flatMap((own) =>
    joined.map((text) => own + text),
  )
  return [...joined, ...behindOurs, `toolway_${server}_${tool}`]
}

test('F3: every known spelling finds the tool', () => {
  const { snapshot } = snapshotOf(
    [fakeSource('files', { tools: ['read_file', 'math.add', '名'] })],
    namingOf({ separator: '-' }),
  )
  for (const tool of ['read_file', 'math.add', '名']) {
    for (const spelling of spellings('files', tool, '-')) {
      expect(resolveName(snapshot, 'tool', spelling, { separator: '-' }).map(({ entry }) => entry.name)).toEqual([tool])
    }
  }
  for (const spelling of [
    'read_file',
    'Files.read_file',
    'files:read_file',
    'files.',
    '.read_file',
    'toolway.read_file',
    '',
  ]) {
    expect(resolveName(snapshot, 'tool', spelling, { separator: '-' })).toEqual([])
  }
})

test('F3: the name of the gateway may stand in front, beside our own', () => {
  const { snapshot } = snapshotOf([
    fakeSource('toolway', { tools: ['list_servers'] }),
    fakeSource('eyes-mcp', { tools: ['check_health'] }),
    fakeSource('hive-gateway', { tools: ['own'] }),
  ])
  const found = (spelling: string, gateway?: string) =>
    resolveName(snapshot, 'tool', spelling, { separator: '__', gateway }).map(({ entry }) => entry.name)
  for (const join of ['.', '::', '/', '__', '_']) {
    const spelling = `hive-gateway${join}eyes-mcp${join}check_health`
    expect(found(spelling, 'hive-gateway'), spelling).toEqual(['check_health'])
    expect(found(spelling), spelling).toEqual([])
    expect(found(`hive-gateway${join}list_servers`, 'hive-gateway')).toEqual(['list_servers'])
    expect(found(`toolway${join}eyes-mcp${join}check_health`, 'hive-gateway')).toEqual(['check_health'])
  }
  expect(found('hive-gateway.own', 'hive-gateway')).toEqual(['own'])
  expect(found('hive-gateways.eyes-mcp.check_health', 'hive-gateway')).toEqual([])
  const named = serversInName(['eyes-mcp'], 'hive-gateway.nobody.x', { separator: '__', gateway: 'hive-gateway' })
  expect(named).toEqual({ servers: [], qualifier: 'nobody' })
})

test('F3, J1: our own tools are found by their names, behind our name and as a server’s', () => {
  const { snapshot } = snapshotOf([
    fakeSource('toolway', { tools: ['list_servers'] }),
    fakeSource('native', { tools: ['hash'] }),
  ])
  for (const spelling of [
    'hash',
    'native.hash',
    'toolway.hash',
    'toolway__hash',
    'toolway.native.hash',
    'toolway_native_hash',
  ]) {
    expect(resolveName(snapshot, 'tool', spelling, namingOf()).map(({ name }) => name)).toEqual(['hash'])
  }
  for (const spelling of ['toolway.list_servers', 'toolway_list_servers', 'toolway::list_servers']) {
    expect(resolveName(snapshot, 'tool', spelling, namingOf()).map(({ name }) => name)).toEqual(['list_servers'])
  }
})

test('F3: a spelling that two entries share finds both; a served name is its owner’s alone', () => {
  const { snapshot } = snapshotOf([
    fakeSource('a', { tools: ['b.c', 'b__c'] }),
    fakeSource('a.b', { tools: ['c'] }),
    fakeSource('a__b', { tools: ['c'] }),
  ])
  const found = (spelling: string) =>
    resolveName(snapshot, 'tool', spelling, namingOf()).map(({ entry }) => [entry.server, entry.name])
  expect(found('a.b.c')).toEqual([
    ['a', 'b.c'],
    ['a.b', 'c'],
  ])
  expect(found('a__b__c')).toEqual([['a', 'b__c']])
  expect(found('a__b/c')).toEqual([['a__b', 'c']])
})

test('F2: an entry that lost its name is found by the prefixed one; prompts and tools do not mix', () => {
  const sources = [fakeSource('a', { tools: ['x'] }), fakeSource('b', { tools: ['x'], prompts: ['x', 'y'] })]
  const { snapshot } = snapshotOf(sources, namingOf({ strategy: 'flat' }))
  const found = (kind: 'tool' | 'prompt', spelling: string) =>
    resolveName(snapshot, kind, spelling, namingOf()).map(({ entry }) => entry.server)
  expect(found('tool', 'x')).toEqual(['a'])
  expect(found('tool', 'b__x')).toEqual(['b'])
  expect(found('tool', 'b.x')).toEqual(['b'])
  expect(found('prompt', 'x')).toEqual(['b'])
  expect(found('tool', 'y')).toEqual([])
})

test('F3: each spelling of each entry finds that entry, unless it is another’s served name; never another alone', () => {
  const word = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'b', '_', '.', '/', ':'), minLength: 1, maxLength: 5 }),
    fc.constantFrom('toolway', 'native', '__proto__', 'a__b'),
  )
  const entries = fc.uniqueArray(fc.record({ server: word, tool: word }), {
    selector: ({ server, tool }) => `${server} ${tool}`,
    maxLength: 12,
  })
  const separator = fc.constantFrom('__', '-', '_', '::')
  const strategy = fc.constantFrom('prefix' as const, 'flat' as const)
  fc.assert(
    fc.property(entries, separator, strategy, (all, configured, chosen) => {
      const servers = Map.groupBy(all, ({ server }) => server)
      const sources = [...servers].map(([server, own]) => fakeSource(server, { tools: own.map(({ tool }) => tool) }))
      const { snapshot } = snapshotOf(sources, namingOf({ separator: configured, strategy: chosen }))
      for (const { server, tool } of all) {
        for (const spelling of spellings(server, tool, configured)) {
          const found = resolveName(snapshot, 'tool', spelling, { separator: configured })
          const owner = snapshot.byName.tool.get(spelling)
          if (owner) expect(found).toEqual([owner])
          else expect(found.some(({ entry }) => entry.server === server && entry.name === tool)).toBe(true)
        }
      }
    }),
    runs(20, 3_000),
  )
})

test('T1: a spelling yields the server that it names, or its qualifier', () => {
  const named = (spelling: string) => serversInName(['files', 'toolway', 'a__b'], spelling, namingOf())
  expect(named('files.x')).toEqual({ servers: ['files'], qualifier: 'files' })
  expect(named('toolway.files.x')).toEqual({ servers: ['files'], qualifier: 'files' })
  expect(named('toolway.nobody.x')).toEqual({ servers: [], qualifier: 'nobody' })
  expect(named('toolway.x')).toEqual({ servers: ['toolway'], qualifier: 'toolway' })
  expect(named('toolway_files_x')).toEqual({ servers: ['files'] })
  expect(named('a__b__c')).toEqual({ servers: ['a__b'], qualifier: 'a' })
  expect(named('nobody::x')).toEqual({ servers: [], qualifier: 'nobody' })
  expect(named('plain')).toEqual({ servers: [] })
})
