import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { Served } from '../core/access.ts'
import { tokenCost } from '../core/tokens.ts'
import { setUp } from './catalog.fixture.ts'
import { ChosenExposures, exposureFor } from './exposure.ts'
import { callerOf, fakeSource } from './source.fixture.ts'

const described = (name: string, length: number) => ({ name, description: 'd'.repeat(length) })
const itemOf = (definition: { readonly name: string }) =>
  ({ name: definition.name, definition, entry: {} }) as unknown as Served
const shownOf = (definition: { readonly name: string }) => ({
  direct: [itemOf(definition)],
  both: [itemOf(definition)],
})
const own = () => fakeSource('toolway', { tools: ['find_tool', 'execute_tool'] })
const auto = () => 'auto' as const
const named = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name)

describe('V14: expose auto', () => {
  test('lists all tools and the meta-tools while the tools take less than the threshold', () => {
    const { view } = setUp([own(), fakeSource('files', { tools: ['read', 'write'] })], { exposure: auto })
    expect(view.exposure()).toBe('both')
    expect(named(view.shown())).toEqual(['find_tool', 'execute_tool', 'files__read', 'files__write'])
  })

  test('lists the mode above from exactly the threshold on', () => {
    const { view } = setUp([own(), fakeSource('files', { tools: [described('read', 400)] })])
    const tools = { direct: view.shown('direct'), both: view.shown('both') }
    const threshold = tokenCost(tools.direct)
    expect(exposureFor('auto', tools, { threshold, above: 'code' })).toBe('code')
    expect(exposureFor('auto', tools, { threshold: threshold + 1, above: 'code' })).toBe('both')
    expect(exposureFor('direct', tools, { threshold, above: 'code' })).toBe('direct')
    const withLongMeta = { ...tools, both: [...tools.both, ...tools.both, itemOf(described('meta', 8_000))] }
    expect(exposureFor('auto', withLongMeta, { threshold: threshold + 1, above: 'code' })).toBe('direct')
  })

  test('never flips within a session, and chooses again in the next one', () => {
    const files = fakeSource('files', { tools: ['read'] })
    const { catalog } = setUp([own(), files], { exposure: auto })
    const modeIn = (session: string) => catalog.view({ ...callerOf(), session }).exposure()
    expect(modeIn('one')).toBe('both')
    files.offer({ tools: [described('read', 100_000)] })
    expect(modeIn('one')).toBe('both')
    expect(modeIn('two')).toBe('meta')
    files.offer({ tools: ['read'] })
    expect([modeIn('one'), modeIn('two'), modeIn('three')]).toEqual(['both', 'meta', 'both'])
  })

  test('decides for good once no server is starting', () => {
    const late = fakeSource('late', { health: 'starting' })
    const { catalog } = setUp([own(), fakeSource('files', { tools: ['read'] }), late], { exposure: auto })
    const view = catalog.view(callerOf())
    expect(view.exposure()).toBe('both')
    late.offer({ tools: [described('all', 100_000)] })
    late.become('healthy')
    expect(view.exposure()).toBe('meta')
    late.offer({})
    expect(view.exposure()).toBe('meta')
  })

  test('agents of one session have a mode each', () => {
    const exposures = new ChosenExposures(createManualClock())
    const few = shownOf({ name: 'a' })
    const many = shownOf(described('a', 100_000))
    expect(exposures.choose({ ...callerOf(), agent: 'x' }, few, undefined, true)).toBe('both')
    expect(exposures.choose({ ...callerOf(), agent: 'y' }, many, undefined, true)).toBe('meta')
    expect(exposures.choose({ ...callerOf(), agent: 'x' }, many, undefined, true)).toBe('both')
  })

  test('a client without sessions gets a new choice after an hour without a list', () => {
    const clock = createManualClock()
    const exposures = new ChosenExposures(clock)
    const many = shownOf(described('a', 100_000))
    const choose = (tools: ReturnType<typeof shownOf>) => exposures.choose(callerOf(), tools, undefined, true)
    expect(choose(shownOf({ name: 'a' }))).toBe('both')
    clock.advance(3_599_000)
    expect(choose(many)).toBe('both')
    clock.advance(3_600_000)
    expect(choose(many)).toBe('meta')
  })

  test('a client that searches tools itself gets all of them, without the meta-tools', () => {
    const files = fakeSource('files', { tools: [described('read', 100_000)] })
    const { catalog } = setUp([own(), files], { exposure: auto })
    const modeOf = (client: string | undefined) =>
      catalog.view({ ...callerOf(), session: client ?? '', client }).exposure()
    expect(['claude-code', 'Claude Code', 'GitHub Copilot CLI', 'constructor', undefined].map(modeOf)).toEqual([
      ...['direct', 'direct', 'direct'],
      ...['meta', 'meta'],
    ])
  })

  test('what the client asked for comes before what its agent is configured to see', () => {
    const { catalog } = setUp([own(), fakeSource('files', { tools: ['read'] })], { exposure: () => 'meta' })
    expect(catalog.view({ ...callerOf(), exposure: 'direct' }).exposure()).toBe('direct')
    expect(catalog.view({ ...callerOf(), exposure: 'auto' }).exposure()).toBe('both')
  })

  test('a tool to load at once is marked, and listed in every mode', () => {
    const { view } = setUp([own(), fakeSource('files', { tools: ['read', 'write'] })], {
      isAlwaysLoaded: (_, { server, name }) => `${server}.${name}` === 'files.read',
    })
    expect(named(view.shown('meta'))).toEqual(['find_tool', 'execute_tool', 'files__read'])
    const read = view.shown('direct').find(({ name }) => name === 'files__read')
    expect(read?.definition._meta).toMatchObject({ 'anthropic/alwaysLoad': true })
    expect(String(view.page('tool').items)).toContain('"anthropic/alwaysLoad":true')
    expect(view.shown('direct').find(({ name }) => name === 'files__write')?.definition._meta).not.toHaveProperty(
      'anthropic/alwaysLoad',
    )
  })
})
