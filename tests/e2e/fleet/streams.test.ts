import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Balancer } from '../../fixtures/balancer.ts'
import { type CallerKind, connectCaller, type Params, type StoryCaller } from '../../fixtures/callers.ts'
import type { Fetch } from '../../fixtures/clients.ts'
import { type LocalFleet, startFleet } from '../../fixtures/fleet.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { rawSession, rpc } from '../../fixtures/raw-http.ts'
import { readResuming } from '../../fixtures/resuming.ts'
import type { LocalToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'

const updated = 'notifications/resources/updated'

withPart('redis-server', 'B10: streams of a fleet', () => {
  const open = new AsyncDisposableStack()
  let fleet: LocalFleet
  let balancer: Balancer
  beforeAll(async () => {
    const run = (...args: string[]) => ({ command: process.execPath, args })
    const counts = run(serverProgram('counting'))
    fleet = await startFleet(open, { mcpServers: { counts, watched: run(serverProgram('watched'), 'legacy') } })
    balancer = fleet.balancer
  })
  afterAll(() => open.disposeAsync())

  /** Initialises at one replica and goes on by the balancer. */
  const openedAt =
    (url: string): Fetch =>
    (place, init) =>
      fetch(String(init?.body).includes('"initialize"') ? url : place, init)
  const caller = async (kind: CallerKind, at: number): Promise<StoryCaller> => {
    const { url } = fleet.replicas[at] as LocalToolway
    return open.use(await connectCaller(kind, fleet.endpoint, { fetch: openedAt(url) }))
  }
  const hears = async ({ told, kind }: StoryCaller) => {
    const before = told(updated).length
    await until(() => told(updated).length > before + 2, { what: `news for ${kind}` })
  }
  /** Cuts all connections whenever so many messages have come. */
  const cutting = (every: number, last: (message: Params) => boolean) => {
    return (message: Params, heard: number) => {
      if (last(message)) return 'last'
      if (heard % every !== 0) return undefined
      balancer.cut()
      return 'cut'
    }
  }
  const numbers = Array.from({ length: 100 }, (_, n) => n + 1)

  test('B10, B2: an answer that is a stream is resumed through other replicas: nothing is lost, nothing comes twice', async () => {
    const { headers } = await rawSession(fleet.endpoint)
    const params = { name: 'counts__count', arguments: { to: 100 }, _meta: { progressToken: 'p' } }
    const { messages, connections } = await readResuming({
      url: balancer.url,
      headers,
      body: rpc(7, 'tools/call', params),
      hear: cutting(20, ({ id }) => id === 7),
    })
    expect(messages.slice(0, -1).map(({ params }) => (params as Params).progress)).toEqual(numbers)
    expect(messages.at(-1)).toMatchObject({ id: 7, result: { content: [{ text: '100' }] } })
    expect(connections).toBeGreaterThan(4)
  })

  test('B10, B2: so is the stream for what belongs to no request', async () => {
    const { headers, answer } = await rawSession(fleet.endpoint)
    const uris = numbers.map((number) => `count://${number}`)
    await Promise.all(uris.map((uri) => answer('resources/subscribe', { uri })))
    const heard = readResuming({
      url: balancer.url,
      headers,
      hear: cutting(20, ({ params }) => (params as Params | undefined)?.uri === uris.at(-1)),
    })
    await answer('tools/call', { name: 'counts__change', arguments: { to: 100 } })
    const { messages, connections } = await heard
    const told = messages.filter(({ method }) => method === updated)
    expect(told.map(({ params }) => (params as Params).uri)).toEqual(uris)
    expect(connections).toBeGreaterThan(4)
  })

  test('B10: a stream opens before there is a message on it, also through another replica', async () => {
    const session = await rawSession(fleet.endpoint, { revision: '2025-06-18' })
    for (const { url } of fleet.replicas) {
      const stream = await fetch(url, { headers: session.headers, signal: AbortSignal.timeout(5_000) })
      expect(stream.headers.get('content-type')).toBe('text/event-stream')
      await stream.body?.cancel()
    }
  })

  test('B10, B2: subscribers get updates of a resource through any replica, also after theirs has stopped', async () => {
    const callers = await Promise.all([caller('v1', 0), caller('v2', 0), caller('modern', 0)])
    for (const one of callers) await one.follow(['watch://clock'])
    await Promise.all(callers.map(hears))
    const leaving = fleet.replicas[0] as LocalToolway
    balancer.without(leaving.url)
    await leaving[Symbol.asyncDispose]()
    // Without sessions a client begins anew: it has been told that its stream is over.
    const [, , modern] = callers as [StoryCaller, StoryCaller, StoryCaller]
    await modern.follow(['watch://clock'])
    await Promise.all(callers.map(hears))
  })
})
