import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Kind } from '../core/entry.ts'
import { silentLog } from '../core/log.ts'
import type { CallerChangeListener, Source } from '../core/source.ts'
import { Catalogs } from './catalog.ts'
import { callerOf, decideBy, type FakeSource, fakeSource, namingOf, type Offer } from './source.fixture.ts'

function setUp(sources: readonly Source[], naming = namingOf()) {
  const clock = createManualClock()
  const rules = { decide: decideBy(() => true), closed: () => undefined, exposure: () => 'both' as const }
  return { clock, catalog: new Catalogs({ sources, naming, listDeadlineMs: 100, rules, clock, log: silentLog }) }
}

/** A server that shows one tool more to those who can be asked. */
function twoFaced() {
  const plain = fakeSource('s', { tools: ['read'] })
  const rich = fakeSource('s', { tools: ['read', 'ask'] })
  const source: Source = { ...plain, seenBy: (capabilities) => (capabilities.elicitation ? rich : plain) }
  return { plain, rich, source }
}

const names = (catalog: ReturnType<typeof setUp>['catalog'], capabilities: object) =>
  catalog
    .view(callerOf({ capabilities: capabilities as Record<string, unknown> }))
    .list('tool')
    .map(({ name }) => name)

test('B2: each kind of client sees what servers show to its kind', () => {
  const { catalog } = setUp([twoFaced().source])
  expect(names(catalog, {})).toEqual(['s__read'])
  expect(names(catalog, { elicitation: {} })).toEqual(['s__read', 's__ask'])
})

test('F2: with flat, a URI in a result is the one that the caller’s client sees in lists', () => {
  const rich = fakeSource('s', { resources: ['demo://static'] })
  const source: Source = { ...fakeSource('s'), seenBy: ({ elicitation }) => (elicitation ? rich : fakeSource('s')) }
  const { catalog } = setUp([source], namingOf({ strategy: 'flat' }))
  const caller = callerOf({ capabilities: { elicitation: {} } })
  expect(catalog.view(caller).list('resource')).toMatchObject([{ name: 'demo://static' }])
  const served = catalog.servedUris(callOf({ caller, entry: entryOf({ server: 's' }) }))
  expect(served('demo://static')).toBe('demo://static')
  expect(served('demo://unlisted')).toBe('demo://s/unlisted')
})

test('F2: with flat, reading a template’s URI returns that URI, unless only the server’s form reaches the server', () => {
  const a = fakeSource('a', { templates: ['demo://greet/{name}', 'x://{id}'] })
  const b = fakeSource('b', { resources: ['demo://greet/b'], templates: ['x://{+rest}'] })
  const { catalog } = setUp([a, b], namingOf({ strategy: 'flat' }))
  const read = (uri: string) => {
    const { input } = callOf()
    return catalog.servedUris(callOf({ entry: entryOf({ server: 'a' }), input: { ...input, uri } }))
  }
  expect(read('demo://greet/a')('demo://greet/a')).toBe('demo://greet/a')
  expect(read('demo://greet/b')('demo://greet/b')).toBe('demo://a/greet/b')
  expect(read('x://1')('x://1')).toBe('x://a/1')
  expect(read('demo://greet/a')('demo://greet/c')).toBe('demo://a/greet/c')
})

