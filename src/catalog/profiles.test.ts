import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { configSchema } from '../config/schema.ts'
import type { Kind } from '../core/entry.ts'
import { silentLog } from '../core/log.ts'
import type { Source } from '../core/source.ts'
import { createCatalogs } from './catalog.ts'
import { callerOf, decideBy, fakeSource } from './source.fixture.ts'

function setUp(sources: readonly Source[]) {
  const clock = createManualClock()
  const { naming } = configSchema.parse({})
  const rules = { decide: decideBy(() => true), closed: () => undefined, exposure: () => 'both' as const }
  return { clock, catalog: createCatalogs({ sources, naming, listDeadlineMs: 100, ...rules, clock, log: silentLog }) }
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

test('F4: a change that concerns several kinds of clients is told once', async () => {
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

test('B2: kinds of clients are bounded; the longest unused one is forgotten and found again', () => {
  const { catalog } = setUp([twoFaced().source])
  expect(names(catalog, { elicitation: {} })).toHaveLength(2)
  for (let kind = 0; kind < 100; kind++) names(catalog, { [`odd${kind}`]: {} })
  expect(names(catalog, { elicitation: {} })).toHaveLength(2)
  expect(names(catalog, {})).toHaveLength(1)
})
