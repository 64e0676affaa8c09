import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { View } from '../core/access.ts'
import type { Kind } from '../core/entry.ts'
import { Catalog, type CatalogOptions } from './catalog.ts'
import { callerOf, decideBy, type FakeSource, fakeSource, keepingLog, namingOf } from './source.fixture.ts'
import type { CatalogRules } from './visibility.ts'

/** A catalog with a manual clock in which every caller may use everything. */
export function setUp(sources: readonly FakeSource[], changes: Partial<CatalogRules & CatalogOptions> = {}) {
  const clock = createManualClock()
  const log = keepingLog()
  const { decide = decideBy(() => true), closed = () => undefined, exposure = () => 'both', ...others } = changes
  const { hideDenied = false, auto, isAlwaysLoaded, isPortable, ...options } = others
  const rules = {
    decide,
    closed,
    exposure,
    hideDenied,
    ...(auto && { auto }),
    ...(isAlwaysLoaded && { isAlwaysLoaded }),
    ...(isPortable && { isPortable }),
  }
  const catalog = new Catalog({ sources, naming: namingOf(), listDeadlineMs: 2_000, rules, clock, log, ...options })
  return { catalog, clock, log, view: catalog.view(callerOf()) }
}

export const listed = (view: View, kind: Kind = 'tool') => view.list(kind).map(({ name }) => name)

export const ownTools = () => [
  fakeSource('toolway', { tools: ['list_servers'] }),
  fakeSource('native', { tools: ['hash'] }),
]
