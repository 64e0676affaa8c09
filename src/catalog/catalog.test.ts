import assert from 'node:assert/strict'
import { describe, expect, test } from 'vitest'
import type { Page, View } from '../core/access.ts'
import { entryOf } from '../core/call.fixture.ts'
import { listed, ownTools, setUp } from './catalog.fixture.ts'
import { callerOf, decideBy, type FakeSource, fakeSource } from './source.fixture.ts'

const own = ownTools()
const shown = ({ items }: Page): string[] => JSON.parse(items.toString()).map((item: { name: string }) => item.name)

describe('listing', () => {
  test.each([
    ['direct', ['hash', 'files__read']],
    ['meta', ['list_servers']],
    ['both', ['list_servers', 'hash', 'files__read']],
    ['code', []],
  ] as const)('B3: with exposure %s a client is shown %j', (exposure, names) => {
    const files = fakeSource('files', { tools: ['read'], prompts: ['p'] })
    const { view } = setUp([files, ...own], { exposure: () => exposure })
    expect(shown(view.page('tool'))).toEqual(names)
    expect(view.shown().map(({ name }) => name)).toEqual(names)
    expect(view.shown('both').map(({ name }) => name)).toEqual(['list_servers', 'hash', 'files__read'])
    expect(shown(view.page('prompt'))).toEqual(['files__p'])
    expect(listed(view)).toEqual(['list_servers', 'hash', 'files__read'])
  })

  test('B3: the bytes of a list are put together once', () => {
    const { view, catalog } = setUp([fakeSource('files', { tools: ['read'] })])
    expect(view.page('tool').items).toBe(catalog.view(callerOf({ session: 's2' })).page('tool').items)
    expect(view.page('resource').items.toString()).toBe('[]')
  })

  test('B2: long lists come in pages, in one order and without gaps', () => {
    const tools = Array.from({ length: 20_500 }, (_, index) => `t${index}`)
    const { view } = setUp([fakeSource('s', { tools })])
    const first = view.page('tool')
    const second = view.page('tool', first.nextCursor)
    const third = view.page('tool', second.nextCursor)
    const all = [...shown(first), ...shown(second), ...shown(third)]
    assert.deepEqual(
      all,
      tools.map((name) => `s__${name}`),
    )
    expect(third.nextCursor).toBeUndefined()
  })

  test('B2: an unknown cursor is refused', () => {
    const { view } = setUp([fakeSource('s', { tools: ['a'] })])
    for (const cursor of ['', 'nonsense', Buffer.from('s__b').toString('base64url')]) {
      expect(() => view.page('tool', cursor)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENTS' }))
    }
  })

  test('G6: an agent sees what it may use, also by way of an unauthenticated caller of its name', async () => {
    const sources = [
      fakeSource('a', { tools: ['x', 'y'] }),
      fakeSource('b', { tools: ['z'] }),
      fakeSource('silent'),
      ...own,
    ]
    const { catalog } = setUp(sources, {
      decide: decideBy(
        (caller, entry) =>
          (entry.server !== 'b' && entry.name !== 'y') || (caller.agent === 'boss' && caller.authenticated),
      ),
    })
    const junior = catalog.view(callerOf({ agent: 'junior' }))
    const boss = catalog.view(callerOf({ agent: 'boss' }))
    const guest = catalog.view(callerOf({ agent: 'boss', authenticated: false }))
    expect(listed(junior)).toEqual(['list_servers', 'hash', 'a__x'])
    expect(listed(boss)).toEqual(['list_servers', 'hash', 'a__x', 'a__y', 'b__z'])
    expect(listed(guest)).toEqual(listed(junior))
    const summary = (view: View) => view.servers().map(({ name, tools }) => [name, tools])
    expect(summary(junior)).toEqual([
      ['a', 1],
      ['silent', 0],
      ['native', 1],
    ])
    expect(summary(boss)).toEqual([
      ['a', 2],
      ['b', 1],
      ['silent', 0],
      ['native', 1],
    ])
    expect(await junior.search('z', { limit: 5 })).toEqual({ tools: [], total: 0 })
    expect((await boss.search('z', { limit: 5 })).tools.map(({ name }) => name)).toEqual(['b__z'])
  })

  test('G6: a tool that describes servers describes to each agent only those that it may use', () => {
    const entry = entryOf({
      server: 'toolway',
      name: 'list_servers',
      definition: { name: 'list_servers', description: 'Lists servers.' },
      descriptionFor: (servers) => `Lists ${servers.map(({ name, tools }) => `${name} (${tools})`).join()}.`,
    })
    const meta = { ...fakeSource('toolway'), entries: () => [entry] }
    const sources = [meta, fakeSource('a', { tools: ['x', 'y'] }), fakeSource('b', { tools: ['z'] })]
    const decide = decideBy((caller, { server }) => server !== 'b' || caller.agent === 'boss')
    const { catalog } = setUp(sources, { decide })
    const told = (agent: string) => {
      const [tool] = JSON.parse(catalog.view(callerOf({ agent })).page('tool').items.toString())
      return tool.description
    }
    expect([told('junior'), told('boss')]).toEqual(['Lists a (2).', 'Lists a (2),b (1).'])
  })

  test('G6: the lists of many agents are cached up to a limit, and stay correct', () => {
    let asked = 0
    const { catalog } = setUp([fakeSource('a', { tools: ['x'] })], { decide: decideBy(() => ++asked > 0) })
    const agents = Array.from({ length: 200 }, (_, index) => callerOf({ agent: `agent${index}` }))
    for (const agent of agents) expect(listed(catalog.view(agent))).toEqual(['a__x'])
    expect(asked).toBe(200)
    listed(catalog.view(agents[199] as (typeof agents)[0]))
    expect(asked).toBe(200)
    listed(catalog.view(agents[0] as (typeof agents)[0]))
    expect(asked).toBe(201)
  })
})

describe('changes', () => {
  const watch = (sources: readonly FakeSource[]) => {
    const set = setUp(sources)
    const heard: string[][] = []
    const subscription = set.catalog.onChange((kinds) => heard.push([...kinds]))
    return { ...set, heard, subscription }
  }

  test('F4: a burst of changes causes one notification, which names the changed lists and follows their update', () => {
    const files = fakeSource('files', { tools: ['a'], prompts: ['p'] })
    const { clock, heard, view } = watch([files])
    files.offer({ tools: ['a', 'b'], prompts: ['p'] })
    clock.advance(99)
    files.offer({ tools: ['a', 'b', 'c'], prompts: ['p'], resources: ['x://1'] })
    clock.advance(99)
    expect(heard).toEqual([])
    clock.advance(1)
    expect(heard).toEqual([['tool', 'resource']])
    expect(listed(view)).toEqual(['files__a', 'files__b', 'files__c'])
  })

  test('F4: a server that never stops changing causes one notification per second', () => {
    const files = fakeSource('files')
    const { clock, heard } = watch([files])
    for (let step = 0; step < 50; step++) {
      files.offer({ tools: [`t${step}`] })
      clock.advance(50)
    }
    expect(heard).toHaveLength(2)
  })

  test('F4: a server that lists the same again causes no notification', () => {
    const files = fakeSource('files', { tools: [{ name: 'a', description: 'A' }] })
    const { clock, heard } = watch([files])
    files.offer({ tools: [{ name: 'a', description: 'A' }] })
    clock.advance(2_000)
    expect(heard).toEqual([])
    files.offer({ tools: [{ name: 'a', description: 'B' }] })
    clock.advance(2_000)
    expect(heard).toEqual([['tool']])
  })

  test('F4: a change is announced if it was reverted after a caller listed it', () => {
    const files = fakeSource('files', { tools: ['a'] })
    const { clock, heard, view } = watch([files])
    files.offer({ tools: ['b'] })
    expect(listed(view)).toEqual(['files__b'])
    files.offer({ tools: ['a'] })
    clock.advance(2_000)
    expect(heard).toEqual([['tool']])
  })

  test('S1: a server that becomes stale causes a notification, because its tools are marked', () => {
    const files = fakeSource('files', { tools: ['a'] })
    const { clock, heard, view } = watch([files])
    files.become('unhealthy')
    clock.advance(100)
    expect(heard).toEqual([['tool']])
    expect(view.list('tool')[0]?.definition._meta).toMatchObject({ 'dev.toolway/stale': true })
  })

  test('F4: a listener that throws does not stop others, and a disposed one is not called', () => {
    const files = fakeSource('files')
    const { catalog, clock, heard, log, subscription } = watch([files])
    catalog.onChange(() => {
      throw new Error('broken')
    })
    const late: unknown[] = []
    catalog.onChange((kinds) => late.push(kinds))
    subscription[Symbol.dispose]()
    files.offer({ tools: ['a'] })
    clock.advance(100)
    expect([heard.length, late.length, log.lines.length]).toEqual([0, 1, 1])
  })

  test('F4: after disposal no change is announced and no timer is left', () => {
    const files = fakeSource('files')
    const { catalog, clock, heard } = watch([files])
    files.offer({ tools: ['a'] })
    catalog[Symbol.dispose]()
    files.offer({ tools: ['b'] })
    clock.advance(2_000)
    expect(heard).toEqual([])
    expect(clock.pending).toBe(0)
  })
})
