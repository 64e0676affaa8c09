import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { callOf } from '../../core/call.fixture.ts'
import { silentLog } from '../../core/log.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { RpcConnection, type RpcRequest } from '../connection/rpc-connection.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import { serverWith } from '../server.fixture.ts'
import { ChangeStream, UpstreamSubscriptions } from './subscriptions.ts'

const identity = { name: 'toolway', version: '1' }
const acknowledged = 'notifications/subscriptions/acknowledged'

/** A change stream of a server that acknowledges each request, and ends the response after `livesMs`. */
function streamThatEnds(livesMs: number) {
  const clock = createManualClock()
  const counts = { requests: 0, missed: 0 }
  const request = ({ onStreamNotification }: RpcRequest) => {
    counts.requests++
    onStreamNotification?.(acknowledged, undefined)
    return new Promise((resolve) => clock.after(livesMs, () => resolve({ result: Buffer.from('{}') })))
  }
  const open = {
    connection: { transport: { kind: 'http' }, request },
    handshake: { era: 'modern', capabilities: { tools: { listChanged: true } } },
    identity,
  } as unknown as InitializedConnection
  const stream = new ChangeStream(open, {
    server: 's',
    onStreamNotification() {},
    missed: () => counts.missed++,
    clock,
    log: silentLog,
  })
  return { stream, clock, counts }
}

test('T5: a server that ends its change stream at once is asked again after growing pauses', async () => {
  const { stream, clock, counts } = streamThatEnds(50)
  await clock.pass(120_000)
  expect(counts).toEqual({ requests: 8, missed: 7 })
  stream[Symbol.dispose]()
})

test('T5: a change stream that ends after a while is opened again soon, and changes count as missed once', async () => {
  const { stream, clock, counts } = streamThatEnds(20_000)
  await clock.pass(64_000)
  expect(counts).toEqual({ requests: 4, missed: 3 })
  stream[Symbol.dispose]()
})

test('F12: a subscription that cannot be renewed after a reconnect is renewed later', async () => {
  const clock = createManualClock()
  let fails = false
  const peer = scriptedPeer({
    'resources/subscribe': () => (fails ? { error: { code: -32603, message: 'not ready' } } : {}),
  })
  const { signal } = new AbortController()
  const connection = await RpcConnection.open(peer.transport, { server: 's', owned: false, log: silentLog }, signal)
  const handshake = { era: 'legacy', protocolVersion: '2025-11-25', serverInfo: {}, capabilities: {} } as const
  const open: InitializedConnection = { connection, handshake, identity }
  const managed = {
    current: open,
    open: async () => open,
    hold: () => ({ [Symbol.dispose]() {} }),
  } as unknown as ManagedConnection
  const subscriptions = new UpstreamSubscriptions({
    server: 's',
    connectionOf: () => managed,
    changed() {},
    isPaused: () => false,
    clock,
    log: silentLog,
  })
  const requests = () => peer.heard.filter(({ method }) => method === 'resources/subscribe').length
  await subscriptions.subscribe(callOf().caller, 'file:///a', () => {})
  fails = true
  subscriptions.reopened(managed, open)
  await clock.pass(3_500)
  expect(requests()).toBe(4)
  fails = false
  await clock.pass(60_000)
  expect(requests()).toBe(5)
  fails = true
  subscriptions.reopened(managed, open)
  await clock.pass(0)
  subscriptions[Symbol.dispose]()
  expect(clock.pending).toBe(0)
})

test('G3: with sessions beside the stateless protocol, its change stream leaves out what the sessions follow', async () => {
  const managedOf = (era: 'legacy' | 'modern') => {
    const open = { connection: { request: async () => ({}) }, handshake: { era, capabilities: {} }, identity }
    const hold = () => ({ [Symbol.dispose]() {} })
    return { current: open, open: async () => open, hold } as unknown as ManagedConnection
  }
  const connections: Record<string, ManagedConnection> = { s: managedOf('legacy'), t: managedOf('modern') }
  const subscriptions = new UpstreamSubscriptions({
    server: 's',
    connectionOf: ({ session }) => connections[session] as ManagedConnection,
    changed() {},
    isPaused: () => false,
    clock: createManualClock(),
    log: silentLog,
  })
  const told: string[] = []
  const follow = (session: string, uri: string) =>
    subscriptions.subscribe({ ...callOf().caller, session }, uri, () => told.push(session))
  await follow('s', 'state://own')
  await follow('s', 'file:///a')
  await follow('t', 'file:///a')
  expect(subscriptions.uris()).toEqual(['file:///a'])
  subscriptions.updated('file:///a')
  expect(told).toEqual(['t'])
})

test('V2: a paused server with a subscription is not started again until it is resumed', async () => {
  const { server, peers, clock } = serverWith({ resources: ['file:///a'] })
  await server.ready()
  const [entry] = server.entries().filter(({ kind }) => kind === 'resource')
  await entry?.subscribe?.(callOf().caller, 'file:///a', () => {})
  await server.control.pause()
  await clock.pass(120_000)
  expect(server.control.events().map(({ kind }) => kind)).toEqual(['paused', 'started'])
  server.control.resume()
  await clock.pass(2_000)
  expect(peers).toHaveLength(2)
  expect(peers[1]?.heard.some(({ method }) => method === 'resources/subscribe')).toBe(true)
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})
