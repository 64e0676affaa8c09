import { Catalog } from '../../src/catalog/catalog.ts'
import type { View } from '../../src/core/access.ts'
import { systemClock } from '../../src/core/clock.ts'
import type { Definition, Entry } from '../../src/core/entry.ts'
import type { Source } from '../../src/core/source.ts'

export interface Offer {
  readonly server: string
  readonly tools: readonly Definition[]
}

/** A catalog of these tools as an agent sees it that may use all of them, and a way to change what a server offers. */
export function catalogOf(offers: readonly Offer[]): { view: View; offer(offer: Offer): void } & Disposable {
  const sources = offers.map(sourceOf)
  const catalog = new Catalog({
    sources,
    naming: { strategy: 'prefix', separator: '__', aliases: {}, maxLength: 64 },
    listDeadlineMs: 0,
    rules: { decide: () => ({ allowed: true, rule: 'bench' }), closed: () => undefined, exposure: () => 'meta' },
    clock: systemClock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  })
  const view = catalog.view({
    agent: 'bench',
    agents: '*',
    principal: 'bench',
    authenticated: true,
    admin: false,
    session: 'bench',
    capabilities: {},
  })
  return {
    view,
    offer: (offer) => sources.find(({ name }) => name === offer.server)?.offer(offer),
    [Symbol.dispose]: () => catalog[Symbol.dispose](),
  }
}

function sourceOf(first: Offer): Source & { offer(offer: Offer): void } {
  let entries = entriesOf(first)
  const listeners = new Set<() => void>()
  return {
    name: first.server,
    origin: 'forwarded',
    priority: 0,
    entries: () => entries,
    status: () => ({ health: 'healthy', reason: '', since: 0, description: '', transport: 'stdio', breaker: 'closed' }),
    ready: async () => {},
    refresh: async () => {},
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    offer(offer) {
      entries = entriesOf(offer)
      for (const listener of listeners) listener()
    },
    async [Symbol.asyncDispose]() {},
  }
}

const traits = { readOnly: true, idempotent: true, timeoutMs: 1 }
const run = () => Promise.reject(new Error('nothing is called here'))

const entriesOf = ({ server, tools }: Offer): readonly Entry[] =>
  tools.map((definition) => ({ kind: 'tool', server, name: String(definition.name), definition, traits, run }))