test('F4: a change that concerns several kinds of clients is announced once', async () => {
  const { plain, rich, source } = twoFaced()
  const { catalog, clock } = setUp([source])
  names(catalog, {})
  names(catalog, { elicitation: {} })
  const told: ReadonlySet<Kind>[] = []
  using _ = catalog.onChange((kinds) => told.push(kinds))
  plain.offer({ tools: ['read', 'write'] })
  rich.offer({ tools: ['read', 'ask', 'write'] })
  clock.advance(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  expect(told).toEqual([new Set(['tool'])])
})

test('B2: kinds of clients are those that differ in what lists may depend on', () => {
  const { catalog } = setUp([twoFaced().source])
  expect(names(catalog, { elicitation: {} })).toHaveLength(2)
  for (let kind = 0; kind < 100; kind++) names(catalog, { [`odd${kind}`]: {} })
  expect(names(catalog, { elicitation: { url: {} }, experimental: {} })).toHaveLength(2)
  expect(names(catalog, {})).toHaveLength(1)
})
/** A server that lists something else for some sessions. */
function withSessions() {
  const common = fakeSource('s', { tools: ['read'] })
  const own = new Map<string, FakeSource>()
  const listeners = new Set<CallerChangeListener>()
  const source: Source = {
    ...common,
    seenBy: (_, caller) => own.get(caller?.session ?? '') ?? common,
    hasListsFor: ({ session }) => own.has(session),
    onCallerChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
  const list = (session: string, offer: Offer) => {
    const known = own.get(session)
    if (known) return known.offer(offer)
    own.set(session, fakeSource('s', offer))
    for (const listener of listeners) listener(callerOf({ session }))
  }
  return { source, common, list, own, listeners }
}

const namesFor = (catalog: ReturnType<typeof setUp>['catalog'], session: string) =>
  catalog
    .view(callerOf({ session }))
    .list('tool')
    .map(({ name }) => name)

test('G3: only the session that a server has lists for sees them', async () => {
  const { source, list } = withSessions()
  const { catalog } = setUp([source, fakeSource('t', { tools: ['other'] })])
  list('alice', { tools: ['read', 'enabled'] })
  expect(namesFor(catalog, 'alice')).toEqual(['s__read', 's__enabled', 't__other'])
  expect(namesFor(catalog, 'bob')).toEqual(['s__read', 't__other'])
  const find = (session: string) => catalog.view(callerOf({ session })).resolve('tool', 's__enabled')
  expect((await find('alice')).name).toBe('s__enabled')
  await expect(find('bob')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
  const { tools } = await catalog.view(callerOf({ session: 'bob' })).search('enabled', { limit: 5 })
  expect(tools).toEqual([])
})

test('F4, G3: only the session with its own lists is notified when they change; a change for all is reported once', async () => {
  const { source, common, list, own, listeners } = withSessions()
  const { catalog, clock } = setUp([source])
  const told: [kinds: Kind[], session: string | undefined][] = []
  catalog.onChange((kinds, session) => told.push([[...kinds], session]))
  const passed = async () => {
    clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
    return told.splice(0)
  }
  list('alice', { tools: ['read'], prompts: ['greet'] })
  expect(await passed()).toEqual([[['prompt'], 'alice']])
  list('alice', { tools: ['read', 'enabled'], prompts: ['greet'] })
  expect(await passed()).toEqual([[['tool'], 'alice']])
  common.offer({ tools: ['read', 'write'] })
  list('alice', { tools: ['read', 'write'], prompts: [] })
  expect(await passed()).toEqual([
    [['tool'], undefined],
    [['prompt'], 'alice'],
  ])
  list('alice', { tools: ['read', 'write', 'more'] })
  expect(await passed()).toEqual([[['tool'], 'alice']])
  // What the source of the session shows from now on is what all see.
  own.get('alice')?.offer({ tools: ['read', 'write'] })
  own.delete('alice')
  for (const listener of listeners) listener(callerOf({ session: 'alice' }))
  expect(namesFor(catalog, 'alice')).toEqual(['s__read', 's__write'])
  await new Promise((resolve) => setImmediate(resolve))
  expect(await passed()).toEqual([[['tool'], 'alice']])
  catalog[Symbol.dispose]()
  expect(listeners.size).toBe(0)
})

test('security: sessions with lists of their own are bounded; the longest unused one is evicted and restored without a notification', async () => {
  const { source, list } = withSessions()
  const { catalog, clock } = setUp([source])
  for (let session = 0; session < 200; session++) list(`s${session}`, { tools: ['read', `t${session}`] })
  clock.advance(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  let told = 0
  catalog.onChange(() => told++)
  for (const session of [0, 199, 7]) expect(namesFor(catalog, `s${session}`)).toEqual(['s__read', `s__t${session}`])
  clock.advance(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  expect(told).toBe(0)
})
