import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { silentLog } from '../../core/log.ts'
import type { HandshakeResult, InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { RpcConnection } from '../connection/rpc-connection.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import type { UpstreamServerOptions } from '../server-options.ts'
import { ServerListing } from './server-listing.ts'

interface Setup {
  /** The result of `tools/list`, without the tools; undefined if the server fails. */
  readonly hints: () => object | undefined
  readonly era?: 'legacy' | 'modern'
  readonly refreshMs?: number
}

/** A listing that was fetched once, over a connection that is still open. */
async function fetchedListing({ hints, era = 'modern', refreshMs = 60_000 }: Setup) {
  const clock = createManualClock()
  const names = ['read']
  const { transport, heard } = scriptedPeer({
    'tools/list': () => {
      const given = hints()
      const tools = names.map((name) => ({ name, inputSchema: { type: 'object' } }))
      return given ? { tools, ...given } : { error: { code: -32603, message: 'busy' } }
    },
  })
  const { signal } = new AbortController()
  const connection = await RpcConnection.open(transport, { server: 's', owned: false, log: silentLog }, signal)
  const handshake = { era, protocolVersion: 'x', serverInfo: {}, capabilities: { tools: {} } } as HandshakeResult
  let open: InitializedConnection | undefined = { connection, handshake, identity: { name: 'toolway', version: '1' } }
  const defaults = { timeoutMs: 30_000, refreshMs, discovery: 'hybrid' }
  const config = { transport: 'http', url: 'http://127.0.0.1/' }
  const server = { name: 's', config, defaults, host: {}, clock, log: silentLog } as unknown as UpstreamServerOptions
  const listing = new ServerListing(server, {
    capabilities: {},
    store: { load: async () => undefined, save: async () => {} },
    connection: (): ManagedConnection => {
      throw new Error('a connection is opened')
    },
    current: () => open,
    isDown: () => false,
    entriesOf: () => [],
    onNews() {},
  })
  await listing.opened(open)
  return {
    listing,
    names,
    change: () => open && listing.changed(open),
    /** How often the list is fetched if it is asked for, or something else happens, `times` times, every `everyMs`. */
    async fetches(times: number, everyMs: number, happens: () => unknown = () => listing.known()) {
      const before = heard.length
      for (let time = 0; time < times; time++) {
        await clock.pass(everyMs)
        happens()
        await clock.pass(0)
      }
      return heard.length - before
    },
    close() {
      open = undefined
    },
  }
}

test('F4: a list whose TTL has passed is fetched again on the next request', async () => {
  const { listing, names, fetches } = await fetchedListing({ hints: () => ({ ttlMs: 5_000 }) })
  names.push('write')
  expect(await fetches(4, 1_000)).toBe(0)
  expect(await fetches(1, 2_000)).toBe(1)
  expect(listing.descriptors?.tools.map(({ name }) => name)).toEqual(['read', 'write'])
})

test.each([{ ttlMs: 0 }, { ttlMs: -1 }, { ttlMs: 'soon' }])(
  'F4: with %o, a list is fetched at most once a second',
  async (hints) => {
    const { fetches } = await fetchedListing({ hints: () => hints })
    expect(await fetches(100, 101)).toBe(10)
  },
)

describe('G2, F4: a large list is fetched less often, because each fetch delays calls to other servers', () => {
  const hints = () => ({ ttlMs: 0, _meta: { padding: 'x'.repeat(4 * 1024 * 1024) } })

  test('if its TTL is short', async () => {
    const { fetches } = await fetchedListing({ hints })
    expect(await fetches(40, 1_001)).toBe(8)
  })

  test('if it changes steadily, however long the pauses between the changes', async () => {
    const { change, fetches } = await fetchedListing({ hints })
    expect(await fetches(40, 1_050, change)).toBeLessThan(8)
  })
})

test('F4: the shortest TTL of all pages counts', async () => {
  const pages = [{ ttlMs: 30_000, nextCursor: '2' }, { ttlMs: 3_000 }]
  let page = 0
  const { fetches } = await fetchedListing({ hints: () => pages[page++ % 2] })
  expect(await fetches(1, 4_000)).toBe(2)
})

test.each([
  ['no TTL', {}],
  ['a TTL in a legacy server', { era: 'legacy', hints: () => ({ ttlMs: 0 }) }],
  ['a TTL and discovery.refresh: 0', { refreshMs: 0, hints: () => ({ ttlMs: 0 }) }],
] as const)('F4: with %s, a list request causes no fetch', async (_, setup) => {
  const { fetches } = await fetchedListing({ hints: () => ({}), ...setup })
  expect(await fetches(5, 10_000)).toBe(0)
})

test('F4: a server that fails to return a list is asked again with the next refresh', async () => {
  let fails = false
  const { fetches } = await fetchedListing({ hints: () => (fails ? undefined : { ttlMs: 2_000 }) })
  fails = true
  expect(await fetches(100, 101)).toBe(1)
})

test('F4: no connection is opened for a list whose TTL has passed', async () => {
  const { fetches, close } = await fetchedListing({ hints: () => ({ ttlMs: 0 }) })
  close()
  expect(await fetches(5, 5_000)).toBe(0)
})
