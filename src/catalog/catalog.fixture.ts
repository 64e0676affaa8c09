import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { View } from '../core/access.ts'
import type { Kind } from '../core/entry.ts'
import { type CatalogOptions, createCatalog } from './catalog.ts'
import { callerOf, decideBy, type FakeSource, fakeSource, keepingLog, namingOf } from './source.fixture.ts'

/** A catalog with a manual clock in which every caller may use everything. */
export function setUp(sources: readonly FakeSource[], changes: Partial<CatalogOptions> = {}) {
  const clock = createManualClock()
  const log = keepingLog()
  const catalog = createCatalog({
    sources,
    naming: namingOf(),
    listDeadlineMs: 2_000,
    decide: decideBy(() => true),
    closed: () => undefined,
    exposure: () => 'both',
    clock,
    log,
    ...changes,
  })
  return { catalog, clock, log, view: catalog.view(callerOf()) }
}

export const listed = (view: View, kind: Kind = 'tool') => view.list(kind).map(({ name }) => name)

export const ownTools = () => [
  fakeSource('toolway', { tools: ['list_servers'] }),
  fakeSource('native', { tools: ['hash'] }),
]
